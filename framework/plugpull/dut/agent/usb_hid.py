"""HID devices that the kernel leaves to user space, spoken to through usbfs (include/uapi/linux/usbdevice_fs.h).

The kernel's HID driver passes some devices over, the YKUSH (04d8:f2f7 and 04d8:0042, whose ids Microchip gave to others
as well) among them: hid_ignore_list in drivers/hid/hid-quirks.c. They have no /dev/hidraw; hidapi reaches them the same
way as this does.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import os
import re
import struct
from contextlib import suppress
from typing import Any, Dict, List

from .attributes import read_attribute, resolved

PATH = re.compile(r"^/dev/bus/usb/(\d{3})/(\d{3}):(\d+)\Z")
"""The node and the interface number by which such a device is opened."""
_HID_CLASS = "03"
_CONTROL = struct.Struct("@BBHHHIP")
_TRANSFER = struct.Struct("@IIIP")
_SET_REPORT, _GET_REPORT = (0x21, 0x09), (0xA1, 0x01)
_OUTPUT, _FEATURE = 2, 3
_WRITE_MS = 2000


def _ioctl(direction: int, number: int, size: int) -> int:
    return (direction << 30) | (size << 16) | (ord("U") << 8) | number


_DO_CONTROL = _ioctl(3, 0, _CONTROL.size)
_DO_TRANSFER = _ioctl(3, 2, _TRANSFER.size)
_CLAIM = _ioctl(2, 15, 4)


def _interfaces() -> List[str]:
    """HID interfaces, as directories in sysfs, that no driver has taken."""
    found = sorted(glob.glob("/sys/bus/usb/devices/*:*"))
    return [
        path
        for path in found
        if read_attribute(path, "bInterfaceClass") == _HID_CLASS and not os.path.exists(path + "/driver")
    ]


def _path_of(interface: str) -> str:
    usb = os.path.dirname(resolved(interface))
    node = "/dev/bus/usb/%03d/%03d" % (int(read_attribute(usb, "busnum")), int(read_attribute(usb, "devnum")))
    return "%s:%d" % (node, int(read_attribute(interface, "bInterfaceNumber"), 16))


def devices() -> List[Dict[str, Any]]:
    found = []
    for interface in _interfaces():
        usb = os.path.dirname(resolved(interface))
        with suppress(ValueError):  # unplugged while it is looked at
            found.append(
                {
                    "vendor": int(read_attribute(usb, "idVendor"), 16),
                    "product": int(read_attribute(usb, "idProduct"), 16),
                    "serial": read_attribute(usb, "serial"),
                    "path": _path_of(interface),
                    "model": read_attribute(usb, "product"),
                }
            )
    return found


class UsbHid:
    """One open device. Everything raises OSError when it has gone or does not answer."""

    def __init__(self, path: str) -> None:
        wanted = [interface for interface in _interfaces() if _path_of(interface) == path]
        if not wanted:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        node, _, number = path.rpartition(":")
        self._number = int(number)
        self._in, self._out, self._most = 0, 0, 64
        for endpoint in glob.glob(wanted[0] + "/ep_*"):
            address = int(read_attribute(endpoint, "bEndpointAddress"), 16)
            if address & 0x80:
                self._in, self._most = address, int(read_attribute(endpoint, "wMaxPacketSize"), 16) & 0x7FF
            else:
                self._out = address
        self._fd = os.open(node, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(self._fd, _CLAIM, struct.pack("@I", self._number))
        except OSError:
            os.close(self._fd)
            raise

    def close(self) -> None:
        os.close(self._fd)

    def _control(self, request: "tuple[int, int]", kind: int, report_id: int, data: Any) -> int:
        value = kind << 8 | report_id
        asked = _CONTROL.pack(*request, value, self._number, len(data), _WRITE_MS, ctypes.addressof(data))
        return int(fcntl.ioctl(self._fd, _DO_CONTROL, bytearray(asked), True))

    def _transfer(self, endpoint: int, data: Any, milliseconds: int) -> int:
        asked = _TRANSFER.pack(endpoint, len(data), milliseconds, ctypes.addressof(data))
        return int(fcntl.ioctl(self._fd, _DO_TRANSFER, bytearray(asked), True))

    def write(self, report: bytes) -> None:
        """An output report, its id first; an id of 0 is not sent."""
        data = ctypes.create_string_buffer(report[1:] if report[0] == 0 else report, len(report) - (report[0] == 0))
        if self._out:
            self._transfer(self._out, data, _WRITE_MS)
        else:
            self._control(_SET_REPORT, _OUTPUT, report[0], data)

    def read(self, count: int, timeout: float) -> bytes:
        """An input report; empty when none comes within ``timeout`` seconds."""
        data = ctypes.create_string_buffer(max(count, self._most))
        try:
            length = self._transfer(self._in, data, max(1, int(timeout * 1000)))
        except OSError as error:
            if error.errno == errno.ETIMEDOUT:
                return b""
            raise
        return bytes(data.raw[: min(length, count)])

    def get_feature(self, report_id: int, count: int) -> bytes:
        """A feature report without its id."""
        data = ctypes.create_string_buffer(count + bool(report_id))
        length = self._control(_GET_REPORT, _FEATURE, report_id, data)
        return bytes(data.raw[bool(report_id) : length])

    def send_feature(self, report: bytes) -> None:
        data = ctypes.create_string_buffer(report[1:] if report[0] == 0 else report, len(report) - (report[0] == 0))
        self._control(_SET_REPORT, _FEATURE, report[0], data)
