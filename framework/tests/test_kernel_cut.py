"""Lines that a mail program, a terminal or a pager cut: what is certain in their beginning, and what is not."""

from __future__ import annotations

import pytest
from test_kernel_fresh import labelled

from plugpull.kernel.catalogue.classify import classify
from plugpull.kernel.catalogue.entries import read_text
from plugpull.kernel.catalogue.finder import listed
from plugpull.kernel.catalogue.half_lines import entry_of_half
from plugpull.kernel.catalogue.prefix import split_prefix
from plugpull.kernel.catalogue.vocabulary import NAME
from plugpull.kernel.census.record import recorded
from plugpull.kernel.census.words import vocabulary

CUT = (
    ("scsi.error", "sd 6:0:0:0: [sdc] tag#18 FAILED"),
    ("scsi.error", "sd 6:0:0:0: [sdc]  Result:"),
    ("scsi.error", "sd 6:0:0:0: [sdc] tag#0 UNKNOWN(0x2003) Result: hostby="),
    ("scsi.offline", "sd 6:0:0:0: rejecting I/O to"),
    ("storage.cache-error", "sd 6:0:0:0: [sdc] Synchronize Cache(10)"),
    ("storage.attach", "sd 6:0:0:0: [sdc] 1953525168 512-byte"),
    ("storage.attach", "scsi 6:0:0:0: Direct-Access     QEMU"),
    ("block.error", "Buffer I/O error on dev"),
    ("block.error", "blk_update_request: I/O error, dev"),
    ("block.error", "critical medium error, dev sdc,"),
    ("block.error", "operation not supported error, dev sdc,"),
    ("usb.enumeration-error", "usb 1-2: device descriptor"),
    ("usb.link-error", "usb 1-2: not running at"),
    ("usb.reset", "usb 4-1: reset SuperSpeed Gen 1"),
    ("usb.disconnect", "usb 4-1: USB disconnect,"),
    ("usb.connect", "usb 4-1: new high-speed"),
    ("hcd.died", "xhci_hcd 0000:00:14.0: HC died"),
    ("hcd.error", "xhci_hcd 0000:00:14.0: ERROR"),
    ("hcd.error", "xhci_hcd 0000:00:14.0: xHCI host not responding to"),
    ("nvme.error", "nvme nvme0: I/O tag 2 (a002) opcode"),
    ("md.failure", "md/raid1:md0: Disk failure on"),
    ("md.failure", "md/raid10:md0: insufficient working"),
    ("fs.error", "FAT-fs (sdb1): Volume was not"),
    ("fs.error", "BTRFS info (device sdd): bdev /dev/sdb errs: wr"),
    ("fatal.hung-task", "INFO: task usb-storage:123 blocked for more than 1"),
)
UNCERTAIN = (
    "sd 6:0:0:0: [sdc] tag#18",
    "sd 6:0:0:0: [sdc] 4096-byte physical",
    "usb 1-2: device",
    "xhci_hcd 0000:00:14.0: HC",
    "usb 1-2: new driver",
    "usb 4-1: Product: reset",
    "xhci_hcd 0000:00:14.0: xHCI Host",
    "xhci_hcd 0000:00:14.0: HCD",
    "scsi 6:0:0:0: Attached scsi",
    "nvme nvme0: I/O queues",
    "md/raid1:md0: active with",
    "md/raid10:md0: using",
    "critical temperature, dev sdc",
    "FAT-fs (sdb1): utf8 is not",
    "INFO: task usb-storage:123",
    "blk_update_request: 153",
    "Buffer",
    "BTRFS info (device sdd): bdev /dev/sdb",
)


@pytest.mark.parametrize(("kind", "text"), CUT)
def test_what_is_left_of_a_line_is_certain(kind: str, text: str) -> None:
    event = classify(f"Nov 12 13:45:01 host kernel: [   12.345678] {text}")
    assert event is not None
    assert event.kind == kind


@pytest.mark.parametrize("text", UNCERTAIN)
def test_what_is_left_of_a_line_may_be_anything(text: str) -> None:
    event = classify(f"Nov 12 13:45:01 host kernel: [   12.345678] {text}")
    assert event is None, event


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("usb.disconnect", "usb 1-2.3: USB discon"),
        ("usb.connect", "usb 1-2: new SuperSp>"),
        ("ata.error", "ata3.00: exception Em\u2026"),
        ("storage.cache", "sd 6:0:0:0: [sdc] Write cache: ena..."),
        ("usb.enumeration-error", "hub 1-0:1.0: unable to enum"),
        ("fs.error", "XFS (sdb1): Metadata corr"),
        ("md.failure", "md/raid1:md0: Disk fai"),
        ("hcd.error", "xhci_hcd 0000:00:14.0: xHCI host not resp"),
        ("fs.error", "EXT4-fs (sdb1): error count si"),
        ("scsi.error", "sd 6:0:0:0: [sdc] tag#0 Sense Key="),
        ("fs.error", "EXT3-fs erro"),
        ("nvme.error", "nvme nvme0: I/O tag 1 (3001) type 4 opcode 0x18 (Keep"),
        ("block.error", "Buffer I/"),
        ("usb.reset", "usb 1-7: reset full spe"),
    ],
)
def test_a_half_that_ends_anywhere(kind: str, text: str) -> None:
    event = classify(f"[   12.345678] {text}")
    assert event is not None
    assert event.kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "XFS (sdb1): Ending",  # recovery, or a clean mount
        "XFS (sdb1): Unmount",  # "Unmount and run xfs_repair", or "Unmounting Filesystem"
        "EXT4-fs (sdb1): mounted file",
        "ata3: SATA link",
        "usb 1-2: can't",
        "hub 1-2.1:1.0: usb_probe_interface",  # a whole message for debugging
        "BTRFS info",
        "print_req_error",  # how many were suppressed
        "scsi host1",
        "EXT4-fs",
        "scsi host14:",
        "udisksd[123]: usb 1-2: USB discon",
    ],
)
def test_a_half_that_may_be_something_else(text: str) -> None:
    event = classify(f"[   12.345678] {text}")
    assert event is None, event


def test_no_half_alarms() -> None:
    """A half line must not look like a broken kernel."""
    assert entry_of_half("INFO: task usb-storage:123 bloc") is None


def test_the_vocabulary_has_the_kinds_of_the_catalogue() -> None:
    """``python -m plugpull.kernel.census --words`` writes it."""
    assert read_text(NAME) == vocabulary(recorded().messages)


def test_halves_of_whole_lines_are_right_or_unnamed() -> None:
    """Every beginning of the lines whose kind is known, and of those with nothing to report."""
    wrong, named, halves = [], 0, 0
    for line in labelled():
        body = split_prefix(line.text)[1].strip()
        for end in range(12, len(body) - 4, 9):
            half = body[:end].rstrip()
            if listed(half) is None and (listed(body) is not None or not line.found):
                found = entry_of_half(half)
                halves += 1
                named += found is not None
                if found is not None and found.kind != line.found:
                    wrong.append((found.kind, line.found, half, body))
    assert named > 500
    assert len(wrong) <= 0.002 * halves, wrong
