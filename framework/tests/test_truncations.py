"""A history of which something is missing does not pass: over every line of a recorded run."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from benchmarks.truncations import kind_of, passes_unjudged, sealed, verdict
from plugpull.history.seals import label_of
from plugpull.judging.results import Verdict

RECORDED = Path(__file__).parent / "data/while_idle.jsonl.xz"
"""A cable cut on the virtual bench: as it was recorded, by a version that did not number its lines."""
CLAIMED = (
    "run.begin",
    "run.end",
    "scenario.begin",
    "scenario.end",
    "dut.ready",
    "judge",
    "cut.armed",
    "edge off acknowledged",
    "edge on acknowledged",
    "disk.detached",
    "residue",
    "census begin",
    "census end",
)
"""Kinds of lines of which there is only one, or each is part of what a PASS claims."""


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return sealed(lzma.decompress(RECORDED.read_bytes()).splitlines())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def test_the_recorded_run_passes(file: Path, lines: list[bytes]) -> None:
    assert verdict(file, lines, edited=False) is Verdict.PASS
    assert verdict(file, lines, edited=True) is Verdict.PASS


def test_it_does_not_pass_cut_off_after_any_line(file: Path, lines: list[bytes]) -> None:
    assert [length for length in range(1, len(lines)) if passes_unjudged(file, lines[:length])] == []


def test_it_does_not_pass_without_any_one_line(file: Path, lines: list[bytes]) -> None:
    passed = [n for n in range(len(lines)) if passes_unjudged(file, [*lines[:n], *lines[n + 1 :]])]
    assert passed == []


@pytest.mark.parametrize("kind", CLAIMED)
def test_what_is_claimed_is_missed_in_an_edited_history_too(file: Path, lines: list[bytes], kind: str) -> None:
    places = [place for place, line in enumerate(lines) if kind_of(line) == kind]
    assert places
    for place in places:
        assert verdict(file, [*lines[:place], *lines[place + 1 :]], edited=True) is not Verdict.PASS


def test_a_cut_off_edited_history_does_not_pass(file: Path, lines: list[bytes]) -> None:
    for length in (*range(1, len(lines) - 2, 25), len(lines) - 2):
        assert verdict(file, lines[:length], edited=True) is not Verdict.PASS, label_of(lines[length]).type
