from itertools import permutations

import pytest

from plugpull.checks import array_failed, legs_hold, nothing_lost, removed, returned
from plugpull.faults import cut
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=lambda order: "".join(map(str, order)))
def test_members_go_one_after_the_other_and_return_in_any_order(rig: ScenarioRig, order: tuple[int, ...]) -> None:
    """The three members of a mirror are unplugged 0.1 s apart under load, and come back in another order. The array is
    assembled of them in that order: what was flushed is there, and a member that was lost early gets what it missed."""
    victim, survivors = rig.choose_victim()
    members = (victim, *survivors[:2])
    with rig.array("raid1", members) as array, rig.stamp(array, flushed_writes) as load:
        load.run_for(seconds=2)
        gone = [rig.fault(cut(disk.cable)) for disk in members]
        for one in gone:
            one.inject()
            rig.wait(seconds=0.1)
        load.wait_ended()
        rig.wait(seconds=1)
        stopped = array.stop()
        for number in order:
            gone[number].heal()
        if stopped and array.assemble(*(members[number] for number in order), force=True):
            array.add_missing()
            array.wait_clean()
    rig.judge(array_failed(array), legs_hold(array), nothing_lost(array), removed(members), returned(members))
