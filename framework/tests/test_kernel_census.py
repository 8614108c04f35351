"""The census of what kernels can print: read from their source, and answered by the catalogue in full."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from plugpull.errors import UsageError
from plugpull.kernel.census import __main__ as command
from plugpull.kernel.census.answers import Answer, Conflict, answer_to, read_rules
from plugpull.kernel.census.compare import compare, not_in_census, read_index
from plugpull.kernel.census.coverage import coverage, table
from plugpull.kernel.census.messages import Message, SourceTree, Unresolved
from plugpull.kernel.census.record import merge, read_record, recorded, write_record
from plugpull.kernel.census.source import read_c
from plugpull.kernel.census.tree import read_tree, scope
from plugpull.kernel.census.wrappers import wrappers

HUB = "drivers/usb/core/hub.c"


def found_in(text: str, path: str = HUB, **others: str) -> list[Message | Unresolved]:
    files = {path: read_c(path, text)}
    folder = path.rpartition("/")[0]
    for name, content in others.items():
        files[f"{folder}/{name}.h"] = read_c(f"{folder}/{name}.h", content)
    return [each for each in SourceTree(files, wrappers()).messages() if each.path == path]


def formats(text: str, path: str = HUB, **others: str) -> list[tuple[str, str]]:
    return [(each.level, each.format) for each in found_in(text, path, **others) if isinstance(each, Message)]


@pytest.mark.parametrize(
    ("path", "text", "level", "format"),
    [
        (HUB, 'int f(void)\n{\n\tdev_err(d, "no %d\\n", 1);\n}\n', "3", "{usb}: no %d"),
        (HUB, 'int f(void)\n{\n\tdev_err(d,\n\t\t"a " /* c */ "b"\n\t\t" c\\n");\n}\n', "3", "{usb}: a b c"),
        (HUB, 'int f(void)\n{\n\tprintk(KERN_WARNING "a\\n");\n}\n', "4", "a"),
        (HUB, 'int f(void)\n{\n\tprintk("\\001" "3" "a\\n");\n}\n', "3", "a"),
        (HUB, 'int f(void)\n{\n\tprintk("no level\\n");\n}\n', "4", "no level"),
        (HUB, 'int f(void)\n{\n\tpr_err("%s: %llu" PRIu64 "\\n", __func__, x);\n}\n', "3", "f: %llullu"),
        (HUB, '#define pr_fmt(fmt) "hub: " fmt\nint f(void)\n{\n\tpr_info_once("a\\n");\n}\n', "6", "hub: a"),
        (HUB, 'int f(void)\n{\n\tWARN_ONCE(x > 1, "odd %d\\n", x);\n}\n', "w", "odd %d"),
        (HUB, 'int f(void)\n{\n\tpanic("it is over");\n}\n', "0", "Kernel panic - not syncing: it is over"),
        (HUB, '#define complain(x) dev_warn(x, "macro\\n")\n', "4", "{usb}: macro"),
        (HUB, '#define TEXT "named"\nint f(void)\n{\n\tdev_err(d, TEXT " %d\\n", 1);\n}\n', "3", "{usb}: named %d"),
        (HUB, 'int f(void)\n{\n\tdev_err(d, "a {b} | c\\n");\n}\n', "3", r"{usb}: a \{b\} \| c"),
        (HUB, 'int f(void)\n{\n\tdev_err(d, "%s on\\n", "U1");\n}\n', "3", "{usb}: U1 on"),
        ("drivers/pci/pcie/aer.c", '#define dev_fmt(fmt) "AER: " fmt\nint f(void)\n{\n\tpci_err(d, "a\\n");\n}\n', "3",
         "{pci}: AER: a"),
        ("drivers/md/dm-x.c", '#define DM_MSG_PREFIX "x"\nint f(void)\n{\n\tDMERR_LIMIT("a");\n}\n', "3",
         "device-mapper: x: a"),
        ("fs/ext4/super.c", 'int f(void)\n{\n\text4_msg(sb, KERN_CRIT, "a");\n}\n', "2", "EXT4-fs (%s): a"),
        ("fs/xfs/xfs_log.c", 'int f(void)\n{\n\txfs_alert(mp, "a");\n}\n', "1", "XFS (%s): a"),
        ("drivers/scsi/sd.c", 'int f(void)\n{\n\tsd_printk(KERN_NOTICE, s, "a\\n");\n}\n', "5", "{scsi}: {[%w] |}a"),
        ("drivers/scsi/sd.c", 'int f(void)\n{\n\tsd_printk(level, s, "a\\n");\n}\n', "?", "{scsi}: {[%w] |}a"),
    ],
)  # fmt: skip
def test_a_message_in_the_source(path: str, text: str, level: str, format: str) -> None:
    assert formats(text, path) == [(level, format)]


def test_each_branch_and_each_line_of_a_format() -> None:
    text = 'int f(void)\n{\n\tpr_err(x ? "yes\\n" : "no\\nmore\\n");\n}\n'
    assert formats(text) == [("3", "yes"), ("3", "no"), ("c", "more")]


def test_the_function_is_named_and_a_prototype_is_no_message() -> None:
    text = "void dev_err(const struct device *d, const char *fmt, ...);\nstatic int\nhub_port(int a)\n{\n"
    (message,) = found_in(text + '\tif (a) {\n\t\tdev_err(d, "a\\n");\n\t}\n}\n')
    assert isinstance(message, Message)
    assert message.function == "hub_port"


def test_a_header_gives_the_prefix() -> None:
    text = '#include "mine.h"\nint f(void)\n{\n\tpr_err("a\\n");\n}\n'
    assert formats(text, mine='#define pr_fmt(fmt) "own: " fmt\n') == [("3", "own: a")]


def test_what_is_not_a_literal_is_counted() -> None:
    (one,) = found_in("int f(void)\n{\n\tpr_err(reason);\n}\n")
    assert one == Unresolved(HUB, "f", "reason")


def test_debug_wrappers_and_strings_in_comments_are_no_messages() -> None:
    assert formats('/* pr_err("a"); */\n// pr_err("b");\nint f(void)\n{\n\tseq_printf(m, "c");\n}\n') == []


# --- the recorded census ---------------------------------------------------------------------------------------------


def test_every_message_has_one_answer() -> None:
    found = coverage(recorded().messages, scope())
    assert found.unanswered == ()
    assert found.conflicts == ()
    assert sum(room.kinds + room.nothing for room in found.rooms) > 7000


def test_the_documentation_has_the_table_that_the_tool_writes() -> None:
    readme = Path(command.__file__).with_name("README.md").read_text()
    assert "\n".join(table(coverage(recorded().messages, scope()).rooms)) in readme


def test_every_room_of_the_scope_has_messages() -> None:
    assert [room.name for room in coverage(recorded().messages, scope()).rooms if not room.kinds] == []


def test_a_new_message_has_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tree_with(tmp_path, 'dev_err(d, "the frobnicator went sideways\\n");')
    assert command.main([str(place)]) == 1
    assert "no answer: 3 drivers/usb/core/hub.c f: {usb}: the frobnicator went sideways" in capsys.readouterr().out


def test_a_known_message_has_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tree_with(tmp_path, 'dev_err(d, "unable to enumerate USB device\\n");')
    assert command.main([str(place)]) == 0
    assert "| drivers/usb/core | 1 | 1 | 0 | 0 |" in capsys.readouterr().out


def test_two_kinds_for_one_format_are_a_conflict() -> None:
    format = "{usb}: {USB disconnect, device number %d|unable to enumerate USB device}"
    answer = answer_to(Message(HUB, "f", "3", format), ())
    assert isinstance(answer, Conflict)
    assert answer.kinds == ("usb.disconnect", "usb.enumeration-error")


def test_a_rule_answers_only_its_levels_and_files() -> None:
    message = Message("drivers/usb/core/hub.c", "f", "w", "something odd")
    assert isinstance(answer_to(message, read_rules()), Answer)
    assert answer_to(message._replace(level="3"), read_rules()) is None


def test_a_tree_with_other_wordings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = [Message(HUB, "f", "3", "{usb}: cannot reset port %d (err = %d)"), Message(HUB, "g", "3", "{usb}: gone")]
    new = [Message(HUB, "f", "3", "{usb}: cannot reset port %d, error %d"), Message(HUB, "h", "3", "{usb}: quite new")]
    found = compare(old, new, scope())
    assert (found.reworded, found.gone, found.new) == (((old[0], new[0]),), (old[1],), (new[1],))
    assert [line.split(":")[0] for line in command.show_difference(found)] == ["new", "reworded", "gone"]


def test_a_debug_message_is_not_new() -> None:
    assert compare([], [Message(HUB, "f", "7", "{usb}: chatter")], scope()).new == ()


def test_a_record_is_read_back(tmp_path: Path) -> None:
    one, two = Message(HUB, "f", "3", "{usb}: a\\|b"), Message(HUB, "", "w", "c  d")
    record = merge([("6.1", [one, one]), ("6.12", [one, two, Message(HUB, "f", "7", "debug")])], scope())
    write_record(record, tmp_path / "record")
    assert read_record((tmp_path / "record").read_text().splitlines()) == record
    assert record.messages == {one: "12", two: "2"}
    assert record.of("1") == [one]


# --- where source comes from -----------------------------------------------------------------------------------------


def tree_with(folder: Path, statement: str) -> Path:
    place = folder / "linux"
    (place / HUB).parent.mkdir(parents=True)
    (place / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 5\n")
    (place / HUB).write_text(f"int f(void)\n{{\n\t{statement}\n}}\n")
    return place


def test_an_archive_is_read_like_a_directory(tmp_path: Path) -> None:
    place = tree_with(tmp_path, 'dev_err(d, "a\\n");')
    archive = tmp_path / "linux.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(place, "linux-6.1.5")
        tar.addfile(tarfile.TarInfo("linux-6.1.5/README"), io.BytesIO())
    assert read_tree(archive, scope()) == read_tree(place, scope())
    assert read_tree(archive, scope())[0] == "6.1.5"


def test_what_is_not_a_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        read_tree(tmp_path / "none", scope())
    assert command.main([str(tmp_path)]) == 2
    assert "holds none of the files" in capsys.readouterr().err


# --- the kernel's own index ------------------------------------------------------------------------------------------

INDEX = r"""# <level/flags> filename:line function "format"
<3> drivers/usb/core/hub.c:10 f "%s %s: unable to enumerate USB device\n"
<4,c> drivers/usb/core/hub.c:20 g "more\n"
<3> drivers/usb/core/hub.c:30 h "%s %s: overlooked by the census\n"
<3> drivers/gpu/drm/drm.c:30 h "not counted\n"
"""


def test_the_index_finds_what_the_census_missed() -> None:
    index = list(read_index(INDEX.splitlines()))
    assert [message.level for message in index] == ["3", "4", "3", "3"]
    census = [Message(HUB, "f", "3", "{usb}: unable to enumerate USB device"), Message(HUB, "g", "c", "more")]
    assert [message.function for message in not_in_census(index, census)] == ["h"]
