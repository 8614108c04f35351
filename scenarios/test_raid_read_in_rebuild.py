import pytest

from plugpull.checks import array_survived, legs_hold, nothing_lost, removed, returned
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig

ARRAYS = [("raid5", 3), ("raid10", 4), ("raid6", 4)]


@pytest.mark.parametrize(("level", "members"), ARRAYS, ids=[level for level, _ in ARRAYS])
def test_an_array_is_read_while_a_member_is_rebuilt(rig: ScenarioRig, level: str, members: int) -> None:
    """A member of an array is unplugged, and the array is written without it. It is added again as a new member, and
    everything is read while its content is computed or copied: nothing may come from it that is not there yet."""
    victim, survivors = rig.choose_victim()
    with rig.array(level, (victim, *survivors[: members - 1]), bitmap=False) as array:
        with rig.stamp(array, flushed_writes) as load:
            load.run_for(seconds=1)
            with rig.cut(victim.cable, when=load.something_to_lose(array)):
                array.wait_degraded()
                rig.wait(seconds=1)
            array.add(victim)
            array.wait_resyncing()
            load.next_round()
            array.wait_clean()
        array.check()
    rig.judge(array_survived(array), legs_hold(array), nothing_lost(array), removed(victim), returned(victim))
