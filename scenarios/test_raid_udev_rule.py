from plugpull.checks import array_survived, legs_hold, nothing_lost, removed, returned
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig


def test_the_udev_rule_removes_a_member_of_an_idle_mirror(rig: ScenarioRig) -> None:
    """A member of an idle mirror is unplugged, and removed from the array as the distribution's udev rule does: the
    array knows before anything is written. It is written without the member, which is put back then."""
    victim, survivors = rig.choose_victim()
    with rig.array("raid1", (victim, *survivors[:1])) as array:
        rig.wait(seconds=1)
        with rig.cut(victim.cable):
            array.remove_as_udev(victim)
            array.wait_degraded()
            with rig.stamp(array, flushed_writes) as load:
                load.run_for(seconds=1)
        array.readd(victim)
        array.wait_clean()
        array.check()
    rig.judge(array_survived(array), legs_hold(array), nothing_lost(array), removed(victim), returned(victim))
