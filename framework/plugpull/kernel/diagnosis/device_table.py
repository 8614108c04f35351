"""Who is who in a plain log: which block device is which SCSI unit, behind which bridge, in which port.

Nothing but the log's own lines is asked. What they tell late is also true a little earlier: a log rarely begins where
the trouble does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from plugpull.kernel.catalogue.device_names import names_in
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


class Who(NamedTuple):
    """The fields of ``error_story.Device``."""

    key: str = ""
    name: str = ""
    level: Level = Level.NOTHING
    port: str = ""
    hubs: tuple[str, ...] = ()
    controller: str = ""
    ids: str = ""
    driver: str = ""
    identity: str = ""


class _Known:
    """What a name stood for, from which line on."""

    def __init__(self) -> None:
        self._lines: list[int] = []
        self._values: list[str] = []

    def learn(self, line: int, value: str) -> None:
        if not self._values or self._values[-1] != value:
            self._lines.append(line)
            self._values.append(value)

    def at(self, line: int) -> str:
        if not self._values:
            return ""
        return self._values[max(0, bisect_right(self._lines, line) - 1)]


class Whois:
    """``bodies`` are (line, message without prefix), in order."""

    def __init__(self, bodies: Iterable[tuple[int, str]]) -> None:
        self._unit: defaultdict[str, _Known] = defaultdict(_Known)
        self._port: defaultdict[str, _Known] = defaultdict(_Known)
        self._driver: defaultdict[str, _Known] = defaultdict(_Known)
        self._ids: defaultdict[str, _Known] = defaultdict(_Known)
        self._model: defaultdict[str, _Known] = defaultdict(_Known)
        self._kname: defaultdict[str, _Known] = defaultdict(_Known)
        self._arrived: defaultdict[str, list[int]] = defaultdict(list)
        self._bound: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._paths: set[str] = set()
        self._hubs: set[str] = set()
        self._coming = ""
        self._resetting = ""
        for line, body in bodies:
            self._learn(line, body)

    def _learn(self, line: int, body: str) -> None:
        self._paths.update(path for path in names_in(body).usb if "-" in path)
        if found := _UNIT.match(body):
            self._unit[found.group(2)].learn(line, found.group(1))
            self._kname[found.group(1)].learn(line, found.group(2))
            if _UAS.search(body):
                self._driver[_host(found.group(1))].learn(line, "uas")
        elif found := _FOUND.match(body) or _QUIRK.match(body):
            self._ids[found.group(1)].learn(line, f"{found.group(2)}:{found.group(3)}")
            self._coming = found.group(1)
            if _FOUND.match(body):
                self._arrived[found.group(1)].append(line)
        elif found := _DETECTED.match(body):
            self._coming = found.group(1)
        elif found := _BOUND.match(body):
            host, port = f"host{found.group(1)}", found.group(3) or self._coming
            self._driver[host].learn(line, "uas" if found.group(2) == "uas" else "usb-storage")
            if port:
                self._bind(line, host, port)
        elif found := _RESETTING.match(body):
            self._resetting = f"host{found.group(1)}" if found.group(2) else ""
            self._driver[f"host{found.group(1)}"].learn(line, "uas")
        elif (found := _RESET.match(body)) and self._resetting:
            self._bind(line, self._resetting, found.group(1))
        elif found := _INQUIRY.match(body):
            self._model[found.group(1)].learn(line, " ".join(found.group(2).split()))
        elif found := _HUB.match(body):
            self._hubs.add(found.group(1))

    def _bind(self, line: int, host: str, port: str) -> None:
        self._port[host].learn(line, port)
        self._bound[port].append((line, host))

    def _host_in(self, line: int, port: str) -> str:
        """The SCSI host of what was in the port then: bound between its arrival and that of the next thing."""
        arrived = self._arrived[port]
        turn = bisect_right(arrived, line)
        begin = arrived[turn - 1] if turn else 0
        end = arrived[turn] if turn < len(arrived) else float("inf")
        return next((host for bound, host in self._bound[port] if begin <= bound < end), "")

    def who(self, line: int, body: str) -> Who:
        """The device that a message is about; one without a key if it names none."""
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
            return Who(controller, f"controller {controller}", Level.CONTROLLER, controller=controller)
        for array in names.arrays:
            return Who(array, f"array {array}", Level.ARRAY)
        return Who()

    def _of_unit(self, line: int, kname: str, address: str) -> Who:
        if not address:
            return Who(kname, kname, Level.DISK, identity=kname)
        who = self._of_host(line, _host(address))
        rest = address.partition(":")[2]
        key = who.key if rest == "0:0:0" else f"{who.key} {rest}"
        return who._replace(key=key, name=kname or f"SCSI {address}")

    def _of_host(self, line: int, host: str) -> Who:
        port, driver = self._port[host].at(line), self._driver[host].at(line)
        model = self._model[f"{host.removeprefix('host')}:0:0:0"].at(line)
        kname = self._kname[f"{host.removeprefix('host')}:0:0:0"].at(line)
        if not port:
            name = kname or f"SCSI {host}"
            return Who(host, name, Level.DISK, driver=driver, identity=model or host)
        who = self._of_port(line, port)
        identity = f"{who.ids} {model}".strip()
        return who._replace(name=kname or who.name, driver=driver, identity=identity)

    def _of_path(self, line: int, path: str, body: str) -> Who:
        if path.startswith("usb"):
            return Who(path, f"root hub {path}", Level.HUB)
        below = path in self._hubs or any(other.startswith(f"{path}.") for other in self._paths)
        if below or (body.startswith("hub ") and f"hub {path}:" in body):
            return Who(f"hub {path}", f"hub {path}", Level.HUB, hubs=(path,))
        host = self._host_in(line, path)
        return self._of_host(line, host) if host else self._of_port(line, path)

    def _of_port(self, line: int, path: str) -> Who:
        ids = self._ids[path].at(line)
        first, *ports = path.split(".")
        above = tuple(".".join((first, *ports[:count])) for count in range(len(ports)))
        root = f"usb{path.partition('-')[0]}"
        return Who(f"{path} {ids}".strip(), f"usb {path}", Level.DISK, path, (root, *above), "", ids, "", ids or path)


def _host(address: str) -> str:
    return f"host{address.partition(':')[0]}"
