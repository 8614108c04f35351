import pytest

from plugpull.checks import kernel_clean, leak_slope, nothing_left, returned
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig


@pytest.mark.row("X21")
def test_many_cuts_leave_nothing_behind(rig: ScenarioRig) -> None:
    """An idle disk is unplugged and plugged in sixteen times. Nothing of it stays behind on the machine, and the
    kernel's memory does not grow with every cut."""
    victim, _ = rig.choose_victim()
    for _ in range(16):
        with rig.cut(victim.cable):
            rig.wait(seconds=0.1)
        rig.take_census()
    rig.judge(returned(victim), leak_slope(), nothing_left(), kernel_clean())


@pytest.mark.row("X21")
def test_cuts_of_a_busy_disk_leave_nothing_behind(rig: ScenarioRig) -> None:
    """A disk is unplugged thirteen times while it is written, each time in the middle of a command. Nothing of the
    commands that were cut off stays behind in the kernel's memory."""
    victim, _ = rig.choose_victim()
    for _ in range(13):
        with rig.load(victim, sequential_write) as load, rig.cut(victim.cable, when=load.moved(victim, "64 KiB")):
            rig.wait(seconds=0.1)
        rig.take_census()
    rig.judge(returned(victim), leak_slope(), nothing_left(), kernel_clean())
