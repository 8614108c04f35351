"""The words by which the finder looks for entries, and other things that make ``plugpull log`` start quickly."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from plugpull.cli import MODULES, main, parser
from plugpull.kernel.catalogue import needles
from plugpull.kernel.catalogue.deferred import deferred
from plugpull.kernel.catalogue.entries import ENTRIES
from plugpull.kernel.catalogue.entry import Entry, Severity
from plugpull.kernel.catalogue.wording import needles_of

TWO = (
    Entry("usb.reset", Severity.ERROR, "first wording", "x.c"),
    Entry("usb.reset", Severity.ERROR, "{second|other} wording", "x.c"),
)


def test_the_file_of_words_is_up_to_date() -> None:
    hint = "run python -m plugpull.kernel.catalogue.needles"
    assert needles.PATH.read_text(encoding="utf-8") == needles.file_of(ENTRIES), hint


def test_the_words_of_the_file_are_those_of_the_wordings() -> None:
    kept = list(needles.needles_of_entries())
    assert [frozenset(words) for words in kept] == [needles_of(entry.wording) for entry in ENTRIES]


@pytest.mark.parametrize(
    "entries",
    [TWO[:1], TWO[::-1], (*TWO, TWO[0]), (TWO[0], Entry("usb.reset", Severity.ERROR, "second wording", "x.c"))],
    ids=["removed", "moved", "added", "changed"],
)
def test_the_words_of_other_wordings_are_not_used(entries: tuple[Entry, ...]) -> None:
    text = needles.file_of(TWO)
    assert needles.kept(text, TWO) == list(needles.derived(TWO))
    assert needles.kept(text, entries) is None


def test_a_file_that_was_cut_short_is_not_used() -> None:
    assert needles.kept(needles.file_of(TWO)[:-1], TWO) is None
    assert needles.kept("", TWO) is None


def test_without_the_file_the_words_are_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needles, "NAME", "nosuch")
    assert list(needles.needles_of_entries()) == list(needles.derived(ENTRIES))


def test_a_deferred_expression_is_compiled_at_its_first_use() -> None:
    pattern = deferred(r"(\d+)-")
    assert "search" not in vars(pattern)
    found = pattern.search("usb 12-3")
    assert found is not None
    assert found[1] == "12"
    assert "search" in vars(pattern)
    assert pattern.sub("x", "1-2") == "x2"
    with pytest.raises(re.error):
        deferred("(").match("")


def test_plugpull_log_loads_no_other_subcommand(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("[ 1.0] usb 1-2: USB disconnect, device number 5\n")
    script = (
        f"import sys\nfrom plugpull.cli import main\nmain(['log', {str(log)!r}])\n"
        "print(sorted(one for one in sys.modules if one.startswith('plugpull.commands.')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "usb.disconnect" in done.stdout
    assert done.stdout.splitlines()[-1] == "['plugpull.commands.base', 'plugpull.commands.log']"


@pytest.mark.parametrize("name", MODULES)
def test_one_subcommand_alone_is_explained_as_beside_the_others(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    alone = capsys.readouterr().out
    with pytest.raises(SystemExit):
        parser().parse_args([name, "--help"])
    assert capsys.readouterr().out == alone
    assert alone.startswith(f"usage: plugpull {name} ")


def test_a_wrong_option_is_refused_in_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["log", "--nosuch", "file"])
    alone = capsys.readouterr().err
    with pytest.raises(SystemExit):
        parser().parse_args(["log", "--nosuch", "file"])
    assert capsys.readouterr().err == alone
