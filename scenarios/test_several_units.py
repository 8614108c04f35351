import pytest

from plugpull.checks import data_intact, other_units, removed, returned, undisturbed
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("A03")
def test_one_device_takes_several_disks_with_it(rig: ScenarioRig) -> None:
    """One USB device has several disks as logical units. Its cable comes loose while everything is written: all of them
    go at once, and all come back as themselves. The other disks write on."""
    units, survivors = rig.choose_enclosure()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(units[0].cable, when=load.moved(units[0], "1 MiB")):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(removed(units), returned(units), *undisturbed(survivors), data_intact(rig.disks))


@pytest.mark.row("F05")
def test_a_false_cdrom_is_not_taken_for_a_disk(rig: ScenarioRig) -> None:
    """A stick shows a false CD-ROM beside its disk. The CD-ROM is reported, is never written, and goes and comes with
    the disk when the cable comes loose while everything is written."""
    victim, survivors = rig.choose_with_other_unit()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(victim.cable, when=load.moved(victim, "1 MiB")):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(other_units(victim), removed(victim), returned(victim), *undisturbed(survivors), data_intact(rig.disks))
