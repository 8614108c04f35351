import pytest

from plugpull.checks import array_survived, data_intact, legs_hold, nothing_lost, removed, returned
from plugpull.integrity.patterns import flushed_writes
from plugpull.load import Pattern
from plugpull.scenario import ScenarioRig

ARRAYS = [("raid1", 2), ("raid10", 4), ("raid5", 3), ("raid6", 4)]
random_reads = Pattern("random reads", "randread", block=16 << 10, depth=4)


@pytest.mark.parametrize(("level", "members"), ARRAYS, ids=[level for level, _ in ARRAYS])
def test_an_array_loses_a_member_and_gets_it_back(rig: ScenarioRig, level: str, members: int) -> None:
    """A member of an array is unplugged while the array is written and flushed. The array goes on without it, and
    everything can be read. The member is plugged in and put back, and gets what it missed while the writing goes on."""
    victim, survivors = rig.choose_victim()
    with rig.array(level, (victim, *survivors[: members - 1])) as array:
        with rig.stamp(array, flushed_writes) as load:
            load.run_for(seconds=1)
            with rig.cut(victim.cable, when=load.something_to_lose(array)):
                array.wait_degraded()
                load.next_round()
                rig.wait(seconds=1)
            array.readd(victim)
            array.wait_clean()
        array.check()
    rig.judge(array_survived(array), legs_hold(array), nothing_lost(array), removed(victim), returned(victim))


@pytest.mark.parametrize(("level", "members"), ARRAYS, ids=[level for level, _ in ARRAYS])
def test_an_array_is_read_when_a_member_goes(rig: ScenarioRig, level: str, members: int) -> None:
    """An array is read here and there, and not written, when a member is unplugged. The array notices by itself, and
    no reader sees an error: md reads the other members. The member is plugged in and put back."""
    victim, survivors = rig.choose_victim()
    with rig.array(level, (victim, *survivors[: members - 1])) as array:
        with rig.load(array, random_reads) as load:
            load.run_for(seconds=1)
            with rig.cut(victim.cable):
                array.wait_degraded()
                rig.wait(seconds=1)
            array.readd(victim)
            array.wait_clean()
        array.check()
    rig.judge(array_survived(array), legs_hold(array), data_intact(array), removed(victim), returned(victim))


def test_a_mirror_without_a_bitmap_is_copied_whole(rig: ScenarioRig) -> None:
    """A member of a mirror without a bitmap is unplugged under load. It is added again as a new member, and everything
    is copied to it. What is read meanwhile must not come from it."""
    victim, survivors = rig.choose_victim()
    with rig.array("raid1", (victim, *survivors[:1]), bitmap=False) as array:
        with rig.stamp(array, flushed_writes) as load:
            load.run_for(seconds=1)
            with rig.cut(victim.cable, when=load.something_to_lose(array)):
                array.wait_degraded()
            array.add(victim)
            load.next_round()
            array.wait_clean()
        array.check()
    rig.judge(array_survived(array), legs_hold(array), nothing_lost(array), removed(victim), returned(victim))
