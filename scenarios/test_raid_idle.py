from plugpull.checks import array_survived, legs_hold, nothing_lost, removed, returned
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig


def test_an_idle_mirror_notices_at_the_first_write(rig: ScenarioRig) -> None:
    """A member of an idle mirror is unplugged. Nothing in the kernel removes it from the array: the array notices at
    the first write. Then the member is put back."""
    victim, survivors = rig.choose_victim()
    with rig.array("raid1", (victim, *survivors[:1])) as array:
        rig.wait(seconds=1)
        with rig.cut(victim.cable):
            rig.wait(seconds=2)
            with rig.stamp(array, flushed_writes) as load:
                load.run_for(seconds=1)
                array.wait_degraded()
        array.readd(victim)
        array.wait_clean()
        array.check()
    rig.judge(array_survived(array), legs_hold(array), nothing_lost(array), removed(victim), returned(victim))
