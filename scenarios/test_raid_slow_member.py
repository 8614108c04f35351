from plugpull.checks import array_survived, legs_hold, nothing_lost, removed, returned
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig


def test_only_the_slow_member_of_a_mirror_is_left(rig: ScenarioRig) -> None:
    """A mirror has a fast member, and a slow one that is written with a delay and not read. The fast one is unplugged
    under load: everything is read from the slow one, and is there. The fast one is put back and gets what it missed."""
    victim, survivors = rig.choose_victim()
    slow = survivors[:1]
    with rig.array("raid1", (victim, *slow), slow=slow) as array:
        with rig.stamp(array, flushed_writes) as load:
            load.run_for(seconds=1)
            with rig.cut(victim.cable, when=load.something_to_lose(array)):
                array.wait_degraded()
                load.next_round()  # everything is read while the fast one is out
                rig.wait(seconds=1)
            array.readd(victim)
            array.wait_clean()
        array.check()
    rig.judge(array_survived(array), legs_hold(array), nothing_lost(array), removed(victim), returned(victim))
