import pytest

from plugpull.checks import array_survived, legs_hold, nothing_lost, removed, returned
from plugpull.faults import cut
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig


def test_members_of_two_mirrors_are_out_at_the_same_time(rig: ScenarioRig) -> None:
    """A RAID 10 loses one member of each of its two mirrors while it is idle, and is written without them. The first is
    put back while the other is still out, then the other. Both get everything that they missed."""
    victim, survivors = rig.choose_victim()
    if len(survivors) < 3:
        pytest.skip("two mirrors need four scratch disks")
    mate, other, last = survivors[:3]
    with rig.array("raid10", (victim, mate, other, last)) as array:
        rig.wait(seconds=1)
        gone = [rig.fault(cut(disk.cable)).inject() for disk in (other, victim)]
        with rig.stamp(array, flushed_writes) as load:
            load.run_for(seconds=2)
            array.wait_degraded(members=2)
        for one, disk in zip(reversed(gone), (victim, other), strict=True):
            one.heal()
            array.readd(disk)
            array.wait_in_sync(disk)
        array.wait_clean()
        array.check()
    both = [victim, other]
    rig.judge(array_survived(array), legs_hold(array), nothing_lost(array), removed(both), returned(both))
