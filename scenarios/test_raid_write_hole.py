import pytest

from plugpull.checks import array_failed, legs_hold, nothing_lost, removed, returned
from plugpull.faults import cut
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig


@pytest.mark.parametrize("log", [False, True], ids=["without-log", "ppl"])
def test_a_degraded_array_stops_in_the_middle_of_a_write(rig: ScenarioRig, log: bool) -> None:
    """A RAID 5 loses a member and is written on, then it loses another one in the middle of a write. It is assembled of
    those that it had last, by force if md does not take them, and the first member is rebuilt. What was flushed is
    there, apart from the stripes of the writes that were cut off. With a partial parity log they are whole as well,
    unless it took force."""
    victim, survivors = rig.choose_victim()
    disks = (victim, *survivors[:2])
    with rig.array("raid5", disks, bitmap=False, ppl=log) as array, rig.stamp(array, flushed_writes) as load:
        load.run_for(seconds=2)
        gone = [rig.fault(cut(disk.cable)) for disk in disks[:2]]
        for number, one in enumerate(gone, 1):
            one.inject()
            array.wait_degraded(members=number)
            rig.wait(seconds=1)
        stopped = array.stop()
        for one in reversed(gone):
            one.heal()
        if stopped and (array.assemble(*disks[1:]) or array.assemble(*disks[1:], force=True)):
            array.add(victim)
            array.wait_clean()
    rig.judge(array_failed(array), legs_hold(array), nothing_lost(array), removed(disks[:2]), returned(disks[:2]))
