"""Messages of older kernels, in the words of their source, each beside one that looks like it and is well."""

from __future__ import annotations

import pytest

from plugpull.kernel.catalogue.classify import classify

PAIRS = (
    ("block.error", "mmc0: read transfer error - HSTS 20", "mmc0: SDHSTS 0x00000020"),
    ("scsi.error", "mpt3sas_cm0: handle(0x000f), ioc_status(0x0022)", "mpt3sas_cm0: sending port enable !!"),
    ("fs.error", "No filesystem could mount root, tried:  ext3", "VFS: Mounted root (ext3 filesystem) readonly"),
    ("ata.error", "sata-dwc 4bffd1800.sata: RX DMA PENDING", "sata-dwc 4bffd1800.sata: id 0, controller version 1.82"),
    ("fs.error", "[EXFAT] No bh, device seems wrong or to be ejected.", "[EXFAT] trying to unmount..."),
    (
        "fs.recovery",
        "EXT4-fs (mmcblk0p28): ext4_orphan_cleanup: deleting unreferenced inode 563078",
        "EXT4-fs (mmcblk0p28): mounted filesystem with ordered data mode",
    ),
    ("block.error", "hda:hda: dma_intr: status=0x51 { DriveReady SeekComplete Error }", "hda: hda1 hda2"),
    ("block.error", "hda: possibly failed opcode: 0x25", "hda: max request size: 512KiB"),
    ("block.error", "drive not ready for command", "drive ready"),
    ("block.error", "status error: status=0x5a { DriveReady SeekComplete DataRequest Index }", "status: ok"),
    ("hcd.error", "musb_ep_program 896: broken !rx_reinit, ep13 csr 0003", "musb_init_controller 2081: ok"),
    (
        "block.error",
        "drbd r0 peer.local: sock was shut down by peer",
        "drbd r0 peer.local: Handshake to peer 1 successful",
    ),
    (
        "block.error",
        "drbd r0 peer: conn( Connected -> NetworkFailure )",
        "drbd r0 peer: conn( Unconnected -> Connecting )",
    ),
    ("block.error", "block nbd0: pid 1159, nbd-client, got signal 9", "block nbd0: queue cleared"),
    ("block.error", "uncorrectable error :", "trying to do correction!"),
    (
        "block.error",
        "fsl-lbc ffe05000.localbus: Parity or Uncorrectable ECC error: LTESR 0x20000001",
        "fsl-lbc ffe05000.localbus: ok",
    ),
    ("block.error", "[aml_sd_emmc_irq] sd: response ecc,vstat:0xa400,virqc:3fff", "[aml_sd_emmc_probe] sd: ok"),
    ("block.error", "nfc_ecc_verify mode:read, invalid ecc2, page: b840", "nfc_ecc_verify mode:read"),
    (
        "fs.error",
        "REISERFS warning (device sda1): vs-4080: bit already cleared",
        "REISERFS (device sda1): using ordered data",
    ),
    ("fs.error", "NILFS (sdb1): bad btree root (inode number=3)", "NILFS (sdb1): mounting fs"),
    ("fs.recovery", "NILFS (sdb1): recovery complete", "nilfs_cleanerd: start"),
    (
        "fs.error",
        "JFFS2 notice: (1) check_node: wrong data CRC",
        "jffs2: notice: (1) complete building xattr subsystem",
    ),
    ("fs.error", "gfs2: fsid=x:y.0: about to withdraw this file system", "gfs2: fsid=x:y.0: Joined cluster"),
    ("fs.error", "o2net: No longer connected to node a (num 0) at 10.0.0.1:7777", "o2net: Connected to node a (num 0)"),
    ("fs.error", "HPFS: filesystem error: invalid number of hotfixes: 2", "HPFS: filesystem mounted"),
    ("fs.error", "ecryptfs_decrypt_page: Error attempting to read lower page", "ecryptfs_parse_options: eCryptfs: ok"),
    ("fs.error", "Valid eCryptfs headers not found in file header region", "ecryptfs: loaded"),
    ("fs.error", "cramfs: Error -3 while decompressing!", "cramfs: linear cramfs image appears"),
    (
        "block.error",
        "dasd-eckd 0.0.1234: An error occurred in the DASD device driver",
        "dasd-eckd 0.0.1234: DASD with 4 KB",
    ),
    (
        "block.error",
        "physmap-flash.0: block erase error: (status timeout)",
        "physmap-flash.0: Found 1 x16 devices at 0x0",
    ),
    ("block.error", "MTD do_erase_oneblock(): software timeout", "MTD device 0 with size"),
    ("block.error", "onenand_wait: controller error = 0x0400", "OneNAND Manufacturer: Samsung (0xec)"),
    (
        "block.error",
        "block drbd0: Local WRITE failed sec 1234s size 4096",
        "block drbd0: conn( StandAlone -> Unconnected )",
    ),
    ("block.error", "mvsdio f1090000.mvsdio: unhandled error status 1f", "mvsdio f1090000.mvsdio: lacking card detect"),
    ("scsi.error", "zfcp 0.0.1700: ERP failed for remote port 0x50", "zfcp 0.0.1700: The FCP device is attached"),
    ("scsi.error", "ABORT_TASK: Found referenced iSCSI task_tag: 1234", "ABORT_TASK is supported"),
    ("scsi.error", "iSCSI Login timeout on Network Portal 10.0.0.1:3260", "iSCSI Login: ok"),
    ("scsi.error", "aac_write: aac_fib_send failed with status: 7", "aac_write: done"),
    ("hcd.error", "ci_hdrc ci_hdrc.1: failed to initialize host", "ci_hdrc ci_hdrc.1: EHCI Host Controller"),
    ("scsi.error", "sd 0:0:0:0: [sda] Device not ready", "sd 0:0:0:0: [sda] Device ready"),
    (
        "thunderbolt.error",
        "thunderbolt 0000:c6:00.6: 2:1: hop deactivation failed for hop 1, index 8",
        "thunderbolt 0000:c6:00.6: 2:1: deactivating hop 1",
    ),
    (
        "thunderbolt.error",
        "thunderbolt 0000:c6:00.6: 2: failed to enable CL states",
        "thunderbolt 0000:c6:00.6: 2: CL states enabled",
    ),
    ("storage.attach", "Type: Direct-Access", "Type: disk"),
    ("storage.attach", "SCSI device sdb: 1988608 512-byte hdwr", "SCSI device sdb:"),
    ("storage.attach", "Vendor: Model: USB BAR Rev: 1.89", "Vendor: Generic"),
    (
        "fatal.hung-task",
        "INFO: task jbd2/sda1-8:390 blocked for more than 120 seconds.",
        "INFO: task blocked for more than 120 seconds.",
    ),
    ("hcd.error", "usb 2-3: WARN: invalid context state for evaluate context command.", "usb 2-3: Product: WARN"),
    ("hcd.error", "xhci_hcd 0000:01:00.0: Event TRB for slot 1 ep 2 with no TDs queued", "xhci_hcd 0000:01:00.0: hcc"),
    (
        "usb.link-error",
        "xhci_hcd 0000:01:00.0: USB core suspending device not in U0/U1/U2.",
        "xhci_hcd 0000:01:00.0: USB 3 root hub in U0",
    ),
    ("usb.link-error", "usb usb2-port1: Could not disable after 300 ms", "usb usb2-port1: over-current protection"),
    ("hcd.error", "xhci-hcd xhci-hcd.8.auto: No ports on the roothubs?", "xhci-hcd xhci-hcd.8.auto: irq 8, io mem 0x1"),
    ("hcd.error", "PM: Device xhci-hcd.8.auto failed to resume async: error -12", "PM: Device driver api removed"),
    ("hcd.error", "PM: Device ff600000.usb failed to suspend: error -16", "PM: suspend exit"),
    ("ata.error", "PM: Device ata1 failed to resume: error -5", "PM: resume of devices complete after 512.1 msecs"),
    ("uas.error", "usb 4-1: stat urb: killed, stream 0", "usb 4-1: urb"),
    ("usb.enumeration-error", "hub 1-0:1.0: couldn't allocate port 2 usb_device", "hub 1-0:1.0: 2 ports detected"),
    ("hcd.error", "ehci_hcd 0000:00:1d.7: force halt; handshake f8 00 00 -> -110", "ehci_hcd 0000:00:1d.7: irq 23"),
    ("nvme.error", "nvme 0000:01:00.0: Timeout I/O 5 QID 3", "nvme 0000:01:00.0: enabling device (0000 -> 0002)"),
    ("nvme.error", "nvme 0000:01:00.0: Cancelling I/O 5 QID 3", "nvme nvme0: 4/0/0 default/read/poll queues"),
    ("nvme.error", "nvme 0000:01:00.0: Failed status: 3, reset controller", "nvme nvme0: pci function 0000:01:00.0"),
    ("ata.error", "ata1: EH in SWNCQ mode,QC:qc_active 0x3 sactive 0x3", "ata1.00: SWNCQ mode enabled"),
    ("ata.error", "ata1: failed due to HW bug, retry pmp=0", "ata1: applying PMP SRST workaround and retrying"),
    ("ata.error", "ata1: soft resetting port", "ata1: EH complete"),
    ("ata.error", "ATA: abnormal status 0xD0 on port 0x000101f7", "ATA: normal"),
    ("ata.error", "ata1: failed to recover some devices, retrying in 5 secs", "ata1.00: detaching (SCSI 0:0:0:0)"),
    ("ata.error", "ata3: Hardreset failed, not off-lined 1", "ata3: SATA link up 3.0 Gbps (SStatus 123 SControl 300)"),
    ("scsi.error", "sd 2:0:0:0: [sdb] START_STOP FAILED", "sd 2:0:0:0: [sdb] Starting disk"),
    (
        "scsi.error",
        "sd 2:0:0:0: [sdb] Descriptor sense data with sense descriptors (in hex):",
        "        72 01 00 1d 00 00 00 0e 09 0c 00 00 00 00 00 00",
    ),
    ("scsi.error", "Error handler scsi_eh_3 unable to autoresume", "Error handler scsi_eh_3 sleeping"),
    ("scsi.error", "usb-storage: Unable to add the scsi host", "usb-storage: device scan complete"),
    ("block.error", "sdb: ref tag error at sector 123", "sdb: sdb1 sdb2"),
    ("md.failure", "raid5:md0: read error not correctable (sector 23 on sdb1).", "raid5:md0: reshape will continue"),
    ("md.failure", "raid1: md0 is not clean -- starting background reconstruction", "raid1: raid set md0 active"),
    ("md.failure", "raid1: sda1: redirecting sector 1234 to another mirror", "raid1: personality registered"),
    (
        "md.failure",
        "md/raid10:md0: make_request bug: can't convert block across chunks or bigger than 64k 1 8",
        "md/raid10:md0: active with 4 out of 4 devices",
    ),
    (
        "fs.error",
        "BTRFS: checksum error at logical 12345 on dev /dev/sdb, sector 12: metadata leaf (level 0) in tree 5",
        "BTRFS info (device sdb): disabling log replay at mount time",
    ),
    ("fs.error", "BTRFS: failed to read tree root on sdb1", "BTRFS: device label data devid 1 transid 5 /dev/sdb1"),
    ("fs.error", "btrfs csum failed ino 257 extent 12345 csum 1 wanted 2 mirror 1", "btrfs: use lzo compression"),
    ("fs.error", "previous I/O error to superblock detected", "previous I/O error"),
    ("fs.error", "JBD: Unrecognised features on journal", "JBD: barrier-based sync on sda1"),
    ("fs.error", "metapage_read_end_io: I/O error", "JFS: nTxBlock = 8192, nTxLock = 65536"),
    (
        "fs.error",
        "hfsplus: Filesystem was not cleanly unmounted, running fsck.hfsplus is recommended.  mounting read-only.",
        "hfsplus: creation date of the volume",
    ),
    (
        "fs.error",
        'Filesystem "dm-0": XFS internal error xfs_iformat_btree at line 705 of file fs/xfs/xfs_inode.c.',
        'Filesystem "dm-0": Disabling barriers, not supported by the underlying device',
    ),
    (
        "fs.error",
        "XFS internal error XFS_WANT_CORRUPTED_RETURN at line 295 of file fs/xfs/xfs_alloc.c.  Caller 0xc01ea7a7",
        "XFS mounting filesystem sdb1",
    ),
    ("fs.error", "Please umount the filesystem, and rectify the problem(s)", "Please umount the filesystem"),
    ("fs.error", "diRead: diIAGRead returned -5", "diRead: done"),
    (
        "fs.error",
        "jffs2: notice: (1234) check_node_data: wrong data CRC in data node at 0x00b3c4a8: read 0x6f2a1c4",
        "jffs2: version 2.2. (NAND) (SUMMARY) 2001-2006 Red Hat, Inc.",
    ),
    ("fs.error", "NILFS warning: mounting unchecked fs", "NILFS version 2 loaded"),
    ("fs.error", "yaffs: tragedy: block 12 is marked for retirement", "yaffs: dev is 32505859 name is mtdblock3 rw"),
    (
        "md.failure",
        "raid10: sdb1: Raid device exceeded read_error threshold [cur 21:max 20]",
        "raid10: raid set md0 active with 4 out of 4 devices",
    ),
    ("block.error", "floppy0: sector not found: track 0", "floppy0: no floppy controllers found"),
    ("scsi.error", "cciss0: cmd ffff88 timedout", "cciss0: <0x3238> at PCI 0000:06:00.0 IRQ 169 using DAC"),
    ("scsi.error", "3ware: scsi0: Command failed: status = 0xc7, flags = 0x80, unit #0.", "3ware: Found a 3ware"),
    ("scsi.error", "scsi0: Aborting CCB #2669 to Target 0", "scsi0: *** BusLogic BT-958 Initialized Successfully ***"),
    ("scsi.error", "scsi0: Resetting BusLogic BT-958 due to Target 0", "scsi0: Reading BusLogic BT-958 Configuration"),
    (
        "scsi.error",
        "(scsi0:0:15:7) Invalid SCB during SEQINT 0x71, SCB_TAG 255.",
        "(scsi0:0:3:0) Performing Domain validation",
    ),
    ("scsi.error", "esp: esp0: Reconnect IRQ1 timeout", "esp: esp0, regs[f0:e0] irq[36]"),
    (
        "block.error",
        "mmcblk1: card_busy_detect: error sending status cmd, status 0x80900",
        "mmcblk1: mmc1:aaaa SC32G 29.7 GiB",
    ),
    ("block.error", "scsidisk I/O error: dev 08:01, sector 1590410", "scsidisk: detected"),
    (
        "block.error",
        "VFS: Dirty inode writeback failed for block device mmcblk1p1 (err=-5)",
        "VFS: Mounted root (ext4 filesystem) on device 179:1.",
    ),
    (
        "fs.error",
        "rc.local: UBIFS error (ubi0:0 pid 1): ubifs_read_node: bad node type (255 but expected 2)",
        "UBIFS (ubi0:0): UBIFS: mounted UBI device 0, volume 0",
    ),
    (
        "block.error",
        "hda: dma_intr: status=0x51 { DriveReady SeekComplete Error }",
        "hda: task_no_data_intr: status=0x51 { DriveReady SeekComplete Error }",
    ),
    (
        "fs.readonly",
        "hfsplus: write access to a journaled filesystem is not supported, use the force option at your own risk",
        "hfsplus: umask requires a value",
    ),
    ("fs.error", "ntfs3(sdb2): It is recommended to use chkdsk.", "ntfs3(sdb2): It is recommended to read this."),
    ("fs.error", "ntfs3: sdb2: Inode r=5 is not in use!", "ntfs3: Enabled Linux POSIX ACLs support"),
    ("fs.error", "F2FS-fs (sdb1): lz4 decompress failed, ret:-5", "F2FS-fs (sdb1): Mounted with checkpoint"),
    ("usb.link-error", "hub 1-1:1.0: hub_hub_status failed (err = -71)", "hub 1-1:1.0: local power source is good"),
    ("nvme.error", "nvme nvme0: failed to set APST feature (-19)", "nvme nvme0: D3 entry latency set to 10 seconds"),
    ("nvme.error", "nvme nvme0: globally duplicate IDs for nsid 1", "nvme nvme0: clearing duplicate IDs for nsid 1"),
    ("nvme.error", "nvme nvme0: some later command timed out", "nvme nvme0: Shutdown timeout set to 8 seconds"),
    ("ata.error", "ata1.00: some later command failed", "ahci 0000:00:17.0: probing failed, error -517"),
    (
        "md.failure",
        "md/raid10:md1: sdc2: Raid device exceeded read_error threshold [cur 21:max 20]",
        "md/raid10:md1: using 4 devices",
    ),
    ("ata.error", "ata1: device unplugged sstatus 0x0", "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)"),
    (
        "ata.error",
        "ata2 (slot 4): link is slow to respond, please be patient (ready=0)",
        "ata2 (slot 4): SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
    ),
    ("ata.error", "ata1.00: failed to read native max address (err_mask=0x1)", "ata1.00: HPA detected: current 1"),
    (
        "fs.error",
        "XFS (dm-0): Metadata corruption detected at xfs_agf_read_verify",
        "XFS (dm-0): Using experimental pNFS feature, use at your own risk!",
    ),
    ("block.error", "Write error on dio swapfile (12345)", "Adding 1048572k swap on /swapfile."),
    (
        "pci.error",
        "pcieport 0000:00:1c.0: DPC unmasked uncorrectable error detected, remove downstream devices",
        "pcieport 0000:00:1c.0: DPC: error containment capabilities: Int Msg #0, RPExt+",
    ),
    (
        "warn.hardware",
        "snd_hda_intel 0000:63:00.1: PCIe Bus Error: Uncorrectable (Non-Fatal), type=Transaction Layer",
        "snd_hda_intel 0000:63:00.1: PCIe Bus: Uncorrectable errors are reported",
    ),
    (
        "hcd.error",
        "host/usb-ohci.c: unlink URB timeout",
        "host/usb-ohci.c: USB OHCI at membase 0xd0807000, IRQ 11",
    ),
    ("scsi.error", "Current sda: sense key Medium Error", "Current sda: sense data not asked for"),
    ("scsi.error", "Current : sense key Medium Error", "Current request: sense key not set"),
    ("scsi.error", "SCSI error: host 1 id 0 lun 1 return code = 8000002", "scsi host 1 id 0 lun 1: type 0"),
    ("scsi.error", "Sense class 7, sense error 0, extended sense 3", "Sense class 7 is known"),
    ("block.error", " sdb: p1 exceeds device capacity", " sdb: p1 p2 < p5 >"),
    ("block.error", "sdb: p1 size 7829505 exceeds device capacity, limited to end of disk", "sdb: p1 size 7829505"),
    ("block.error", "sdb: p4 ignored, start 7829505 is behind the end of the disk", "sdb: p4 ignored"),
    (
        "fs.error",
        "bcachefs: bch2_fs_open() bch_fs_open err opening /dev/sda: insufficient_devices_to_start",
        "bcachefs: bch2_fs_open() ret 0",
    ),
)


@pytest.mark.parametrize(("kind", "failing", "healthy"), PAIRS, ids=[failing for _, failing, _ in PAIRS])
def test_a_message_of_an_older_kernel(kind: str, failing: str, healthy: str) -> None:
    event = classify(f"[   12.345678] {failing}")
    assert event is not None
    assert event.kind == kind
    near = classify(f"[   12.345678] {healthy}")
    assert near is None, near


def test_a_mistake_of_the_firmware_accuses_no_array() -> None:
    assert classify("mce: [Firmware Bug]: cpu 0, failed to setup threshold interrupt for bank 4, block 0") is None
