"""Switches that are plugged into the DUT: serial ports, HID devices, programs and sysfs attributes, on behalf of the
drivers on the controller. Bytes travel as hexadecimal digits."""

from __future__ import annotations

import fcntl
import glob
import os
import re
import select
import signal
import subprocess
import termios
import threading
import time
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional, Union

from . import usb_hid
from .attributes import read_attribute, resolved

MOST = 4096
"""The most bytes of one answer of a switch."""
_HID_ID = re.compile(r"^HID_ID=[0-9A-F]+:([0-9A-F]+):([0-9A-F]+)$", re.MULTILINE)


class Failed(Exception):
    """A device could not do what was requested. The message says why, for a person; ``hint`` says what to do."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.hint = hint


def _gone(error: Optional[OSError] = None) -> Failed:
    return Failed(
        "the device does not work any more" + (": %s" % error.strerror if error else ""),
        "was it unplugged? plug it in again",
    )


def _hid_feature(number: int, length: int) -> int:
    """HIDIOCSFEATURE (6) and HIDIOCGFEATURE (7): _IOC(READ|WRITE, 'H', number, length), include/uapi/linux/hidraw.h."""
    return (3 << 30) | (length << 16) | (ord("H") << 8) | number


def _open(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Failed(
            "cannot open %s: %s" % (path, error.strerror),
            "is it plugged in? `plugpull switch list` lists what is found",
        ) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise Failed("another program has %s open" % path, "end it") from None
    return fd


def _make_raw(fd: int, baud: int) -> None:
    """8N1 without any translation (cfmakeraw(3))."""
    speed = getattr(termios, "B%d" % baud, None)
    if speed is None:
        raise Failed("this machine does not know the speed of %d baud" % baud)
    attributes = termios.tcgetattr(fd)
    attributes[0] = attributes[1] = attributes[3] = 0
    attributes[2] = termios.CS8 | termios.CREAD | termios.CLOCAL
    attributes[4] = attributes[5] = speed
    attributes[6][termios.VMIN] = attributes[6][termios.VTIME] = 0
    termios.tcsetattr(fd, termios.TCSANOW, attributes)


def _usb_above(sysfs: str) -> str:
    """The directory of the USB device something in sysfs belongs to, empty if there is none."""
    path = resolved(sysfs)
    while path not in ("", "/"):
        if os.path.exists(os.path.join(path, "idVendor")):
            return path
        path = os.path.dirname(path)
    return ""


class Devices:
    """All devices that drivers have open through this agent. Every method is an operation of theirs."""

    def __init__(self) -> None:
        self._open: Dict[int, int] = {}
        self._usb: Dict[int, usb_hid.UsbHid] = {}
        self._next = 0
        self._lock = threading.Lock()

    def close_all(self) -> None:
        for handle in [*self._open, *self._usb]:
            self.close(handle)

    def _keep(self, opened: Union[int, usb_hid.UsbHid]) -> int:
        with self._lock:
            self._next += 1
            if isinstance(opened, int):
                self._open[self._next] = opened
            else:
                self._usb[self._next] = opened
            return self._next

    def _fd(self, handle: int) -> int:
        try:
            return self._open[handle]
        except KeyError:
            raise Failed("the device is not open any more") from None

    def close(self, handle: int) -> None:
        with self._lock:
            fd = self._open.pop(handle, None)
            usb = self._usb.pop(handle, None)
        if fd is not None:
            os.close(fd)
        if usb is not None:
            usb.close()

    # --- serial ports ---------------------------------------------------------------------------------------------

    def serial_ports(self) -> List[Dict[str, Any]]:
        found = []
        for path in sorted(glob.glob("/sys/class/tty/*")):
            usb = _usb_above(os.path.join(path, "device")) if os.path.exists(path + "/device") else ""
            if usb:
                found.append(
                    {
                        "device": "/dev/" + os.path.basename(path),
                        "vendor": int(read_attribute(usb, "idVendor") or "0", 16),
                        "product": int(read_attribute(usb, "idProduct") or "0", 16),
                        "serial": read_attribute(usb, "serial"),
                        "model": read_attribute(usb, "product"),
                    }
                )
        return found

    def serial_open(self, device: str, baud: int) -> int:
        fd = _open(device)
        try:
            _make_raw(fd, baud)
        except termios.error as error:
            os.close(fd)
            raise Failed("%s is not a serial port: %s" % (device, error.args[-1])) from None
        except Failed:
            os.close(fd)
            raise
        return self._keep(fd)

    def write(self, handle: int, data: str, timeout: float = 2.0) -> None:
        """Write all of it within ``timeout`` seconds."""
        fd, left = self._fd(handle), bytes.fromhex(data)
        deadline = time.monotonic() + timeout
        while left:
            if not select.select([], [fd], [], max(0.0, deadline - time.monotonic()))[1]:
                raise Failed("the device does not accept what is written to it")
            try:
                left = left[os.write(fd, left) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise _gone(error) from None

    def read(self, handle: int, count: int, timeout: float, end: str = "") -> str:
        """Up to ``count`` bytes, or up to and including ``end``; at the timeout, in seconds, what has come."""
        mark = bytes.fromhex(end)
        return self._read(
            self._fd(handle), lambda got: len(got) >= count or (bool(mark) and got.endswith(mark)), 1, count, timeout
        ).hex()

    def _read(self, fd: int, enough: Callable[[bytes], bool], step: int, most: int, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        got = b""
        while not enough(got) and len(got) < min(most, MOST):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                break
            try:
                chunk = os.read(fd, step)
            except BlockingIOError:
                continue
            except OSError as error:
                raise _gone(error) from None
            if not chunk:
                raise _gone()
            got += chunk
        return got

    def drop_input(self, handle: int) -> str:
        return self._read(self._fd(handle), lambda got: False, MOST, MOST, 0.001).hex()

    # --- HID ------------------------------------------------------------------------------------------------------

    def hid_devices(self) -> List[Dict[str, Any]]:
        found = []
        for path in sorted(glob.glob("/sys/class/hidraw/hidraw*")):
            numbers = _HID_ID.search(read_attribute(path, "device", "uevent"))
            if numbers is None:
                continue
            usb = _usb_above(os.path.join(path, "device"))
            uniq = re.search(r"^HID_UNIQ=(.*)$", read_attribute(path, "device", "uevent"), re.MULTILINE)
            name = re.search(r"^HID_NAME=(.*)$", read_attribute(path, "device", "uevent"), re.MULTILINE)
            found.append(
                {
                    "vendor": int(numbers.group(1), 16),
                    "product": int(numbers.group(2), 16),
                    "serial": (uniq.group(1) if uniq else "") or read_attribute(usb, "serial"),
                    "path": "/dev/" + os.path.basename(path),
                    "model": name.group(1) if name else "",
                }
            )
        return found + usb_hid.devices()

    def hid_open(self, path: str) -> int:
        if usb_hid.PATH.match(path):
            try:
                return self._keep(usb_hid.UsbHid(path))
            except OSError as error:
                raise Failed("cannot open the HID device at %s: %s" % (path, error.strerror)) from None
        if not re.match(r"^/dev/hidraw\d+\Z", path):
            raise Failed("%s is not a HID device" % path)
        return self._keep(_open(path))

    def hid_write(self, handle: int, report: str) -> None:
        """One output report, its id first: one write() (Documentation/hid/hidraw.rst)."""
        data = bytes.fromhex(report)
        try:
            if handle in self._usb:
                self._usb[handle].write(data)
                return
            written = os.write(self._fd(handle), data)
        except OSError as error:
            raise _gone(error) from None
        if written != len(data):
            raise Failed("the device did not accept the report")

    def hid_read(self, handle: int, count: int, timeout: float) -> str:
        """One input report; empty when none comes in time."""
        if handle in self._usb:
            try:
                return self._usb[handle].read(count, timeout).hex()
            except OSError as error:
                raise Failed("the device has gone: %s" % error.strerror) from None
        return self._read(self._fd(handle), bool, count, count, timeout).hex()

    def hid_get_feature(self, handle: int, report_id: int, count: int) -> str:
        """A feature report without its id. The first byte of the buffer is the id even where the device has none
        (usbhid_get_raw_report in drivers/hid/usbhid/hid-core.c)."""
        buffer = bytearray([report_id]) + bytearray(count)
        try:
            if handle in self._usb:
                return self._usb[handle].get_feature(report_id, count).hex()
            length = fcntl.ioctl(self._fd(handle), _hid_feature(7, len(buffer)), buffer, True)
        except OSError as error:
            raise _gone(error) from None
        return bytes(buffer[1:length]).hex()

    def hid_send_feature(self, handle: int, report: str) -> None:
        buffer = bytearray(bytes.fromhex(report))
        try:
            if handle in self._usb:
                self._usb[handle].send_feature(bytes(buffer))
                return
            fcntl.ioctl(self._fd(handle), _hid_feature(6, len(buffer)), buffer, True)
        except OSError as error:
            raise Failed("the device did not accept the feature report: %s" % error.strerror) from None

    # --- programs and files ---------------------------------------------------------------------------------------

    def run(self, argv: List[str], timeout: float, environment: Optional[Dict[str, str]] = None) -> Dict[str, Any]:
        """A program to its end; killed with its children at the deadline."""
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise Failed(
                "cannot run %s: %s" % (argv[0], error.strerror), "is %s installed on the DUT?" % argv[0]
            ) from None
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Failed("%s did not end within %g s; it was killed" % (argv[0], timeout)) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return {
            "status": process.returncode,
            "stdout": out.decode("utf-8", "replace"),
            "stderr": err.decode("utf-8", "replace"),
        }

    def read_text(self, path: str) -> str:
        try:
            with open(path, "rb") as file:
                return file.read(MOST).decode("utf-8", "replace")
        except OSError as error:
            raise Failed("cannot read %s: %s" % (path, error.strerror)) from None

    def write_text(self, path: str, text: str) -> None:
        if not os.path.realpath(path).startswith("/sys/"):
            raise Failed("%s is not a sysfs attribute: nothing was written" % path)
        try:
            with open(path, "w") as file:
                file.write(text)
        except OSError as error:
            raise Failed("cannot write %s: %s" % (path, error.strerror), "only root may") from None

    def glob(self, pattern: str) -> List[str]:
        return sorted(glob.glob(pattern))

    def real_path(self, path: str) -> str:
        return resolved(path)
