"""Drivers of old kernels and vendors that fail in words of their own, each beside a healthy line of the same driver."""

from __future__ import annotations

import pytest

from plugpull.kernel.catalogue.classify import classify

PAIRS = (
    (
        "fs.error",
        "dev 0 bucket 68669 has wrong dirty_sectors: got 768, should be 680",
        "dev 0 bucket size has wrong unit",
    ),
    (
        "fs.error",
        "bucket 0:2162 gen 3 data type user has wrong dirty_sectors: got 451, should be 452",
        "bucket 0:2162 gen 3 data type user",
    ),
    ("block.error", "mmcblk0: could not register RPMB device", "mmc0: could be slow"),
    (
        "storage.attach",
        "Attached SCSI removable disk sdb at scsi3, channel 0, id 0, lun 0",
        "3-3    13fd:3456  USB Attached SCSI (UAS) Mass Storage Device                   Not shared",
    ),
    ("scsi.error", "scsi0: parity error", "scsi0: Adaptec AIC7XXX EISA/VLB/PCI SCSI HBA DRIVER, Rev 7.0"),
    ("scsi.error", "scsi0 : got parity error", "scsi0 : ahci"),
    ("scsi.error", "scsi(7): Chip diagnostics **** FAILED ****", "scsi(7): Allocated (64 KB) for EFT"),
    ("scsi.error", "scsi host2: prev_reset_device Timed out", "scsi host2: runtime PM trying to activate"),
    ("scsi.error", "stex(0000:03:00.0): lost interrupt", "stex(0000:03:00.0): MSI interrupt mode"),
    ("scsi.error", "DC390: dma_intr: DMA aborted unfinished: 12 bytes remain!!", "DC390: Used for other adapters"),
    ("scsi.error", "qla2x00_execute_fw(7): failed=1f mb[0]=1f.", "qla2x00_execute_fw(7): done."),
    ("scsi.error", "mptbase: ioc0: NOT READY WARNING!", "mptbase: ioc0: Initiating bringup"),
    ("scsi.error", "mpt2sas0: discovery errors(0x2): sas_address(0x1), handle(0x9)", "mpt2sas0: port enable: SUCCESS"),
    ("scsi.error", "failure at drivers/scsi/mpt2sas/mpt2sas_ctl.c:731/_ctl_do_mpt_command()!", "failure at home"),
    ("scsi.error", "usb-storage 1-2:1.0: start of a transfer failed, error -19", "usb-storage 1-2:1.0: quirks 1"),
    ("block.error", "mmc0: Data timeout", "mmc0: new high speed SDHC card at address 1234"),
    ("block.error", "mxcmmc 1c0f000.mmc: mxcmci_watchdog: write time out (status = 0x1f)", "mxcmmc 1c0f000.mmc: DMA"),
    (
        "block.error",
        "brcmnand f0443000.nand: timeout waiting for command 0x9",
        "brcmnand f0443000.nand: detected 512MiB",
    ),
    ("block.error", "nand: nand_erase_nand: failed erase, page 0x40", "nand_bbt: Bad block table found at page 65472"),
    ("block.error", "hda: unexpected interrupt, status=0x58, count=1", "hda: max request size: 128KiB"),
    ("block.error", "ide: failed opcode was: unknown", "ide: Assuming 33MHz system bus speed for PIO modes"),
    ("hcd.error", "dwc3 fe800000.usb: Reset Timed Out", "dwc3 fe800000.usb: Failed to get clk 'ref': -2"),
    ("hcd.error", "dwc2 3f980000.usb: dwc2_core_reset() HANG! Soft Reset GRSTCTL=1f", "dwc2 3f980000.usb: irq 33"),
    ("ata.error", "ata3 pm unique read fail", "ata3: SATA link up 3.0 Gbps (SStatus 123 SControl 300)"),
    ("ata.error", "ata1: Timeout waiting for DMA completion!", "ata1: PATA max UDMA/100 cmd 0x1f0 ctl 0x3f6"),
    (
        "md.failure",
        "read error corrected, md2, sda3 index [0], sector 7712 [raid5_end_read_request]",
        "md2: sda3 index [0]",
    ),
    (
        "md.failure",
        "md2[5]:syno_error_for_internal: disk error on sdb3",
        "md: md2: set sdb3 to auto_remap [0]",
    ),
    (
        "fs.error",
        "Quota error (device sda1): qtree_write_dquot: Error -5 occurred while creating quota",
        "quota: Disk quotas dquot_6.6.0",
    ),
    (
        "md.failure",
        "md: md1: qnap_md_is_stripe_error. Not in rebuilding mode, so set md as read-only mode directly.",
        "md: md1: exit qnap_bbm_work ...",
    ),
    ("md.failure", "md/raid1:md1: raid1d set raid1 QNAP readonly", "md/raid1:md1: active with 2 out of 2 mirrors"),
    ("block.error", "GPT:239649 != 245759", "GPT: Use GNU Parted to correct GPT errors."),
    ("md.failure", "md: sdb1 has same UUID but different superblock to sda1", "md: sdb1 has different UUID to sda1"),
    ("fs.error", "EXT4-fs: get root inode failed", "EXT4-fs: quota mode: none"),
    (
        "fs.error",
        "SPLError: 7340:0:(spl-err.c:67:vcmn_err()) WARNING: Pool 'tank' has encountered an uncorrectable I/O failure",
        "SPL: Loaded module v0.6.5.6-1",
    ),
    (
        "fs.error",
        "VERIFY3(0 == dmu_bonus_hold(spa, 1)) failed (0 == 5)",
        "ZFS: Loaded module v0.6.5, ZFS pool version 5000",
    ),
)


@pytest.mark.parametrize(("kind", "failing", "healthy"), PAIRS, ids=[failing for _, failing, _ in PAIRS])
def test_a_driver_that_fails_in_words_of_its_own(kind: str, failing: str, healthy: str) -> None:
    event = classify(f"[   12.345678] {failing}")
    assert event is not None
    assert event.kind == kind
    assert classify(f"[   12.345678] {healthy}") is None


@pytest.mark.parametrize(
    "text",
    [
        "dwc3 fe800000.usb: Failed to get clk 'ref': -2",
        "musb-hdrc musb-hdrc.0: failed to enable clock",
        "hpsa 0000:03:00.0: MSI interrupt mode failed",
        "atmel-mci 1c0f000.mmc: setting timeout to 7 cycles",
        "jz4780-nand: probe of 1b000000.nand-controller failed with error -517",
        "scsi2: default timeout 30",
        "ehci-pci 0000:00:1d.7: usb_check_bandwidth FAILED: 7 + 7 = 7 usec",
        "aoe: skb alloc failure",
        "dwc3 a600000.dwc3: timed out waiting for SETUP phase",
        "dwc2 3f980000.usb: s3c_hsotg_init_fifo: timeout flushing fifos (GRSTCTL=1f)",
        "md: sda2 has different UUID to sda1",
        "GPT: Use GNU Parted to correct GPT errors.",
        "I get Quota error (device sda1): and no disk fails",
    ],
)
def test_words_of_failure_in_lines_that_report_nothing(text: str) -> None:
    assert classify(f"[   12.345678] {text}") is None
