import pytest

from plugpull.checks import answered, data_intact, kernel_clean, no_errors, nothing_stuck
from plugpull.load import Pattern
from plugpull.scenario import ScenarioRig

large_reads = Pattern("sequential reads of 240 sectors", "read", block=240 * 512, depth=1)
"""240 sectors is the most that usb-storage transfers at once on a High-Speed link (drivers/usb/storage/scsiglue.c)."""


@pytest.mark.row("X19")
def test_no_read_stalls(rig: ScenarioRig) -> None:
    """All disks are read with the largest transfers that every bridge is sent, and nothing is cut. A disk that pauses
    in the middle of a read is found within seconds."""
    with rig.load(rig.disks, large_reads) as load:
        load.settle()
        rig.wait(seconds=10)
    rig.judge(answered(), no_errors(rig.disks), data_intact(rig.disks), kernel_clean(), nothing_stuck())
