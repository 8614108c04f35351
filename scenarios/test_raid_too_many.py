import pytest

from plugpull.checks import array_failed, legs_hold, nothing_lost, removed, returned
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig

ARRAYS = [("raid0", 2), ("raid1", 2), ("raid10", 4), ("raid5", 3), ("raid6", 4)]


@pytest.mark.parametrize(("level", "members"), ARRAYS, ids=[level for level, _ in ARRAYS])
def test_more_members_go_than_the_array_can_do_without(rig: ScenarioRig, level: str, members: int) -> None:
    """Every member of an array is unplugged under load. Whoever writes gets an error, nothing hangs, and the array can
    be stopped. When its disks are back, it is assembled again, and what was flushed is there."""
    victim, survivors = rig.choose_victim()
    disks = (victim, *survivors[: members - 1])
    with rig.array(level, disks) as array, rig.stamp(array, flushed_writes) as load:
        load.run_for(seconds=1)
        with rig.cut(*(disk.cable for disk in disks), when=load.something_to_lose(array)):
            load.wait_ended()
            rig.wait(seconds=1)
        if array.stop() and array.assemble(force=level != "raid0"):
            array.add_missing()
            array.wait_clean()
    rig.judge(array_failed(array), legs_hold(array), nothing_lost(array), removed(disks), returned(disks))
