from plugpull.checks import array_survived, legs_hold, nothing_lost, removed, returned
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig


def test_a_second_member_goes_during_the_rebuild_of_the_first(rig: ScenarioRig) -> None:
    """A RAID 6 loses a member under load. While that is rebuilt, a second one goes. The array goes on, and both are in
    it again in the end."""
    victim, survivors = rig.choose_victim()
    second, *others = survivors or (victim,)
    with rig.array("raid6", (victim, second, *others[:2]), bitmap=False) as array:
        with rig.stamp(array, flushed_writes) as load:
            load.run_for(seconds=1)
            with rig.cut(victim.cable, when=load.something_to_lose(array)):
                array.wait_degraded()
            array.add(victim)
            array.wait_resyncing()
            with rig.cut(second.cable):
                array.wait_degraded(members=2)
            array.add(second)
            array.wait_clean()
        array.check()
    rig.judge(
        array_survived(array),
        legs_hold(array),
        nothing_lost(array),
        removed([victim, second]),
        returned([victim, second]),
    )
