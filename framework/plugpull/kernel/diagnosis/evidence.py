"""The evidence about each device of a story, from which ``culprit.py`` infers the probable cause."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from plugpull.kernel.diagnosis.device import Device
from plugpull.kernel.diagnosis.error_story import ErrorStory
from plugpull.kernel.diagnosis.happening import Happening
from plugpull.kernel.diagnosis.restarts import DIED, RESTARTED
from plugpull.kernel.diagnosis.scope import Level

AGAIN = 3
"""Failures at one place from which on the place is the cause."""
PLACE = 8
"""Sectors that count as one place: a page, the unit in which the kernel reads again."""
BEFORE = 60.0
"""Seconds before a disconnect in which errors may have led to it: two command timeouts (SD_TIMEOUT, 30 s)."""

_SECTOR = re.compile(r"error, dev \S+, sector (\d+)")
_MEDIUM = re.compile(r"Sense Key ?: (?:0x3\b|Medium Error)|critical medium error|Unrecovered read error")
_BROKEN = re.compile(r"Sense Key ?: (?:0x4\b|Hardware Error)")
_GONE = re.compile(r"device offline error|rejecting I/O to (?:offline|dead)|hostbyte=(?:DID_NO_CONNECT|0x0*1\b)")
_LATE = re.compile(r"uas_eh_abort_handler|timing out command|hostbyte=(?:DID_TIME_OUT|0x0*3\b)")
_TAG = re.compile(r"tag#(\d+)")
_CDB = re.compile(r"CDB: (?:(?:Read|Write)\(\d+\)|opcode=0x\w+):? ([\da-f]{2}(?: [\da-f]{2})+)")
_LENGTHS = {0x28: (7, 9), 0x2A: (7, 9), 0x88: (10, 14), 0x8A: (10, 14), 0xA8: (6, 10), 0xAA: (6, 10)}
"""READ and WRITE (10), (16), (12): bytes of the CDB that hold the number of blocks (SBC-4, 5.15 and 5.42)."""
_LINK = re.compile(
    r"disabled by hub \(EMI\?\)|Maybe the USB cable is bad|error -(?:71|84)\b|err = -(?:71|84)\)"
    r"|connect-debounce failed"
)
"""-EPROTO and -EILSEQ are transmission errors (Documentation/driver-api/usb/error-codes.rst)."""
_BLOCKS = re.compile(r"\d+ (\d+)-byte (?:logical blocks|hardware sectors)")
PORT_KINDS = frozenset({"usb.enumeration-error", "usb.link-error", "usb.reset", "usb.overcurrent"})
_TRANSPORT = PORT_KINDS | {"uas.error", "scsi.offline", "scsi.error", "block.error"}


class Absence(NamedTuple):
    """A device that disconnected and came back to its port. Times in seconds."""

    at: float
    seconds: float
    after_errors: bool
    body: str


@dataclass
class Facts:
    """The evidence about one device."""

    device: Device
    sectors: Counter[int] = field(default_factory=Counter)
    medium: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    drivers: set[str] = field(default_factory=set)
    resets: list[tuple[str, str]] = field(default_factory=list)
    """(driver, message)"""
    late: dict[str, int] = field(default_factory=dict)
    link: list[str] = field(default_factory=list)
    transport: list[Happening] = field(default_factory=list)
    fell_off: int = 0
    block: int = 512
    left: float | None = None
    """When it disconnected, seconds; ``None`` if it is attached."""
    absences: list[Absence] = field(default_factory=list)
    errors: float | None = None
    """When the last error of its transport was logged, seconds."""

    @property
    def troubled(self) -> bool:
        return bool(self.transport or self.medium or self.fell_off)

    @property
    def scattered(self) -> bool:
        """Whether it fails at many places, none of which stands out."""
        total = sum(self.sectors.values())
        return len(self.sectors) >= AGAIN and max(self.sectors.values()) * 2 < total


class Case:
    """The evidence about all devices of a story."""

    def __init__(self, story: ErrorStory) -> None:
        self.happenings = [one for one in story.happenings if not one.expected]
        self.facts = {one.device.key: Facts(one.device) for one in story.devices}
        gone: dict[str, bool] = {}
        late: set[tuple[str, str]] = set()
        for one in self.happenings:
            if one.kind in (DIED, RESTARTED):
                gone.clear()
                late.clear()
                for facts in self.facts.values():
                    facts.left = facts.errors = None
            for key in one.devices:
                self._weigh(self.facts[key], one, gone, late)

    def _weigh(self, facts: Facts, one: Happening, gone: dict[str, bool], late: set[tuple[str, str]]) -> None:
        key, body = facts.device.key, one.body
        facts.drivers.add(one.driver)
        if size := _BLOCKS.search(body):
            facts.block = int(size.group(1))
        if one.kind == "usb.disconnect":
            gone[key] = True
            facts.left = one.at
        elif one.kind in {"usb.connect", "storage.attach"}:
            gone.pop(key, None)
            self._weigh_return(facts, one)
        elif key in gone or _GONE.search(body):
            # Requests that fail because the disk has gone only show that it was in use.
            if gone.get(key) and one.kind == "block.error":
                facts.fell_off, gone[key] = facts.fell_off + 1, False
        else:
            self._weigh_error(facts, one, late)

    def _weigh_return(self, facts: Facts, one: Happening) -> None:
        """Only this message has the ids of the device, so that it is certain that the same one is back."""
        if facts.left is None or one.at is None or "New USB device found" not in one.body:
            return
        seconds = one.at - facts.left
        troubled = facts.errors is not None and 0 <= facts.left - facts.errors <= BEFORE
        if seconds >= 0:
            facts.absences.append(Absence(facts.left, seconds, troubled, one.body))
        facts.left = None

    def _weigh_error(self, facts: Facts, one: Happening, late: set[tuple[str, str]]) -> None:
        body, key = one.body, facts.device.key
        if _MEDIUM.search(body):
            facts.medium.append(body)
        if _BROKEN.search(body):
            facts.broken.append(body)
        if sector := _SECTOR.search(body):
            facts.sectors[int(sector.group(1)) // PLACE] += 1
        if _LINK.search(body):
            facts.link.append(body)
        tag = _TAG.search(body)
        if tag and _LATE.search(body):
            late.add((key, tag.group(1)))
        if (cdb := _CDB.search(body)) and tag and (key, tag.group(1)) in late:
            late.discard((key, tag.group(1)))
            code = bytes.fromhex(cdb.group(1))
            begin, end = _LENGTHS.get(code[0], (0, 0))
            if end and len(code) >= end:
                facts.late[cdb.group(1)] = int.from_bytes(code[begin:end], "big") * facts.block
        if one.kind == "usb.reset" or (one.kind == "uas.error" and "reset_handler" not in body):
            facts.resets.append((one.driver, body))
        top = "not running at top speed" in body
        if one.kind in _TRANSPORT and not top and not _MEDIUM.search(body) and one.level is Level.DISK:
            facts.transport.append(one)
            facts.errors = one.at

    @property
    def disks(self) -> list[Facts]:
        return [facts for facts in self.facts.values() if facts.device.level is Level.DISK]

    def of(self, *kinds: str) -> list[Happening]:
        return [one for one in self.happenings if one.kind in kinds]
