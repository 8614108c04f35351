"""The page of the stock scenarios lists each of them as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scenario_table import COMMAND, README, SCENARIOS, stock_scenarios, written

EXAMPLE = '''
import pytest

@pytest.mark.row("X98")
@pytest.mark.row("X99")
def test_a_disk_sings(rig):
    """A disk
    sings."""
    victim, survivors = rig.choose_victim("power")
    use(rig)
    rig.judge(removed(victim), *undisturbed(survivors))

def use(rig):
    rig.filesystem(rig.disks[0])
'''


@pytest.mark.skipif(not SCENARIOS.is_dir(), reason="only in a checkout")
def test_the_page_is_up_to_date() -> None:
    text = README.read_text()
    assert written(text) == text, f"the table of scenarios is out of date; run: {COMMAND}"


def test_every_scenario_has_a_story_and_judges_something() -> None:
    listed = list(stock_scenarios())
    assert len(listed) > 15
    assert [one.name for one in listed if not one.story or not one.checks] == []


def test_what_is_read_of_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "test_song.py").write_text(EXAMPLE)
    (one,) = stock_scenarios(tmp_path)
    assert (one.file, one.name, one.story) == ("test_song.py", "test_a_disk_sings", "A disk sings.")
    assert one.rows == ("X99", "X98"), "the mark that pytest takes comes first"
    assert one.needs == ("a scratch disk whose power can be cut", "mkfs.ext4 on the DUT")
    assert one.checks == ("removed", "undisturbed")


ROWS = [
    *(f"R{number:02}" for number in range(1, 11)),
    *(f"U{number:02}" for number in range(1, 9)),
    *(f"A{number:02}" for number in range(1, 4)),
    *(f"F{number:02}" for number in range(1, 8)),
    *(f"X{number}" for number in range(22, 29)),
]
"""What the earlier studies measured."""


def _row_table(text: str) -> dict[str, str]:
    """By row, its line in the section of the page that lists what measures it."""
    lines = text.partition("### Rows")[2].partition("\n## ")[0].splitlines()
    return {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}


@pytest.mark.skipif(not SCENARIOS.is_dir(), reason="only in a checkout")
def test_each_row_of_the_earlier_studies_is_listed_with_what_runs_it() -> None:
    listed = _row_table(README.read_text())
    assert [row for row in ROWS if row not in listed] == []
    scenarios = list(stock_scenarios())
    for one in scenarios:
        for row in set(one.rows) & set(ROWS):
            assert f"`{one.file}`" in listed[row], f"{one.file} is marked with {row}"
    for row, line in listed.items():
        for named in re.findall(r"`(test_\w+\.py)`", line):
            assert any(row in one.rows for one in scenarios if one.file == named), f"{named} is not marked with {row}"


def test_a_page_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the table"):
        written("# Scenarios\n")
