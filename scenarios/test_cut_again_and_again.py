import pytest

from plugpull.checks import kernel_clean, leak_slope, nothing_left, returned
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
