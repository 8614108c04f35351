"""Failures of known drivers in words that no entry lists, each beside a healthy message that looks like it."""

from __future__ import annotations

import pytest

from plugpull.kernel.catalogue.classify import classify

FAILING = (
    ("scsi.error", "10:0:0:0", "sd 10:0:0:0: scsi_dma_map failed: request for 524288 bytes!"),
    ("scsi.error", "0000:00:05.0", "myrb 0000:00:05.0: Failed to initialize Controller"),
    ("scsi.error", "0000:00:03.0", "myrs 0000:00:03.0: Unknown Initialization Error 5A"),
    ("scsi.error", "", "scsi(2:0): Resetting SCSI BUS"),
    ("block.error", "mmc1", "mmc1: invalid bus width"),
    ("block.error", "mmc0", "mmc0: UHS2 init fail."),
    ("hcd.error", "", "dwc3-meson-g12a: probe of d0078080.usb failed with error -22"),
    ("hcd.error", "", "cdns-usb3: probe of 5b110000.usb3 failed with error -110"),
    ("fs.error", "mmcblk2p2", "bcachefs (mmcblk2p2): Unable to allocate journal write:"),
    ("fs.error", "sdc1", "bcachefs (sdc1): bucket sector count overflow: 0 + -512 > U16_MAX"),
    ("fs.error", "pmem0", "EXT4-fs error (device pmem0): ext4_lookup:1840: inode #262146: comm stat: iget: checksum"),
    ("block.error", "mmc0", "mmc0: 1.8V regulator output did not became stable"),
    ("block.error", "", "sdhci_msm 8804000.sdhci: mmc1: Regulator output did not became stable"),
    ("block.error", "", "tifm_sd0:3 : card failed to respond for a long period of time (12, 9)"),
    ("block.error", "0000:01:00.0", "rtsx_pci 0000:01:00.0: Response timeout"),
    ("block.error", "", "mspro_block: format failed"),
    ("scsi.error", "", "port-2:17:29: trying to add phy phy-2:17:29 fails: it's already part of another port"),
    ("scsi.error", "", "sas: sas_probe_sata: for exp-attached device 500e004aaaaaaa05 returned -19"),
    ("scsi.error", "", "sas: RG to ex 500e004aaaaaaa1f failed:0x1"),
    ("scsi.error", "", "sas: DONE DISCOVERY on port 0, pid:10, result:-19"),
    ("scsi.error", "", "pm80xx0:: mpi_ssp_completion  1937:sas IO status 0x3b"),
    ("fs.error", "sdc1", "EXT4-fs (sdc1): filesystem has both journal and inode journals!"),
    ("fs.error", "sdb1", "XFS (sdb1): Device sdb1: metadata write error block 0x20"),
    ("fs.error", "", "btrfs: unable to fixup at 4096"),
    ("fs.error", "", "warning devid 2 missing"),
    ("dm.error", "253:4", "device-mapper: cache: 253:4: promotion failed; couldn't copy block"),
    ("nvme.error", "nvme0", "nvme nvme0: nvme_revalidate_disk: Identify failure nvme0n1"),
    ("pci.error", "0000:00:1c.4", "pciehp 0000:00:1c.4:pcie04: Cannot read LNKSTATUS register"),
    ("pci.error", "0000:00:1c.4", "pciehp 0000:00:1c.4:pcie04: pciehp_power_on_slot: Can not enable the link!"),
    ("hcd.error", "", "tegra_usb_resume: timeout waiting for PORT_CONNECT"),
    ("usb.link-error", "1-2", "usb 1-2: Could not disable port 1 after 10 ms"),
    ("usb.link-error", "2-4", "usb 2-4: can't resume, status -19"),
    ("usb.enumeration-error", "2-3.2", "usb 2-3.2: can't read device descriptor -110"),
    ("scsi.error", "", "mpt3sas_cm1: log_info(0x31120303): originator(PL), code(0x12), sub_code(0x0303)"),
    ("scsi.error", "", "mptbase: ioc0: LogInfo(0x31123000): Originator={PL}, Code={Abort}, SubCode(0x3000)"),
    ("scsi.error", "", "mptspi: probe of 0000:01:04.0 failed with error -1"),
    ("scsi.error", "", "qla2xxx [0000:05:00.0]-5039:0: Async-tmf error - hdl=123 completion status(28)."),
    ("scsi.error", "", "sas: command 0xffff88, task 0xffff88, timed out: BLK_EH_NOT_HANDLED"),
    ("scsi.error", "", "hv_storvsc vmbus_0_1: cmd 0x2a scsi status 0x2 srb status 0x4"),
    ("scsi.error", "", "sym0: SCSI BUS reset detected."),
    ("pci.error", "", "rockchip-pcie f8000000.pcie: PCIe link training gen1 timeout!"),
    ("pci.error", "", "rk-pcie fe150000.pcie: PCIe Link Fail, LTSSM is 0xa, hw_retries=0"),
    ("block.error", "0000:01:00.0", "mtip32xx 0000:01:00.0: Command timeout occurred"),
    ("block.error", "", "blkfront: xvda: write op failed"),
    ("block.error", "", "vbd vbd-5-51760: failed to write error node for backend/vbd/5/51760"),
    ("block.error", "", "glamo-mci glamo-mci.0: Error after cmd: 0x302"),
    ("ata.error", "ata1", "ata1: found unknown device (class 0)"),
)
HEALTHY = (
    "mpt3sas_cm1: log_info(0x30030101): originator(IOP), code(0x03), sub_code(0x0101)",
    "mptbase: ioc0: Initiating bringup",
    "sym0: SCSI BUS has been reset.",
    "qla2xxx [0000:05:00.0]-500a:0: LOOP UP detected (8 Gbps).",
    "brcm-pcie fd500000.pcie: link down",
    "tegra194-pcie 140a0000.pcie: deferred probe timeout, ignoring dependency",
    "mtip32xx 0000:01:00.0: Model: P320h-MTFDGAR",
    "vbd vbd-5-51760: using 4 queues",
    "Sense Key: 0x3 Medium Error, Segment 0",
    "sd 3:0:0:0: [sdc] tag#178 previous abort failed",
    "sr 5:0:0:0: [sr0] switching blocklength to 2048 bytes failed",
    "sr 5:0:0:0: [sr0] tag#0 scsi host busy 1 failed 0",
    "sd 3:0:0:0: alua: transition timeout set to 60 seconds",
    "sd 3:0:0:0: [sdc] Test WP failed, assume Write Enabled",
    "myrb 0000:00:05.0: Configuring PG-Series DAC960 PCI RAID Controller",
    "mmc1: invalid bus width is not what this card has",
    "dwc3-meson-g12a ffe09000.usb: switching to Device Mode",
    "simple-pm-bus: probe of ff63c000.system-controller rejects match -19",
    "bcachefs (sdb1): mounting version 1.9: opts=errors=ro,fix_errors=yes",
    "bcachefs (sdb1): mounted with opts: fix_errors,fsck",
    "bcachefs (sdb1): check_inodes... done, 0 errors",
    "rtsx_pci 0000:01:00.0: enabling device (0000 -> 0002)",
    "sas: DONE DISCOVERY on port 0, pid:10, result:0",
    "sas: --- Exit sas_scsi_recover_host: busy: 0 failed: 0 tries: 1",
    "end_device-0:2: add: handle(0x0009), sas_addr(0x5000c500)",
    "usb 2-4: can't find an interface for this driver",
    "xhci_hcd WARN Event TRB for slot x ep y with no TDs queued",
    "**`usb 2-1.3: reset SuperSpeed USB device number 3 using xhci-hcd`**",
)


@pytest.mark.parametrize(("kind", "subject", "message"), FAILING)
def test_a_failure_in_words_of_its_own_is_recognised(kind: str, subject: str, message: str) -> None:
    event = classify(f"[   12.345678] {message}")
    assert event is not None
    assert (event.kind, event.subject) == (kind, subject)


@pytest.mark.parametrize("message", HEALTHY)
def test_what_looks_like_it_is_not(message: str) -> None:
    assert classify(message) is None
    if "`" not in message:
        assert classify(f"[   12.345678] {message}") is None
