import pytest

from plugpull.checks import data_intact, ended_with_error, removed, undisturbed
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X05")
def test_a_disk_dies_in_use(rig: ScenarioRig) -> None:
    """A disk loses its power for good while it is written. Its users get an error and can be ended; the disk
    leaves the kernel's list; the other disks are not affected."""
    victim, survivors = rig.choose_victim("power")
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(victim.power, when=load.moved(victim, "1 MiB"), permanent=True):
            load.regain_pace(at_least=2)
    rig.judge(
        removed(victim),
        ended_with_error(victim),
        *undisturbed(survivors),
        data_intact(survivors),
    )
