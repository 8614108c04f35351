"""PCI ports, memory card hosts, records of hardware errors, disks of old kernels: what fails, beside healthy lines."""

from __future__ import annotations

import io

import pytest

from plugpull.kernel.catalogue.classify import classify
from plugpull.kernel.diagnosis.log_reader import read_log

FAILING = (
    ("pci.error", "0000:02:00.0", "pci 0000:02:00.0: Device config space inaccessible; unable to change power state"),
    ("pci.error", "", "pci 0000:02:00.0: not ready 65535ms; giving up"),
    ("hcd.error", "0000:02:00.0", "xhci_hcd 0000:02:00.0: can't suspend (hcd_pci_runtime_suspend returned -19)"),
    ("pci.error", "0000:00:1c.4", "pcieport 0000:00:1c.4: can't suspend (pcie_port_runtime_suspend returned -16)"),
    ("block.error", "mmc1", "mmc1: error -110 whilst initialising SD card"),
    ("block.error", "mmc0", "mmc0: cqhci: CQE stuck on"),
    ("block.error", "mmc0", "mmc0: PLL clock never stabilised."),
    ("block.error", "", "dwmmc_rockchip fe320000.mmc: Unexpected command timeout, state 3"),
    ("block.error", "", "mtk-msdc 11230000.mmc: msdc_track_cmd_data: cmd=12 arg=00000000; host->error=0x00000002"),
    ("block.error", "", "sdhost-bcm2835 3f202000.mmc: previous command never completed."),
    ("hcd.died", "ffb40000.usb", "dwc2 ffb40000.usb: Controller is dead"),
    ("hcd.error", "", "PM: suspend_common(): xhci_pci_suspend+0x0/0xd0 returns -110"),
    ("hcd.error", "", "PM: pci_pm_suspend(): hcd_pci_suspend+0x0/0x30 returns -110"),
    ("nvme.error", "nvme1", "nvme nvme1: Connect Invalid SQE Parameter, qid 4"),
    ("warn.hardware", "", "{2}[Hardware Error]: event severity: recoverable"),
    ("warn.hardware", "", "{2}[Hardware Error]:  Error 0, type: fatal"),
    ("hw.corrected", "", "{2}[Hardware Error]: event severity: corrected"),
    ("scsi.error", "", "scsi0 : aborting command due to timeout : pid 12345, scsi0, channel 0, id 0, lun 0 Write (10)"),
    ("scsi.error", "", "(scsi0:A:0:0): Unexpected busfree in Data-in phase"),
    ("scsi.error", "", "ieee1394: sbp2: sbp2_reconnect_device failed!"),
    ("block.error", "", "end_request: buffer-list destroyed"),
    ("fs.error", "", "journal-601, buffer write failed"),
    ("ata.error", "70027000.sata", "tegra-ahci 70027000.sata: failed to power on AHCI controller: -110"),
    ("ata.error", "", "tegra-ahci: probe of 70027000.sata failed with error -110"),
    ("nvme.error", "", "nvmet: ctrl 1 fatal error occurred!"),
    ("scsi.error", "", "scsi2: Resetting BusLogic BT-958D Failed"),
    ("pci.error", "", "pcieport 0000:89:02.0: link reset at upstream device 0000:89:02.0 failed"),
    ("warn.hardware", "", "MCE: CPU1: machine check (Severe)  UE Load/Store [Not recovered]"),
    ("hw.corrected", "", "MCE: CPU1: machine check (Warning) Host TLB Multihit [Recovered]"),
    ("usb.connect", "2-1", "usb 2-1: New USB device found, idVendor!c4, idProduct\ufffd83, bcdDevice1.02"),
)
HEALTHY = (
    "pcieport 0000:03:02.0: Unable to change power state from D3hot to D0, device inaccessible",
    "pcieport 0000:00:07.0: pciehp: Slot(5): Card not present",
    "pci 0000:04:00.0: invalid VPD tag 0x00 (size 0) at offset 0; assume missing optional EEPROM",
    "pci 0000:04:00.0: not ready 1023ms after resume; waiting",
    "ucsi_acpi USBC000:00: GET_CONNECTOR_STATUS failed (-110)",
    "typec port0: failed to register partner",
    "mmc0: cqhci: transferred 0 bytes",
    "dwmmc_rockchip fe320000.mmc: IDMAC supports 32-bit address mode.",
    "dwc2 ffb40000.usb: supply vusb_d not found, using dummy regulator",
    "hda: drive_cmd: status=0x51 { DriveReady SeekComplete Error }",
    "tegra-ahci 70027000.sata: AHCI 0001.0301 32 slots 1 ports 3 Gbps 0x1 impl TF mode",
    "tegra-ahci 70027000.sata: error -EPROBE_DEFER: failed to get regulators",
    "nvmet: creating nvm controller 1 for subsystem nqn.2014-08.org.nvmexpress.discovery",
    "hda: drive_cmd: error=0x04 { DriveStatusError }",
    "{2}[Hardware Error]:   section_type: memory error",
    "[Hardware Error]: cache level: L3/GEN, tx: GEN, mem-tx: RD",
)
CORRECTED = """\
[  375.938416] {2}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 2
[  375.938417] {2}[Hardware Error]: It has been corrected by h/w and requires no further action
[  375.938418] {2}[Hardware Error]: event severity: corrected
[  375.938419] {2}[Hardware Error]:  Error 0, type: corrected
[  375.938420] {2}[Hardware Error]:   section_type: memory error
[  375.938422] {2}[Hardware Error]:   physical_address: 0x0000000898b86020
"""


@pytest.mark.parametrize(("kind", "subject", "line"), FAILING)
def test_what_fails_has_a_kind(kind: str, subject: str, line: str) -> None:
    event = classify(line)
    assert event is not None
    assert event.kind == kind
    assert event.subject == subject or not subject


@pytest.mark.parametrize("line", HEALTHY)
def test_what_looks_like_it(line: str) -> None:
    assert classify(line) is None
    assert classify(f"[   12.345678] {line}") is None


def test_a_record_of_a_corrected_error_alarms_nobody() -> None:
    """Only the line with the severity says whether the error matters."""
    found = [one.event for one in read_log(io.BytesIO(CORRECTED.encode()), "kern.log")]
    assert {event.kind for event in found} == {"hw.corrected"}
    assert not any(event.alarming for event in found)
    recoverable = CORRECTED.replace("corrected", "recoverable").replace("It has been recoverable by h/w", "It")
    found = [one.event for one in read_log(io.BytesIO(recoverable.encode()), "kern.log")]
    assert {event.kind for event in found} == {"warn.hardware"}
