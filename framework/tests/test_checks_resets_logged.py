"""Resets that a disk on a SCSI bus got on request are in the kernel log. For USB disks: ``test_checks_two_counts``."""

from __future__ import annotations

import pytest
from stories import healthy
from test_kernel_scope import warn

from plugpull.checks.record.resets_logged import resets_unlogged
from plugpull.checks.survivors.undisturbed import undisturbed
from plugpull.history import events as ev

SYSFS = "/sys/devices/pci0000:00/0000:00:11.0/{0}/host1/target1:0:4/1:0:4:0/block/sdc"


@pytest.mark.parametrize(
    ("driver", "logged", "doubted"), [("virtio_scsi", 3, False), ("virtio_scsi", 2, True), ("megaraid_sas", 0, False)]
)
def test_resets_of_a_disk_on_a_scsi_bus_are_in_the_log(driver: str, logged: int, doubted: bool) -> None:
    """Other drivers say it in words of their own, or not at all."""
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.disk == "disk2", driver=driver, sysfs=SYSFS.format(driver))
    bench.add(ev.DiskRecovered(at=12.0, disk="disk2", until=13.0, resets=3))
    bench.add(*(warn("sd 1:0:4:0: device reset", 12.2 + number / 5, 6) for number in range(logged)))
    assert bool(list(resets_unlogged(bench.story()))) is doubted


@pytest.mark.parametrize(("resets", "doubted"), [(0, True), (1, False)])
def test_a_disk_that_was_to_be_reset_was_reset(resets: int, doubted: bool) -> None:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.disk == "disk2", driver="x", sysfs=SYSFS.format("x"))
    bench.add(ev.DiskRecovered(at=12.0, disk="disk2", until=13.0, resets=resets))
    assert (list(resets_unlogged(bench.story())) == ["disk2 was to be reset, and no reset of it was done"]) is doubted


@pytest.mark.parametrize(("until", "found"), [(11.0, 0), (12.1, 1)])
def test_resets_of_which_the_time_cannot_be_accuse_nobody(until: float, found: int) -> None:
    """They were over before they began. The record contradicts itself then, which is a doubt."""
    bench = healthy()
    bench.add(ev.DiskRecovered(at=12.0, disk="disk2", until=until, resets=1))
    bench.add(warn("usb 1-1.2: reset high-speed USB device number 5 using xhci_hcd", 14.5, 6))
    assert len(bench.judge(undisturbed()).findings) == found
