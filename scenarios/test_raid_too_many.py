import pytest

from plugpull.checks import array_failed, legs_hold, nothing_lost, removed, returned
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig


@pytest.mark.parametrize("level", ["raid0", "raid1"])
def test_more_members_go_than_the_array_can_do_without(rig: ScenarioRig, level: str) -> None:
    """Every member of an array is unplugged under load. Whoever writes gets an error, nothing hangs, and the array can
    be stopped. When its disks are back, it is assembled again, and what was flushed is there."""
    victim, survivors = rig.choose_victim()
    members = (victim, *survivors[:1])
    with rig.array(level, members) as array, rig.stamp(array, flushed_writes) as load:
        load.settle()
        with rig.cut(*(disk.cable for disk in members), when=load.something_to_lose(array)):
            rig.wait(seconds=4)
        array.stop()
        array.assemble(force=level == "raid1")
        array.add_missing()
        array.wait_clean()
    rig.judge(array_failed(array), legs_hold(array), nothing_lost(array), removed(members), returned(members))
