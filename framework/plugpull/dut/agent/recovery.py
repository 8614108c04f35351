"""Has the kernel recover a disk as its error handler does, again and again, while something else is cut."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from typing import Any, Dict, Optional

from .attributes import SYS, resolved
from .disks import Disk, Refused, compare, describe, usb_place
from .wire import now

_SG_SCSI_RESET = 0x2284  # include/scsi/sg.h
_DEVICE, _BUS = 1, 2
ASKABLE = ("virtio_scsi",)
"""Drivers of disks not on USB that can reset one (``eh_device_reset_handler`` of their ``scsi_host_template``), as all
drivers of USB disks can: if such a reset fails, it failed. libata, for one, has no such function."""
PERIOD = 0.05
"""Seconds from one reset to the next, at least. That of a port takes longer; a disk on an emulated SCSI bus was reset
449 times in 2 s, and the kernel logs each."""
FIRST_WITHIN = 10.0
"""Seconds in which a driver that may not be able to reset a disk says so: it says so at once."""


class Recovery:
    """Resets one disk until it is ended, in a thread of its own: an error handler may take long.

    The ioctl runs what the kernel's error handler runs (drivers/scsi/scsi_error.c, scsi_ioctl_reset). For usb-storage
    that is the reset of the port (drivers/usb/storage/scsiglue.c, bus_reset), for uas that of the device.
    """

    def __init__(self) -> None:
        self._ending = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._tried = threading.Event()
        self._done: Dict[str, Any] = {}

    def begin(self, wanted: Disk) -> str:
        """Begin with the disk proved to be ``wanted``. It is not written. Returns why its driver cannot be asked to
        reset it, and then nothing goes on; empty if it can. Raises Refused."""
        if self._thread is not None:
            raise Refused("another disk is being recovered already")
        fd = self._open(wanted)
        found = describe(str(wanted["kname"]))
        driver, on_usb = "", False
        if found is not None:
            driver, on_usb = str(found["driver"]), usb_place(str(found["sysfs"])) is not None
        level = _BUS if on_usb and driver != "uas" else _DEVICE
        self._ending.clear()
        self._tried.clear()
        self._done = {"begun": now(), "until": now(), "resets": 0, "failed": 0, "why": ""}
        self._thread = threading.Thread(target=self._run, args=(fd, level), name="recovery", daemon=True)
        self._thread.start()
        if on_usb or driver in ("", *ASKABLE) or not self._tried.wait(FIRST_WITHIN) or self._done["resets"]:
            return ""
        self.end()
        return "%s refuses to reset it: %s" % (driver, self._done["why"])

    def end(self, within: float = 60.0) -> Dict[str, Any]:
        """Reset it no more. Returns how often it was, and from when to when."""
        self._ending.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(within)
        return {**self._done, "stuck": thread is not None and thread.is_alive()}

    @staticmethod
    def _open(wanted: Disk) -> int:
        try:
            fd = os.open("/dev/" + os.path.basename(str(wanted["kname"])), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise Refused("cannot open %s: %s" % (wanted["kname"], error.strerror)) from None
        try:
            number = os.fstat(fd).st_rdev
            node = resolved("%s/dev/block/%d:%d" % (SYS, os.major(number), os.minor(number)))
            found = describe(os.path.basename(node))
            if found is None:
                raise Refused("%s went away while it was being opened" % wanted["kname"])
            compare(str(wanted["kname"]), found, wanted)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _run(self, fd: int, level: int) -> None:
        """Reset the disk until the end, or until the kernel has removed it: an open disk would keep its name."""
        number = os.fstat(fd).st_rdev
        node = "%s/dev/block/%d:%d" % (SYS, os.major(number), os.minor(number))
        try:
            while not self._ending.is_set():
                begun = now()
                try:
                    fcntl.ioctl(fd, _SG_SCSI_RESET, struct.pack("i", level))
                    self._done["resets"] += 1
                except OSError as error:
                    if not os.path.exists(node):
                        break
                    self._done["failed"] += 1
                    self._done["why"] = os.strerror(error.errno or 0)
                finally:
                    self._tried.set()
                self._done["until"] = now()
                self._ending.wait(max(0.0, begun + PERIOD - now()))
        finally:
            os.close(fd)
