"""Messages of drivers around the disk under test: host adapters, arrays, cards, old kernels. Each beside a healthy one
that looks like it."""

from __future__ import annotations

import pytest

from plugpull.kernel.catalogue.classify import classify

FAILING = (
    ("scsi.error", "9:0:2:0", "sd 9:0:2:0: attempting task abort!scmd(0x0000000046fead3f), outstanding for 7120 ms"),
    ("scsi.error", "9:0:2:0", "sd 9:0:2:0: task abort: SUCCESS scmd(0x0000000046fead3f)"),
    ("scsi.error", "sdg", "sd 6:0:4:0: [sdg] tag#12 attempting target reset! scmd(0x00000000eb0d9438)"),
    ("scsi.error", "", "mpt3sas_cm0: fault_state(0x265d)!"),
    ("scsi.error", "", "sas: Enter sas_scsi_recover_host busy: 18 failed: 18"),
    ("scsi.error", "ata2", "sas: ata2: end_device-1:0:9: cmd error handler"),
    ("scsi.error", "", "qla2xxx [0000:49:00.0]-801c:4: Abort command issued nexus=4:3:33 -- 1 2002."),
    ("scsi.error", "", "qla2xxx 0000:06:00.0: scsi(0:10:0): DEVICE RESET ISSUED."),
    ("scsi.error", "", "qla2xxx 0000:06:00.0: LOOP DOWN detected (0 0 0)."),
    ("scsi.error", "0000:04:00.0", "lpfc 0000:04:00.0: 0:(0):0713 SCSI layer issued Device Reset (1, 0) return x2002"),
    ("scsi.error", "", "megaraid_sas 0000:06:00.0: 2163 (555s/0x0002/WARN) - Predictive failure: PD 00(e0x20/s0)"),
    ("scsi.error", "", "aacraid: Host bus reset request. SCSI hang ?"),
    ("scsi.error", "", "scsi1:0:6:0: Attempting to queue a TARGET RESET message"),
    ("scsi.error", "", "3w-9xxx: scsi0: AEN: ERROR (0x04:0x0009): Drive timeout detected:port=3."),
    ("scsi.error", "", "ufshcd-qcom 1d84000.ufshc: ufshcd_abort: Device abort task at tag 12"),
    ("scsi.error", "", "st0: Error 10000 (sugg. bt 0x0, driver bt 0x0, host bt 0x1)."),
    ("scsi.error", "", "ufshcd-mtk 112b0000.ufshci: ufshcd_try_to_abort_task: cmd pending in the device. tag = 7"),
    ("fs.recovery", "md0", "Starting XFS recovery on filesystem: md0 (logdev: internal)"),
    ("hw.corrected", "", "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0"),
    ("warn.hardware", "", "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0"),
    ("hcd.error", "0000:b1:00.0", "xhci_hcd 0000:b1:00.0: PCI post-resume error -19!"),
    ("hcd.error", "0000:00:1d.7", "ehci_hcd 0000:00:1d.7: startup error -110"),
    ("hcd.error", "0000:01:00.0", "xhci_hcd 0000:01:00.0: A Set TR Deq Ptr command is pending."),
    ("md.failure", "", "raid5: not enough operational devices for md0 (2/3 failed)"),
    ("md.failure", "md1", "md/raid1:md1: active with 0 out of 4 mirrors"),
    ("fs.error", "", 'VFS: Cannot open root device "mmcblk0p2" or unknown-block(179,2): error -5'),
    ("fs.error", "", "Page cache invalidation failure on direct I/O.  Possible data corruption due to collision"),
    ("fs.error", "sdb1", "XFS (sdb1): Superblock has unknown incompatible features (0x20) enabled."),
    ("fs.error", "sdb1", "EXT4-fs (sdb1): couldn't mount RDWR because of unsupported optional features (400)"),
    ("fs.error", "sdc1", "ntfs3: sdc1: It is recommened to use chkdsk."),
    ("fs.error", "dm-0", "F2FS-fs (dm-0): (0) : Unaligned zone reset attempted (block 280000 + 80000)"),
    ("fs.recovery", "sdb1", "EXT4-fs (sdb1): 9 orphan inodes deleted"),
    ("fs.recovery", "sdb1", "EXT4-fs (sdb1): INFO: recovery required on readonly filesystem"),
    ("fs.recovery", "sdb1", "EXT4-fs (sdb1): write access will be enabled during recovery"),
    ("fs.recovery", "dm-0", "F2FS-fs (dm-0): Zone without valid block has non-zero write pointer"),
    ("dm.error", "", "device-mapper: space map metadata: unable to allocate new metadata block"),
    ("dm.error", "", "device-mapper: dm-multipath: Failing path 8:96."),
    ("ata.error", "ata1.00", "ata1.00: irq_stat 0x08000000, interface fatal error"),
    ("block.error", "mmc0", "mmc0: error -110 whilst initialising SD card"),
    ("block.error", "mmc1", "mmc1: Got data interrupt 0x00000002 even though no data operation was in progress."),
    ("block.error", "mtdblock0", "Buffer I/O error on dev mtdblock0, logical block 0, async page read"),
    ("block.error", "", "I/O error: dev 08:01, sector 202605"),
    ("usb.connect", "", "hub.c: new USB device 00:07.2-2, assigned address 3"),
    ("usb.disconnect", "", "usb.c: USB disconnect on device 00:07.2-2 address 2"),
    (
        "fatal.oops",
        "",
        "CPU 0 Unable to handle kernel paging request at virtual address 00000000, epc == 80123456, ra == 0",
    ),
    ("fatal.oops", "", "Oops[#1]:"),
    ("fatal.oops", "", "Kernel bug detected[#1]:"),
    ("fatal.oops", "", "Data bus error, epc == 80123456, ra == 80123450"),
    ("fatal.oops", "", "Oops [#1]"),
    ("fatal.oops", "", "Oops - illegal instruction [#1]"),
    ("fatal.oops", "", "BUG: Unable to handle kernel data access at 0xc0080000"),
    ("fatal.oops", "", "Kernel attempted to read user page (0) - exploit attempt? (uid: 0)"),
    ("fatal.oops", "", "SError Interrupt on CPU0, code 0x00000000bf000000 -- SError"),
    ("fatal.oops", "", "double fault: 0000 [#1] SMP"),
    ("fatal.lockup", "", "watchdog: CPU 3 self-detected hard LOCKUP @ __update_freelist_slow+0x74/0x90"),
    ("fatal.panic", "", "Kernel panic: VFS: Unable to mount root fs on unknown-block(0,0)"),
    ("fatal.bug", "", "Bad page state in process 'kswapd0'"),
    ("fatal.bug", "", "mm/memory.c:127: bad pmd ffff810000207208(9090909090909090)."),
    ("warn.warning", "", "WARNING: CPU: 13 PID: 6944 at"),
)
HEALTHY = (
    "sd 9:0:2:0: Attached scsi generic sg2 type 0",
    "scsi target11:0:1: handle(0x0009), sas_address(0x4433221105000000), phy(5)",
    "mpt3sas_cm0: sending port enable !!",
    "mpt2sas_cm0: sending diag reset !!",  # at each start
    "mpt2sas_cm0: diag reset: SUCCESS",
    "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: DEV 0000:64:0a.0",
    "XFS mounting filesystem md0",
    "mpt3sas_cm0: host_add: handle(0x0001), sas_addr(0x500605b00b4e2c10), phys(8)",
    "sas: DONE DISCOVERY on port 0, pid:123, result:0",
    "sas: ata3: end_device-1:0:10: model name",
    "qla2xxx [0000:49:00.0]-500a:4: LOOP UP detected (8 Gbps).",
    "qla2xxx 0000:06:00.0: LOOP UP detected (8 Gbps).",
    "lpfc 0000:04:00.0: 0:1303 Link Up Event x1 received Data: x1 x0 x80 x0 x0 x0 0",
    "megaraid_sas 0000:06:00.0: 2163 (555s/0x0020/INFO) - Patrol Read complete",
    "megaraid_sas 0000:06:00.0: FW now in Ready state",
    "aacraid: Host adapter is ready",
    "scsi1 : Adaptec AIC7902 Ultra320 SCSI adapter",
    "3w-9xxx: scsi0: AEN: INFO (0x04:0x0029): Verify started:unit=0.",
    "ufshcd-qcom 1d84000.ufshc: ufshcd_populate_vreg: Unable to find vdd-hba-supply regulator, assuming enabled",
    "st 0:0:10:0: Attached scsi generic sg7 type 1",
    "xhci_hcd 0000:b1:00.0: new USB bus registered, assigned bus number 4",
    "raid5: device sdc1 operational as raid disk 1",
    "VFS: Mounted root (squashfs filesystem) readonly on device 31:7.",
    "XFS (sdb1): Superblock has unknown compatible features (0x1) enabled.",
    "EXT4-fs (sdb1): mounted filesystem with ordered data mode. Opts: (null)",
    "EXT4-fs error: 3 callbacks suppressed",
    "F2FS-fs (dm-0): IO Block Size:        4 KB",
    "device-mapper: multipath service-time: version 0.3.0 loaded",
    "mmc0: new high speed SDHC card at address 59b4",
    "mmc0: tuned at phase 3 of 8",
    "hub.c: USB hub found",
    "app.c:127: bad pmd",
    " uas_submit_urbs+0x10/0x2c [uas]",
    " ? uas_eh_abort_handler+0x10/0x2c [uas]",
    "[<ffffffff80011ace>] uas_log_cmd_state+0x10/0x2c",
    "epc : uas_submit_urbs+0x10/0x2c",
    "pc : uas_zap_pending+0x10/0x2c [uas]",
    "PC is at uas_submit_urbs+0x10/0x2c",
    "RIP: 0010:uas_submit_urbs+0x1b/0x5a0 [uas]",
    "RIP  [<ffffffffa01e2f5b>] uas_submit_urbs+0x1b/0x5a0 [uas]",
    "NIP [c00800000f2c1b04] uas_submit_urbs+0x1b/0x5a0 [uas]",
    "Oops - that did not work",
    "oops=panic is set",
    "CPU 0 is now offline",
    "watchdog: CPU 3 TB:5287683334232, last heartbeat TB:5281606533730 (11868ms ago)",
    "SError handling is enabled",
    "Kernel panics on an oops",
    "WARNING: CPU usage is high",
)


@pytest.mark.parametrize(("kind", "subject", "text"), FAILING)
def test_what_fails_has_a_kind(kind: str, subject: str, text: str) -> None:
    event = classify(f"[   12.345678] {text}")
    assert event is not None
    assert event.kind == kind
    assert not subject or event.subject == subject


@pytest.mark.parametrize("text", HEALTHY)
def test_what_is_well_has_none(text: str) -> None:
    event = classify(f"[   12.345678] {text}")
    assert event is None, event
