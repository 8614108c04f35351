"""On a SCSI bus, a disk is found before the removal of the one before was read: the log says so all the same."""

from __future__ import annotations

import pytest
from stories import BACK, GONE, RESTORED, VICTIM, healthy
from test_kernel_scope import warn

from plugpull.checks import kernel_clean
from plugpull.history import events as ev

ON_SCSI = "/sys/devices/pci0000:00/0000:00:11.0/virtio3/host1/target1:0:1/1:0:1:0/block/sdb"
UNSAID = f"disk1 was attached at {BACK:.2f} s and the kernel log does not say so"


@pytest.mark.parametrize(
    ("on_scsi", "said_at", "doubted"),
    [(True, GONE - 0.05, False), (True, None, True), (True, GONE - 20.0, True), (False, GONE - 0.05, True)],
    ids=["found early", "not in the log", "an earlier attachment", "on USB"],
)
def test_a_disk_that_is_found_before_the_removal_is_read(on_scsi: bool, said_at: float | None, doubted: bool) -> None:
    bench = healthy()
    bench.drop(ev.KernelMessage, lambda event: not GONE < (event.at or 0.0) <= BACK + 3.0)
    if on_scsi:
        bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM, sysfs=ON_SCSI, driver="virtio_scsi")
        bench.add(warn("sd 1:0:1:0: [sdb] Attached SCSI disk", 10.3, 5))
    bench.add(warn("scsi host9: a line like any other", RESTORED + 0.1, 6))
    if said_at is not None:
        bench.add(warn("sd 1:0:1:0: [sdb] Attached SCSI disk", said_at, 5))
    assert any(UNSAID in doubt for doubt in bench.unreached(kernel_clean())) is doubted
