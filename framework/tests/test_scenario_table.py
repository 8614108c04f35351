"""The page of the stock scenarios lists each of them as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenario_table import COMMAND, README, SCENARIOS, stock_scenarios, written

EXAMPLE = '''
import pytest

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
    assert (one.file, one.name, one.row, one.story) == ("test_song.py", "test_a_disk_sings", "X99", "A disk sings.")
    assert one.needs == ("a scratch disk whose power can be cut", "mkfs.ext4 on the DUT")
    assert one.checks == ("removed", "undisturbed")


def test_a_page_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the table"):
        written("# Scenarios\n")
