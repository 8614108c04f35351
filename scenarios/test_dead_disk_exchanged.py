import pytest

from plugpull.checks import data_intact, removed, returned, undisturbed
from plugpull.load import fio_write, sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X04")
def test_a_dead_disk_nobody_uses_is_exchanged(rig: ScenarioRig) -> None:
    """A disk that nobody uses dies. It is unplugged, and plugged in again with power; then it gets a filesystem and is
    used. The others are written all the time and do not notice."""
    victim, survivors = rig.choose_victim("power")
    plug = victim.cable if victim.has("cable") else victim.power
    with rig.load(survivors, sequential_write) as load:
        load.settle()
        with rig.cut(victim.power):
            rig.wait(seconds=1)
            with rig.cut(plug):
                rig.wait(seconds=1)
        with rig.filesystem(victim) as volume, rig.load(volume, fio_write) as used:
            used.settle(seconds=0.5)
        load.regain_pace()
    rig.judge(removed(victim), returned(victim), *undisturbed(survivors), data_intact(survivors))
