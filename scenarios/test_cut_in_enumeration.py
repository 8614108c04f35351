from plugpull.checks import kernel_clean, nothing_left, nothing_stuck, returned
from plugpull.faults import bounce
from plugpull.scenario import ScenarioRig

WITHIN = 20.0
"""Seconds. A control transfer to a device that has just gone away takes 5 s to fail (USB_CTRL_GET_TIMEOUT), and the hub
driver begins again after that."""
DELAYS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0)
"""Seconds from plugging in to the next cut: from the first reset of the port to the first reads of the disk."""


def test_a_cable_is_cut_while_the_disk_is_set_up(rig: ScenarioRig) -> None:
    """A disk is plugged in, and its cable comes loose again while the kernel still sets it up: after 1 ms, 3 ms, and so
    on to 2 s. Each time it comes back afterwards, and nothing of the attempts stays behind."""
    victim, _ = rig.choose_victim()
    for delay in DELAYS:
        with rig.fault(bounce(victim.cable, gaps=(0.2, delay, 0.2))):
            pass
    rig.judge(returned(victim, within=WITHIN), nothing_left(), nothing_stuck(), kernel_clean())
