import pytest

from plugpull.checks import data_intact, removed, returned, undisturbed
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X15")
def test_a_cable_is_put_back_and_power_is_the_last_resort(rig: ScenarioRig) -> None:
    """A cable comes loose while its disk is written, and is put back. If the disk stays invisible, its power is cycled:
    one that comes back only then needs a power cycle. The others are written all the time."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(victim.cable, when=load.moved(victim, "1 MiB")):
            rig.wait(seconds=1)
        if victim.has("power") and not rig.is_attached(victim):
            with rig.cut(victim.power):
                rig.wait(seconds=2)
        load.regain_pace()
    rig.judge(removed(victim), returned(victim), *undisturbed(survivors), data_intact(survivors))
