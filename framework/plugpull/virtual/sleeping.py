"""When an emulated DUT must not be suspended, because QEMU would write into memory that its kernel has freed.

QEMU's xHCI does not keep its state while it is suspended, so the kernel resets it and sets every device up again. Since
``hub_hc_release_resources`` (drivers/usb/core/hub.c, also in the stable series), a device below a hub gets its slot
before that slot is addressed. In Linux 6.12, ``xhci_endpoint_reset`` (drivers/usb/host/xhci.c) then evaluates the
context of a full-speed device's endpoint 0. A real xHC refuses that, as the slot is only enabled (xHCI 1.2, 4.6.7).
QEMU writes the two bytes of the packet size into the context that the slot had before the reset
(``xhci_evaluate_slot`` in hw/usb/hcd-xhci.c). The kernel has freed that page, and uses it for a context of another
device, or for anything.

Of 41 sleeps of two CPUs with Linux 6.12 and a hub, two ended in a general protection fault on a pointer that fits
these two bytes. Two ended with a disk that could not be addressed, as if the bytes had become the number of its root
port.
"""

from __future__ import annotations

import re

from plugpull.rig.model import Rig

EVALUATES_SINCE = (6, 10)
"""The first version of Linux that is taken to evaluate a slot which is not addressed. 6.12.117 does and 6.1.192 does
not; the versions between were not looked at."""
_VERSION = re.compile(r"(\d+)\.(\d+)")


def harmed_by_sleep(rig: Rig, kernel: str) -> str:
    """Why a DUT with this rig and this release of Linux must not sleep; empty if it may. Emulated hubs and all that is
    behind them are full-speed devices."""
    version = _VERSION.match(kernel)
    old = version is not None and (int(version[1]), int(version[2])) < EVALUATES_SINCE
    if old or not rig.hub:
        return ""
    return f"QEMU's xHCI may write into memory that Linux {kernel} has freed, if full-speed devices are suspended"
