"""The devices of a plain log: which block device is which SCSI unit, behind which bridge, in which port.

The log's own lines are the only source. A fact is also used for the lines before the one that states it, as long as
no earlier line says otherwise: many logs begin after the devices were found.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from plugpull.kernel.catalogue.device_names import names_in
from plugpull.kernel.diagnosis.device import Device
from plugpull.kernel.diagnosis.scope import Level

_FOUND = re.compile(r"^usb (\S+): (?:New USB device found, idVendor=([\da-f]{4}), idProduct=([\da-f]{4}))")
_QUIRK = re.compile(r"^(?:usb-storage|uas) (\d+-[\d.]+):\S+ (?:Quirks match for|.*) ?vid ([\da-f]{4}) pid ([\da-f]{4})")
_DETECTED = re.compile(r"^(?:usb-storage|uas) (\d+-\d+(?:\.\d+)*):\d+\.\d+: USB Mass Storage device (?:detected|found)")
_BOUND = re.compile(r"^scsi ?(?:host)?(\d+) ?: +(uas(?!\w)|usb-storage(?: (\S+):\d+\.\d+)?|SCSI emulation)")
_RESETTING = re.compile(r"^scsi host(\d+): uas_eh_device_reset_handler (start)?")
_RESET = re.compile(r"^usb (\d+-\d+(?:\.\d+)*): reset ")
_UNIT = re.compile(r"^sd (\d+:\d+:\d+:\d+): \[(\w+)\]")
_INQUIRY = re.compile(r"^scsi (\d+:\d+:\d+:\d+): +(?:Direct-Access\S*) +(.*?) +PQ:")
_UAS = re.compile(r"\buas_\w+")
_HUB = re.compile(r"^hub (\d+-\d+(?:\.\d+)*):\d+\.\d+: (?:USB hub found|\d+ ports? detected)")


class _Timeline:
    """The values of one property, with the line from which each of them holds."""

    def __init__(self) -> None:
        self._lines: list[int] = []
        self._values: list[str] = []

    def add(self, line: int, value: str) -> None:
        if not self._values or self._values[-1] != value:
            self._lines.append(line)
            self._values.append(value)

    def at(self, line: int) -> str:
        if not self._values:
            return ""
        return self._values[max(0, bisect_right(self._lines, line) - 1)]


class DeviceTable:
    """Finds the device that a message is about. ``bodies`` are (line, message without prefix), in order."""

    def __init__(self, bodies: Iterable[tuple[int, str]]) -> None:
        self._unit: defaultdict[str, _Timeline] = defaultdict(_Timeline)
        self._port: defaultdict[str, _Timeline] = defaultdict(_Timeline)
        self._driver: defaultdict[str, _Timeline] = defaultdict(_Timeline)
        self._ids: defaultdict[str, _Timeline] = defaultdict(_Timeline)
        self._model: defaultdict[str, _Timeline] = defaultdict(_Timeline)
        self._kname: defaultdict[str, _Timeline] = defaultdict(_Timeline)
        self._arrived: defaultdict[str, list[int]] = defaultdict(list)
        self._bound: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._paths: set[str] = set()
        self._hubs: set[str] = set()
        self._last_port = ""
        self._resetting = ""
        for line, body in bodies:
            self._read(line, body)

    def _read(self, line: int, body: str) -> None:
        self._paths.update(path for path in names_in(body).usb if "-" in path)
        if found := _UNIT.match(body):
            self._unit[found.group(2)].add(line, found.group(1))
            self._kname[found.group(1)].add(line, found.group(2))
            if _UAS.search(body):
                self._driver[_host(found.group(1))].add(line, "uas")
        elif found := _FOUND.match(body) or _QUIRK.match(body):
            self._ids[found.group(1)].add(line, f"{found.group(2)}:{found.group(3)}")
            self._last_port = found.group(1)
            if _FOUND.match(body):
                self._arrived[found.group(1)].append(line)
        elif found := _DETECTED.match(body):
            self._last_port = found.group(1)
        elif found := _BOUND.match(body):
            host, port = f"host{found.group(1)}", found.group(3) or self._last_port
            self._driver[host].add(line, "uas" if found.group(2) == "uas" else "usb-storage")
            if port:
                self._bind(line, host, port)
        elif found := _RESETTING.match(body):
            self._resetting = f"host{found.group(1)}" if found.group(2) else ""
            self._driver[f"host{found.group(1)}"].add(line, "uas")
        elif (found := _RESET.match(body)) and self._resetting:
            self._bind(line, self._resetting, found.group(1))
        elif found := _INQUIRY.match(body):
            self._model[found.group(1)].add(line, " ".join(found.group(2).split()))
        elif found := _HUB.match(body):
            self._hubs.add(found.group(1))

    def _bind(self, line: int, host: str, port: str) -> None:
        self._port[host].add(line, port)
        self._bound[port].append((line, host))

    def _host_in(self, line: int, port: str) -> str:
        """The SCSI host of the device in ``port`` at ``line``: bound after its arrival and before the next one's."""
        arrived = self._arrived[port]
        count = bisect_right(arrived, line)
        begin = arrived[count - 1] if count else 0
        end = arrived[count] if count < len(arrived) else float("inf")
        return next((host for bound, host in self._bound[port] if begin <= bound < end), "")

    def find(self, line: int, body: str) -> Device | None:
        """The device that a message is about; ``None`` if it names no device."""
        names = names_in(body)
        for kname in names.blocks:
            return self._of_unit(line, kname, self._unit[kname].at(line))
        for address in names.addresses:
            return self._of_unit(line, self._kname[address].at(line), address)
        for host in names.hosts:
            return self._of_host(line, host)
        for path in names.usb:
            return self._of_path(line, path, body)
        for controller in names.controllers:
            return Device(controller, f"controller {controller}", Level.CONTROLLER, controller=controller)
        for array in names.arrays:
            return Device(array, f"array {array}", Level.ARRAY)
        return None

    def _of_unit(self, line: int, kname: str, address: str) -> Device:
        if not address:
            return Device(kname, kname, identity=kname)
        device = self._of_host(line, _host(address))
        rest = address.partition(":")[2]
        key = device.key if rest == "0:0:0" else f"{device.key} {rest}"
        return replace(device, key=key, name=kname or f"SCSI {address}")

    def _of_host(self, line: int, host: str) -> Device:
        port, driver = self._port[host].at(line), self._driver[host].at(line)
        model = self._model[f"{host.removeprefix('host')}:0:0:0"].at(line)
        kname = self._kname[f"{host.removeprefix('host')}:0:0:0"].at(line)
        if not port:
            return Device(host, kname or f"SCSI {host}", driver=driver, identity=model or host)
        device = self._of_port(line, port)
        identity = f"{device.ids} {model}".strip()
        return replace(device, name=kname or device.name, driver=driver, identity=identity)

    def _of_path(self, line: int, path: str, body: str) -> Device:
        if path.startswith("usb"):
            return Device(path, f"root hub {path}", Level.HUB)
        below = path in self._hubs or any(other.startswith(f"{path}.") for other in self._paths)
        if below or (body.startswith("hub ") and f"hub {path}:" in body):
            return Device(f"hub {path}", f"hub {path}", Level.HUB, hubs=(path,))
        host = self._host_in(line, path)
        return self._of_host(line, host) if host else self._of_port(line, path)

    def _of_port(self, line: int, path: str) -> Device:
        ids = self._ids[path].at(line)
        first, *ports = path.split(".")
        above = tuple(".".join((first, *ports[:count])) for count in range(len(ports)))
        root = f"usb{path.partition('-')[0]}"
        key, name = f"{path} {ids}".strip(), f"usb {path}"
        return Device(key, name, port=path, hubs=(root, *above), ids=ids, identity=ids or path)


def _host(address: str) -> str:
    return f"host{address.partition(':')[0]}"
