from plugpull.checks import array_survived, legs_hold, nothing_lost, removed, returned
from plugpull.integrity.patterns import flushed_writes
from plugpull.scenario import ScenarioRig


def test_an_array_loses_everything_behind_a_hub(rig: ScenarioRig) -> None:
    """A mirror has one member behind a hub and one elsewhere. The hub's cable comes loose under load and is put back.
    The array goes on, and its member is put back."""
    hub, victims, survivors = rig.choose_hub()
    with rig.array("raid1", (*victims[:1], *survivors[:1])) as array:
        with rig.stamp(array, flushed_writes) as load:
            load.run_for(seconds=1)
            with rig.cut(hub.cable, when=load.something_to_lose(array)):
                array.wait_degraded()
            array.readd(victims[0])
            array.wait_clean()
        array.check()
    rig.judge(array_survived(array), legs_hold(array), nothing_lost(array), removed(victims), returned(victims))
