import pytest

from plugpull.checks import data_intact, nothing_left, returned, undisturbed
from plugpull.faults import bounce
from plugpull.load import sequential_write
from plugpull.scenario import ScenarioRig

OPEN = (0.0, 0.001, 0.02)
"""Seconds without contact. The hub driver waits for 100 ms of steady contact before it believes in a connection
(drivers/usb/core/hub.c, HUB_DEBOUNCE_STABLE), so all of these are over before it looks."""


@pytest.mark.row("X06")
@pytest.mark.parametrize("gap", OPEN, ids=["at once", "1 ms", "20 ms"])
def test_a_cable_is_back_before_the_kernel_notices(rig: ScenarioRig, gap: float) -> None:
    """A cable is cut and restored faster than the kernel notices, while everything is written. The disk is there
    afterwards with what it had completed, and the others did not notice."""
    victim, survivors = rig.choose_victim()
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.fault(bounce(victim.cable, gaps=(gap,), when=load.moved(victim, "1 MiB"))):
            pass
        load.regain_pace()
    rig.judge(returned(victim), *undisturbed(survivors), nothing_left(), data_intact(rig.disks))
