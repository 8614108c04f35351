"""Classifies a line of a kernel log: the kind of event and the device it is about."""

from __future__ import annotations

import re

import msgspec

from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.finder import entry_of
from plugpull.kernel.catalogue.prefix import second_message, split_prefix

_ALARMING = (Severity.FATAL, Severity.WARNING)


class KernelEvent(msgspec.Struct, frozen=True):
    """A recognised kernel message. ``subject`` is the device it is about, such as ``sdb``, or empty."""

    kind: str
    severity: Severity
    subject: str
    text: str

    @property
    def alarming(self) -> bool:
        """Whether a healthy kernel never logs this, even if devices are unplugged."""
        return self.severity in _ALARMING


_DISKS = (
    r"((?:sd|nvme|md|dm-|mmcblk|mtdblock|loop|sr|vd|xvd|hd|nbd|drbd|rbd|zram|pmem|ublkb|bcache)[\w-]*?)"
    r"(?=[,:;.) ]|-\d+\.|$)"
)
_SUBJECTS = tuple(
    # A search for "^..." would try it at each place of the line.
    re.compile(pattern[1:]).match if pattern.startswith("^") else re.compile(pattern).search
    for pattern in (
        r"\[(sd[a-z]+|sr\d+|nvme\d+n\d+)\]",
        rf"^(?:[\w-]*(?:fs|FS)(?::? \w+)? ?\((?:device )?|ntfs3\(){_DISKS}",
        rf"dev(?<!\wdev)(?:ice)? {_DISKS}",
        rf"Disk failure on {_DISKS}",
        r"^(sd[a-z]+\d*|nvme\d+n\d+|sr\d+)(?: ?:|,)",
        r"^ *md(?:/raid\d*)?:? ?(md\w+):",
        r"\bof RAID array (md\w+)",
        r"\b(?:usb|usbip-host|\w+-cfgselector|onboard[_-]usb[_-]\w+) (\d+-[\d.]+|usb\d+)\b",
        r"^(?:usb-storage|uas|hub) (\d+-[\d.]+)",
        r"^(?:sd|scsi|sr|ses|st|sg|osst|ch) (\d+:\d+:\d+:\d+)",
        r"^scsi (host\d+)",
        r"^scsi (target\d+:\d+:\d+)",
        r"^(scsi\d+) ?[:(]",
        r"^(?:(?:[a-z]\w*-)?(?:[xeuo]hci|xusb)|dwc[23]|musb)[\w.-]* (\S+): ",
        r"^(?:sas: )?(ata\d+(?:\.\d\d)?|mmc\d+): ",
        r"^nvme (\S+): ",
        r"^(?:[a-z]\w*-)?(?:ahci|sata|pata)[\w-]* (\S+): ",
        r"^[\w-]+ ([\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.[\da-f])(?::pcie?\d+)?: ",
        r"^thunderbolt (\S+): ",
        r"^device-mapper: [\w -]+: (\d+:\d+|dm-\d+): ",
        r"\bzio pool=(\S+)|^WARNING: Pool '(\S+)'",
        r"^INFO: task (\S+):\d+ ",
        (
            r"(?<![\w/.-])(?:/dev/)?(sd(?!io\b|hci\b|dr\d)[a-z]{1,3}\d*|nvme\d+n\d+(?:p\d+)?|mmcblk\d+(?:p\d+)?|sr\d+|md\d+|dm-\d+)"
            r"(?:-\d+)?(?![\w/])"
        ),
    )
)
"""The name nearest to a disk comes first: "sd 2:0:0:0: [sdb]" is about sdb. Any name of a disk comes last."""


def classify(text: str) -> KernelEvent | None:
    """The meaning of a line of a kernel log, with any prefix; ``None`` if its message is not in the catalogue."""
    return classify_message(split_prefix(text)[1].strip(), text)


def classify_message(body: str, text: str) -> KernelEvent | None:
    """The meaning of a message without its prefix. ``text`` is the whole line."""
    entry = entry_of(body, text)
    if entry is None and (second := second_message(text, body)):
        entry, body = entry_of(second, text), second
    return KernelEvent(entry.kind, entry.severity, subject_of(body), text) if entry is not None else None


def subject_of(body: str) -> str:
    """What a message is about: a disk, a USB port, a SCSI address, a controller, a task. Empty if
    it names none."""
    begin, end = subject_span(body)
    return body[begin:end]


def subject_span(body: str) -> tuple[int, int]:
    """Where the subject of a message begins and ends in it."""
    for find in _SUBJECTS:
        found = find(body)
        if found is not None:
            return found.span(found.lastindex or 0)
    return 0, 0
