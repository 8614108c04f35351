"""Text from a DUT, a device or a file is made safe: no escape sequence is printed, no line can be forged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rig_builder import a_rig
from stories import Bench, encode, healthy, run_of

from plugpull.cli import main
from plugpull.commands.rig_check import rig_check
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.judging.outcome import write_outcome
from plugpull.plain import clean, clean_json, clean_line, kernel_escaped
from plugpull.report.live import LiveView, PlainView
from plugpull.rig.load import load_rig
from plugpull.rig.tree import tree_text

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31mred\x7f\r\nPASS    forged\u202egnp.exe\u2028 \x00\x08\\x1b"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def harmless(text: str) -> bool:
    return OBEYED.search(text) is None


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert harmless(clean(text))
    assert harmless(clean_line(text))
    assert not set("\n\t") & set(clean_line(text))
    assert re.fullmatch(r"[ -~]*", kernel_escaped(text))
    clean(text).encode()


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_stays_what_it_was(value: Any) -> None:
    text = clean_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert harmless(text)


@given(st.text(st.characters(codec="utf-8")))
def test_the_kernel_s_escaping_can_be_undone(text: str) -> None:
    found = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), kernel_escaped(text).encode())
    assert found.decode() == text


def test_ordinary_text_is_left_alone() -> None:
    assert clean("Größe: 5 µs\n\tok") == "Größe: 5 µs\n\tok"
    assert kernel_escaped("usb 1-1: Product: Ärger") == "usb 1-1: Product: \\xc3\\x84rger"


# --- runs -------------------------------------------------------------------------------------------------------------


def hostile() -> Bench:
    bench = healthy()
    bench.add(
        ev.KernelMessage(at=13.0, text=f"I/O error, dev sdc, sector 8 {HOSTILE}", level=3),
        ev.KernelMessage(at=13.1, text=f"Oops: {HOSTILE}", level=0),
        ev.Note(at=13.2, text=HOSTILE, subject=HOSTILE),
        ev.RigFault(at=13.3, summary=HOSTILE),
        ev.ScenarioError(at=13.4, fault="rig", summary=f"ssh dut: {HOSTILE}", hint=HOSTILE, traceback=HOSTILE),
    )
    return bench


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory in which everything that can be is hostile."""
    directory = tmp_path / "run"
    directory.mkdir()
    lines = []
    for line in encode(run_of(hostile().scenario(), healthy().scenario())).splitlines():
        event = json.loads(line)
        for key in ("story", "model", "kernel", "fio"):
            if isinstance(event.get(key), str):
                event[key] += HOSTILE
        if isinstance(event.get("id"), str):
            event["id"] += HOSTILE
        lines.append(json.dumps(event))
    (directory / "history.jsonl").write_text("\n".join(lines) + "\n")
    (directory / "scenarios" / "a\x1b[2J").mkdir(parents=True)
    (directory / "scenarios" / "a\x1b[2J" / "console.log").write_bytes(b"[ 1.0] up\r\n\x1b[2J\x9bred\xff\n")
    return directory


@pytest.mark.parametrize("words", [["check"], ["check", "--json"]])
def test_what_check_prints(run: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--edited", str(run)]) in (1, 3)
    said = capsys.readouterr()
    assert harmless(said.out + said.err)
    assert not re.search(r"^PASS    forged", said.out, re.MULTILINE)


def test_what_compare_prints(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "history.jsonl").write_bytes(encode(run_of(healthy().scenario())))
    for words in (["compare"], ["compare", "--json"]):
        assert main([*words, str(other), str(run)]) == 1
        said = capsys.readouterr()
        assert harmless(said.out + said.err)
        assert not re.search(r"^PASS    forged", said.out, re.MULTILINE)


def test_every_file_of_a_report(run: Path) -> None:
    write_outcome(run, edited=True)
    names = {"results.json", "junit.xml", "report.html", "kernel.log", "console.log"}
    for name in names:
        assert harmless((run / name).read_text()), name
    log = (run / "kernel.log").read_text().splitlines()
    assert not any(line.startswith("PASS") for line in log)
    assert any(r"sector 8 \x1b[2J" in line for line in log)
    assert all(line.startswith(("#", "<")) for line in log)
    assert "[ 1.0] up\n" in (run / "console.log").read_text()


def test_what_pytest_says_of_a_run(run: Path) -> None:
    from plugpull.judging.outcome import judge_run
    from plugpull.plugin_session import _text

    _, results = judge_run(run, edited=True)
    for scenario in results.scenarios:
        assert harmless(_text(scenario))
        assert not re.search(r"^PASS    forged", _text(scenario), re.MULTILINE)


@pytest.mark.parametrize("kind", [PlainView, LiveView])
def test_what_is_shown_while_a_run_goes_on(kind: Any) -> None:
    console = Console(record=True, width=200, force_terminal=False, color_system=None, file=open("/dev/null", "w"))  # noqa: SIM115
    view = kind(console)
    for event in hostile().scenario():
        view(event)
    view.verdict(HOSTILE, "PASS", HOSTILE)
    if isinstance(view, LiveView):
        console.print(view.render())
    assert harmless(console.export_text())


@pytest.mark.parametrize("option", [[], ["--json"], ["--story"], ["--summary"], ["--unknown"]])
def test_what_log_prints(tmp_path: Path, option: list[str], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    log = tmp_path / "kern\x1b[2J.log"
    lines = [
        "usb 1-1: USB disconnect, device number 2",
        f"sd 1:0:0:0: [sdc] {HOSTILE}",
        "I/O error, dev sdc\x1b[2J, sector 8 op 0x1:(WRITE)",
        "EXT4-fs error (device sd\x9b31mc1): ext4_find_entry:1455: inode #2: comm \x1b[31mls: reading directory",
        "BUG: unable to handle page fault for address: \x1b]0;x\x07",
        " ? \x1b[2Jfunction+0x1/0x2",
    ]
    log.write_text("".join(f"[    1.{number}00000] {line}\n" for number, line in enumerate(lines)))
    assert main(["log", *option, str(log)]) == 0
    assert harmless(capsysbinary.readouterr().out.decode())


# --- rig files and errors ---------------------------------------------------------------------------------------------


RIG = (
    a_rig("desk", "local")
    .having("desk", description="hello\x1b[2J")
    .controller(path="0000:00:14.0\x9b31m")
    .disk("disk1", serial="S-1", size="1 GiB")
    .text
)


def test_a_rig_s_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rig.toml"
    file.write_text(RIG)
    assert harmless(tree_text(load_rig(file)))
    console = Console(record=True, width=200, force_terminal=True, color_system=None, file=open("/dev/null", "w"))  # noqa: SIM115
    rig_check(file, console)
    assert harmless(console.export_text())


def test_the_mistakes_of_a_rig_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rig\x1b[2J.toml"
    file.write_text(RIG.replace('"S-1"', '"S-\\u001b[2J"').replace('"usb.1"', '"u\\u001b[31m.1"'))
    assert main(["rig", "check", str(file)]) == 2
    said = capsys.readouterr()
    assert said.err
    assert harmless(said.out + said.err)


def test_an_error_with_the_words_of_a_dut(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RigError(f"ssh dut: ended with status 1: {HOSTILE}", hint=HOSTILE)

    monkeypatch.setattr("plugpull.judging.outcome.judge_run", fail)
    assert main(["check", "/nowhere"]) == 3
    said = capsys.readouterr()
    assert "ended with status 1" in said.err
    assert harmless(said.out + said.err)


def test_no_command_prints_the_words_of_an_error_as_they_are() -> None:
    """``print(error)`` and ``{text}`` of somebody else's are the ways in; each is given to ``clean`` first."""
    import plugpull

    raw = re.compile(r"(?<!_)print\(f?\"?(?:plugpull: )?\{?(?:error|text|why|reason|line)\}?\"?,? ?(?:file|flush|\))")
    found = [
        f"{path.name}: {line.strip()}"
        for path in Path(plugpull.__file__).parent.rglob("*.py")
        if "setup" not in path.parts and path.name not in ("screenshot.py",)
        for line in path.read_text().splitlines()
        if raw.search(line) and "clean" not in line
    ]
    # The last one runs on the DUT; what it prints is cleaned where it arrives.
    known = {"compare.py: print(line)", "fleet.py: print(line)", "log.py: print(line)", "run.py: print(line)"}
    assert set(found) <= {*known, "__main__.py: print(error, file=sys.stderr)"}, found
