import pytest

from plugpull.checks import data_intact, removed, returned, undisturbed
from plugpull.load import fio_write, sequential_write
from plugpull.scenario import ScenarioRig
from plugpull.targets.disk import RigDisk


@pytest.mark.row("X03")
def test_a_disk_is_exchanged_by_the_book(rig: ScenarioRig) -> None:
    """A disk is unmounted and unplugged. After it is plugged in, it gets a filesystem and is used again. The others are
    written all the time and do not notice."""
    victim, survivors = rig.choose_victim()
    with rig.load(survivors, sequential_write) as load:
        load.settle()
        use(rig, victim)
        with rig.cut(victim.cable):
            rig.wait(seconds=1)
        use(rig, victim)
        load.regain_pace()
    rig.judge(removed(victim), returned(victim), *undisturbed(survivors), data_intact(survivors))


def use(rig: ScenarioRig, disk: RigDisk) -> None:
    """Make a filesystem, write to it for a moment, and unmount it."""
    with rig.filesystem(disk) as volume, rig.load(volume, fio_write) as load:
        load.settle(seconds=0.5)
