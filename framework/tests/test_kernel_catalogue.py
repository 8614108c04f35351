"""The classifier: each kind has a line that gives it, and look-alikes give nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugpull.kernel.catalogue.classify import classify, subject_of
from plugpull.kernel.catalogue.entries import ENTRIES
from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.uncatalogued import about_storage
from plugpull.kernel.diagnosis.headline import panic_headline

LINES = (
    ("usb.connect", "1-2.3", "usb 1-2.3: new high-speed USB device number 5 using xhci_hcd"),
    ("usb.connect", "2-1", "usb 2-1: new SuperSpeed Plus Gen 2x1 USB device number 7 using xhci_hcd"),
    ("usb.disconnect", "1-2.3", "usb 1-2.3: USB disconnect, device number 5"),
    ("usb.reset", "1-2", "usb 1-2: reset high-speed USB device number 5 using xhci_hcd"),
    ("usb.enumeration-error", "1-2", "usb 1-2: device descriptor read/64, error -71"),
    ("usb.enumeration-error", "usb1", "usb usb1-port2: unable to enumerate USB device"),
    ("usb.overcurrent", "1-0", "hub 1-0:1.0: over-current condition on port 2"),
    ("usb.link-error", "1-2", "usb 1-2: not running at top speed; connect to a high speed hub"),
    ("hcd.error", "0000:00:05.0", "xhci_hcd 0000:00:05.0: xHCI host not responding to stop endpoint command"),
    ("hcd.died", "0000:00:05.0", "xhci_hcd 0000:00:05.0: HC died; cleaning up"),
    ("storage.attach", "1-2", "usb-storage 1-2:1.0: USB Mass Storage device detected"),
    ("storage.attach", "sdb", "sd 2:0:0:0: [sdb] 131072 512-byte logical blocks: (67.1 MB/64.0 MiB)"),
    ("storage.attach", "sdb", "sd 2:0:0:0: [sdb] Attached SCSI removable disk"),
    ("storage.cache", "sdb", "sd 2:0:0:0: [sdb] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA"),
    ("storage.cache-error", "sdb", "sd 2:0:0:0: [sdb] Synchronize Cache(10) failed: Result: hostbyte=DID_ERROR"),
    ("storage.quirk", "1-2", "usb-storage 1-2:1.0: Quirks match for vid 152d pid 0578: 800000"),
    ("uas.error", "sdb", "sd 2:0:0:0: [sdb] tag#4 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD OUT"),
    ("scsi.error", "sdb", "sd 2:0:0:0: [sdb] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK"),
    ("scsi.error", "sdb", "sd 2:0:0:0: [sdb] tag#0 Sense Key : Aborted Command [current]"),
    ("scsi.error", "sdb", "sd 2:0:0:0: [sdb] tag#0 CDB: Write(10) 2a 00 00 00 08 00 00 00 80 00"),
    ("scsi.reset", "2:0:0:0", "sd 2:0:0:0: Power-on or device reset occurred"),
    ("scsi.reset", "2:0:0:0", "sd 2:0:0:0: device reset"),
    ("scsi.offline", "2:0:0:0", "sd 2:0:0:0: rejecting I/O to offline device"),
    ("scsi.error", "sdf", "sd 9:0:0:1: [sdf] tag#27 access beyond end of device"),
    ("scsi.offline", "sdf", "sd 9:0:0:1: [sdf] tag#3 Medium access timeout failure. Offlining disk!"),
    ("scsi.error", "sdf", "sd 9:0:0:1: [sdf] Capacity data has changed"),
    ("hcd.error", "", "virtio_scsi virtio2: request:id 12 is not a head!"),
    ("hcd.error", "", "virtio_blk virtio0: req.0:id 312 out of range"),
    ("uas.error", "sdf", "sd 9:0:0:1: [sdf] uas_sense: urb length 26 disagrees with IU sense data length 0, using 18"),
    ("ata.error", "ata3.00", "ata3.00: exception Emask 0x10 SAct 0x4000 SErr 0x4050002 action 0xe frozen"),
    ("ata.error", "ata3", "ata3: hard resetting link"),
    ("ata.error", "ata3.00", "ata3.00: status: { DRDY ERR }"),
    ("ata.error", "ata3", "ata3: SError: { PHYRdyChg CommWake DevExch }"),
    ("nvme.error", "nvme0", "nvme nvme0: I/O 416 QID 1 timeout, aborting"),
    ("nvme.error", "nvme0", "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10"),
    ("dm.error", "253:0", "device-mapper: thin: 253:0: switching pool to read-only mode"),
    ("pci.error", "0000:00:1c.5", "pcieport 0000:00:1c.5: pciehp: Slot(3): Power fault"),
    ("thunderbolt.error", "0000:05:00.0", "thunderbolt 0000:05:00.0: timeout reading config space 1 from 0x5"),
    (
        "fs.error",
        "sdb1",
        "XFS (sdb1): Metadata CRC error detected at xfs_agi_read_verify+0x5e/0x110, xfs_agi block 0x2",
    ),
    ("block.error", "sdb", "I/O error, dev sdb, sector 2048 op 0x1:(WRITE) flags 0x8800 phys_seg 1 prio class 2"),
    ("block.error", "sdb", "blk_update_request: I/O error, dev sdb, sector 2048 op 0x1:(WRITE)"),
    ("block.error", "sdb", "device offline error, dev sdb, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1"),
    ("block.error", "sdb1", "Buffer I/O error on dev sdb1, logical block 0, async page read"),
    ("block.error", "sdb", "sdb: detected capacity change from 131072 to 65536"),
    ("fatal.oops", "", "BUG: kernel NULL pointer dereference, address: 0000000000000010"),
    ("fatal.oops", "", "Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP"),
    ("fatal.oops", "", "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000010"),
    ("fatal.bug", "", "kernel BUG at drivers/usb/core/hub.c:100!"),
    ("fatal.bug", "", "BUG: scheduling while atomic: fio/123/0x00000002"),
    ("fatal.panic", "", "Kernel panic - not syncing: sysrq triggered crash"),
    ("fatal.hung-task", "kworker/u4:1", "INFO: task kworker/u4:1:33 blocked for more than 120 seconds."),
    ("fatal.lockup", "", "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [kworker/1:1:33]"),
    ("fatal.lockup", "", "rcu: INFO: rcu_preempt self-detected stall on CPU"),
    ("fatal.lockup", "", "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:"),
    ("warn.warning", "", "WARNING: CPU: 1 PID: 33 at drivers/usb/host/xhci-ring.c:1 xhci_irq+0x1/0x2 [xhci_hcd]"),
    ("warn.lockdep", "", "WARNING: possible circular locking dependency detected"),
    ("warn.sanitizer", "", "BUG: KASAN: slab-use-after-free in usb_stor_disconnect+0x1/0x2"),
    (
        "warn.sanitizer",
        "",
        "DMA-API: xhci_hcd 0000:00:10.0: device driver tries to free DMA memory it has not allocated",
    ),
    ("warn.sanitizer", "0000:00:10.0", "xhci_hcd 0000:00:10.0: DMA-API: device driver failed to check map error"),
    ("warn.warning", "", "percpu ref (blk_queue_usage_counter_release) <= 0 (0) after switching to atomic"),
    ("fs.readonly", "sdb", "EXT4-fs (sdb): shut down requested (2)"),
)

KNOWN = Path(__file__).with_name("data").joinpath("kernel_lines.txt").read_text().splitlines()[1:]


@pytest.mark.parametrize(("kind", "subject", "text"), LINES)
@pytest.mark.parametrize("stamp", ["", "[   12.345678] ", "<4>[   12.345678] ", "[   12.345678][  T123] "])
def test_each_kind(kind: str, subject: str, text: str, stamp: str) -> None:
    event = classify(stamp + text)
    assert event is not None
    assert (event.kind, event.subject) == (kind, subject)
    assert event.text == stamp + text


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("ata3.00", "ata3.00: failed command: READ FPDMA QUEUED"),
        ("ata3", "ata3: SATA link down (SStatus 0 SControl 300)"),
        ("nvme0", "nvme nvme0: I/O tag 12 (000c) opcode 0x2 (Read) QID 3 timeout, reset controller"),
        ("nvme0n1", "nvme0n1: I/O Cmd(0x2) @ LBA 2048, 8 blocks, I/O Error (sct 0x0 / sc 0x0)"),
        ("0000:00:1c.5", "pcieport 0000:00:1c.5: pciehp: Slot(3): Power fault"),
        ("0000:05:00.0", "thunderbolt 0000:05:00.0: control channel stopped unexpectedly"),
        ("253:0", "device-mapper: thin: 253:0: metadata operation 'dm_pool_commit_metadata' failed: error = -5"),
        ("sr0", "UDF-fs: error (device sr0): udf_read_inode: (ino 5) failed !bh"),
        ("sdb1", "ntfs3(sdb1): Failed to load $MFT."),
        ("sdb1", "JBD2: I/O error when updating journal superblock for sdb1-8."),
        ("sdc", "VFS: busy inodes on changed media or resized disk sdc"),
        ("scsi0", "scsi0 (0:0): rejecting I/O to offline device"),
        ("sdb1", "md: kicking non-fresh sdb1 from array!"),
        ("", "usb-storage: Error in queuecommand_lck: us->srb = ffff9d66b02e3528"),
    ],
)
def test_the_subject(subject: str, text: str) -> None:
    assert subject_of(text) == subject


@pytest.mark.parametrize("line", KNOWN, ids=lambda line: line[:60])
def test_lines_of_kernels_of_many_versions(line: str) -> None:
    kind, severity, text = line.split(" ", 2)
    event = classify(text)
    assert event is not None
    assert (event.kind, event.severity.value) == (kind, severity)


def test_every_kind_there_is() -> None:
    """The identifiers that histories, reports and people's scripts use."""
    usb = "usb.connect usb.disconnect usb.reset usb.enumeration-error usb.overcurrent usb.link-error hcd.error hcd.died"
    storage = "storage.attach storage.cache storage.cache-error storage.quirk uas.error"
    scsi = "scsi.error scsi.reset scsi.offline block.error"
    fs = "fs.error fs.readonly fs.recovery md.failure md.recovery"
    fatal = "fatal.oops fatal.bug fatal.panic fatal.hung-task fatal.lockup"
    machine = "warn.irq warn.iommu warn.memory warn.hardware warn.kobject cpu.hog hw.corrected hw.undervoltage"
    others = "ata.error nvme.error dm.error thunderbolt.error pci.error"
    rest = "warn.warning warn.lockdep warn.sanitizer log.lost"
    assert {entry.kind for entry in ENTRIES if entry.kind} == set(
        " ".join((usb, storage, scsi, fs, fatal, machine, others, rest)).split()
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "random: crng init done",
        "Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on",
        "systemd[1]: Kernel panic - not syncing: just kidding",
        "fio: BUG: unable to handle kernel NULL pointer dereference",
        "ACPI BIOS Error (bug): Could not resolve symbol",
        "hub 1-2.1:1.0: no over-current condition exists",
        "XFS (sdb1): WARNING: Reset corrupted AGFL on AG 1",
        "ODEBUG: Out of memory. ODEBUG disabled",
        "sdb: detected capacity change from 0 to 131072",
        "usb 2-2: Product: USB Attached SCSI HBA",
        "EXT4-fs (sdb): shut down requested (1)",
        "ODEBUG: out of memory. ODEBUG disabled",
        "F2FS-fs (sdb1): Can't set test_dummy_encryption on remount",
        "i915 0000:00:02.0: failed to allocate memory",
        "foo: registered new interface driver usb-storage",
        "sdb: detected capacity change from 131072 to 0",
        "DMA-API: preallocated 65536 debug entries",
        "percpu: Embedded 54 pages/cpu s184320 r8192 d28672 u1048576",
    ],
)
def test_what_must_not_fire(text: str) -> None:
    assert classify(text) is None


def test_alarming_is_what_no_unplugging_excuses() -> None:
    alarming = {kind for kind, _, text in LINES if (event := classify(text)) is not None and event.alarming}
    assert alarming == {kind for kind, _, _ in LINES if kind.startswith(("fatal.", "warn."))}
    event = classify(LINES[0][2])
    assert event is not None
    assert event.severity is Severity.INFO


def test_the_cause_is_quoted_and_not_its_consequence() -> None:
    lines = [
        "[   20.1] usb 1-1: USB disconnect, device number 2",
        "[   20.2] BUG: kernel NULL pointer dereference, address: 0000000000000010",
        "[   20.2] Oops: Oops: 0000 [#1] PREEMPT SMP",
        "[   20.2] RIP: 0010:qh_completions+0x1a/0x2f0 [ehci_hcd]",
        "[   20.3] Kernel panic - not syncing: Fatal exception in interrupt",
    ]
    assert panic_headline(lines) == (
        "BUG: kernel NULL pointer dereference, address: 0000000000000010 in qh_completions"
    )
    assert panic_headline(lines[4:]) == "Kernel panic - not syncing: Fatal exception in interrupt"
    assert panic_headline(lines[:1]) == ""


def test_a_panic_on_a_warning_is_the_warning() -> None:
    warning = "WARNING: CPU: 1 PID: 33 at fs/buffer.c:1 mark_buffer_dirty+0x1/0x2"
    panic = "Kernel panic - not syncing: kernel: panic_on_warn set ..."
    assert panic_headline([warning, panic]) == warning
    assert panic_headline([warning, "BUG: unable to handle page fault for address: 0"]).startswith("BUG:")
    assert panic_headline([warning]) == warning


def test_an_oops_on_arm_gets_its_function_too() -> None:
    lines = ["Unable to handle kernel paging request at virtual address 1", "pc : usb_hcd_unlink_urb+0x4/0x90"]
    assert panic_headline(lines).endswith(" in usb_hcd_unlink_urb")


def test_the_name_of_a_chip_is_not_that_of_a_disk() -> None:
    assert about_storage("sdb: the frobnicator failed")
    assert about_storage("sd 2:0:0:0: [sdb] the frobnicator failed")
    assert not about_storage("sdm660-pinctrl 3000000.pinctrl: pin_config_group_set op failed for group 74")


def test_letters_for_a_number_are_a_persons_words() -> None:
    message = "blk_update_request: I/O error, dev sda, sector xxxxxxxx"
    assert classify(f"> {message}") is None
    assert classify("USB port nn disabled by hub (EMI?), re-enabling") is None
    hidden = classify(f"[   12.345678] {message}")
    assert hidden is not None
    assert hidden.kind == "block.error"
