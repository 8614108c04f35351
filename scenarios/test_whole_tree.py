import pytest

from plugpull.checks import data_intact, ended_with_error, kernel_clean, nothing_left, nothing_stuck, removed, returned
from plugpull.load import sequential_read, sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X11")
def test_the_whole_tree_is_cut_in_operation(rig: ScenarioRig) -> None:
    """Every disk is cut off at once in the middle of writing. Plugged in again, all are usable without a reboot."""
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(*rig.whole_tree()):
            rig.wait(seconds=1)
    with rig.load(rig.disks, sequential_read) as load:
        load.settle()
    rig.judge(
        removed(rig.disks),
        ended_with_error(rig.disks),
        returned(rig.disks),
        data_intact(rig.disks),
        kernel_clean(),
        nothing_left(),
        nothing_stuck(),
    )
