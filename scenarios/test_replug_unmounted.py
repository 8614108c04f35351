import pytest

from plugpull.checks import data_intact, kernel_clean, nothing_left, nothing_stuck, removed, returned
from plugpull.load import idle
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X02")
def test_a_disk_and_then_the_tree_are_replugged(rig: ScenarioRig) -> None:
    """All disks are idle. One is unplugged and plugged in again, then the whole tree; all come back with their data."""
    victim, _ = rig.choose_victim()
    with rig.load(rig.disks, idle):
        with rig.cut(victim.cable):
            rig.wait(seconds=1)
        with rig.cut(*rig.whole_tree()):
            rig.wait(seconds=1)
    rig.judge(
        removed(rig.disks), returned(rig.disks), data_intact(rig.disks), kernel_clean(), nothing_left(), nothing_stuck()
    )
