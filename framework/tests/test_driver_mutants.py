"""The list of bugs that are put into the kernel names checks, rigs and scenarios that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

import plugpull.checks
from benchmarks.driver_bugs.first import Mutant
from benchmarks.driver_mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = " ".join(f"{file.name} {file.read_text()}" for file in (ROOT / "scenarios").glob("test_*.py"))


def test_no_two_have_one_name() -> None:
    names = [one.name for one in MUTANTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_each_can_be_run_and_found(mutant: Mutant) -> None:
    assert mutant.old != mutant.new
    assert mutant.rig == "uas" or (ROOT / "rigs" / f"{mutant.rig}.toml").is_file()
    for word in mutant.scenario.replace("]", "").split():
        assert word in ("and", "or", "not") or word in SCENARIOS, word
    known = set(plugpull.checks.__all__)
    assert set(mutant.checks) & known, "none of its checks exists"


def test_the_page_says_how_many_there_are() -> None:
    assert f"all of the {len(MUTANTS)} |" in (ROOT / "framework/benchmarks/README.md").read_text()
