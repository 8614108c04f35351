import pytest

from plugpull.checks import data_intact, kernel_clean, no_culprit, no_errors, nothing_stuck
from plugpull.load import Pattern, fio_write, sequential_read
from plugpull.scenario import ScenarioRig

random_reads = Pattern("random reads", "randread", block=16 << 10, depth=4)


@pytest.mark.row("X16")
def test_errors_of_one_transfer_leave_the_others_alone(rig: ScenarioRig) -> None:
    """One disk is written through a filesystem while the others are read. If the filesystem or the disk reports an
    error, its events are listed in order with the time between them, and the other transfers go on."""
    victim, survivors = rig.choose_victim()
    with (
        rig.filesystem(victim) as volume,
        rig.load(survivors, sequential_read) as load,
        rig.load(volume, fio_write) as writing,
    ):
        writing.settle(seconds=1)
        load.settle()
        rig.wait(seconds=6)
    rig.judge(no_culprit(), no_errors(rig.disks), data_intact(survivors), kernel_clean(), nothing_stuck())


@pytest.mark.row("X17")
def test_errors_accuse_the_right_part(rig: ScenarioRig) -> None:
    """All disks are read, in order and then here and there, and nothing is cut. If there are errors, the places and the
    disks they hit say what is probably at fault: a medium, a bridge, a cable or port, or the controller."""
    for pattern in (sequential_read, random_reads):
        with rig.load(rig.disks, pattern) as load:
            load.settle()
            rig.wait(seconds=4)
    rig.judge(no_culprit(), no_errors(rig.disks), kernel_clean(), nothing_stuck())
