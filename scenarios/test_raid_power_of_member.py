from plugpull.checks import array_survived, legs_hold, nothing_lost, removed, returned
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig


def test_a_member_of_a_mirror_loses_its_power(rig: ScenarioRig) -> None:
    """A member of a mirror loses its power, and with it what its write cache had not written yet. When it is back in
    the array, it holds everything: what was flushed before, and what it missed."""
    victim, survivors = rig.choose_victim("power")
    with rig.array("raid1", (victim, *survivors[:1]), bitmap="64 KiB") as array:
        with rig.stamp(array, flushed_writes) as load:
            load.settle()
            with rig.cut(victim.power, when=load.something_to_lose(array)):
                array.wait_degraded()
            array.readd(victim)
            array.wait_clean()
        array.check()
    rig.judge(array_survived(array), legs_hold(array), nothing_lost(array), removed(victim), returned(victim))
