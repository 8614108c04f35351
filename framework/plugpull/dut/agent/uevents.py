"""Kernel uevents (Documentation/ABI/testing/sysfs-uevent), straight from the kernel: no udevd is needed."""

from __future__ import annotations

import ctypes.util
import os
import socket
import threading
from typing import Any, Callable, Dict, Iterator

from .disks import describe
from .wire import now

_WATCHED = ("usb", "block", "scsi")
_NETLINK_KOBJECT_UEVENT = 15  # include/uapi/linux/netlink.h

Properties = Dict[str, str]


def parse_uevent(data: bytes) -> Properties:
    """``add@/devices/...\\0ACTION=add\\0DEVPATH=...`` -> its properties; empty for anything else."""
    header, _, rest = data.partition(b"\0")
    if b"@" not in header:
        return {}
    pairs = (item.decode("utf-8", "replace").partition("=") for item in rest.split(b"\0") if b"=" in item)
    return {key: value for key, _, value in pairs}


def _import_pyudev() -> Any:
    """pyudev, also without the C library's index of libraries, in which ctypes looks libudev up."""
    if ctypes.util.find_library("udev") is None:
        ctypes.CDLL("libudev.so.1")
        find = ctypes.util.find_library
        ctypes.util.find_library = lambda name: "libudev.so.1" if name == "udev" else find(name)
    import pyudev

    return pyudev


def _from_pyudev() -> Iterator[Properties]:
    pyudev = _import_pyudev()
    monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
    monitor.set_receive_buffer_size(8 << 20)
    monitor.start()
    while True:
        # None does not end the loop: it stands for a message that is not a uevent of the kernel.
        device = monitor.poll()
        if device is not None:
            yield dict(device.properties)


def _from_netlink() -> Iterator[Properties]:
    """For a DUT without libudev."""
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_KOBJECT_UEVENT)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    link.bind((0, 1))
    while True:
        yield parse_uevent(link.recv(65536))


class Uevents:
    """Reports each uevent of the watched subsystems, and each disk that comes or goes."""

    def __init__(self, send: Callable[[Dict[str, Any]], None]) -> None:
        self._send = send
        try:
            _import_pyudev().Context()
            self.source = "pyudev"
            self._stream = _from_pyudev()
        except (ImportError, OSError):
            self.source = "netlink"
            self._stream = _from_netlink()
        threading.Thread(target=self._run, name="uevents", daemon=True).start()

    def _run(self) -> None:
        others = 0
        try:
            for properties in self._stream:
                if properties.get("SUBSYSTEM") in _WATCHED:
                    self._hand_on(properties, now(), others)
                    others = 0
                else:
                    others += 1
        except Exception as error:
            self._send({"ev": "watcher.broken", "at": now(), "what": "uevents", "why": repr(error)})

    def _hand_on(self, properties: Properties, at: float, others: int) -> None:
        action, devpath = properties.get("ACTION", ""), properties.get("DEVPATH", "")
        subsystem, devtype = properties.get("SUBSYSTEM", ""), properties.get("DEVTYPE", "")
        self._send(
            {
                "ev": "uevent",
                "at": at,
                "action": action,
                "subsystem": subsystem,
                "devpath": devpath,
                "devtype": devtype,
                "seqnum": int(properties.get("SEQNUM", 0)),
                "others": others,
            }
        )
        if subsystem != "block" or devtype != "disk":
            return
        kname = os.path.basename(devpath)
        if action == "remove":
            self._send({"ev": "disk.remove", "at": at, "kname": kname, "diskseq": int(properties.get("DISKSEQ", 0))})
        elif action == "add" and "/virtual/" not in devpath:
            disk = describe(kname)
            if disk is not None:
                self._send({"ev": "disk.add", "at": at, "disk": disk})
