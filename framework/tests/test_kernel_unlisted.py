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
    ("usb.link-error", "2-4", "usb 2-4: can't resume, status -19"),
    ("usb.enumeration-error", "2-3.2", "usb 2-3.2: can't read device descriptor -110"),
)
HEALTHY = (
    "sd 3:0:0:0: [sdc] tag#178 previous abort failed",
    "sr 5:0:0:0: [sr0] switching blocklength to 2048 bytes failed",
    "sr 5:0:0:0: [sr0] tag#0 scsi host busy 1 failed 0",
    "sd 3:0:0:0: alua: transition timeout set to 60 seconds",
    "sd 3:0:0:0: [sdc] Test WP failed, assume Write Enabled",
    "myrb 0000:00:05.0: Configuring PG-Series DAC960 PCI RAID Controller",
    "mmc1: invalid bus width is not what this card has",
    "dwc3-meson-g12a ffe09000.usb: switching to Device Mode",
    "simple-pm-bus: probe of ff63c000.system-controller rejects match -19",
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
