import pytest

from plugpull.checks import commands_in_time, nothing_left, removed, returned, undisturbed
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("U06")
def test_no_command_times_out_when_a_disk_starts(rig: ScenarioRig) -> None:
    """A disk is plugged in three times, and written at once each time while the others are written. Commands that time
    out are counted, and placed by how long after the start of the disk they came."""
    victim, survivors = rig.choose_victim()
    with rig.load(survivors, sequential_write) as load:
        load.settle()
        for _ in range(3):
            with rig.cut(victim.cable):
                rig.wait(seconds=0.2)
            with rig.load(victim, sequential_write) as first:
                first.settle(seconds=1)
        load.regain_pace()
    rig.judge(commands_in_time(rig.disks), removed(victim), returned(victim), *undisturbed(survivors), nothing_left())
