"""Classifies a line of a kernel log: the kind of event and the device it is about."""

from __future__ import annotations

import re

import msgspec

from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.finder import entry_of
from plugpull.kernel.catalogue.prefix import second_message, split_prefix


class KernelEvent(msgspec.Struct, frozen=True):
    """A recognised kernel message. ``subject`` is the device it is about, such as ``sdb``, or empty."""

    kind: str
    severity: Severity
    subject: str
    text: str

    @property
    def alarming(self) -> bool:
        """Whether a healthy kernel never logs this, even if devices are unplugged."""
        return self.severity is Severity.FATAL or self.severity is Severity.WARNING


_SUBJECTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[(sd[a-z]+|sr\d+|nvme\d+n\d+)\]",
        (
            r"(?:\bdev(?:ice)? |^[\w-]*(?:fs|FS)(?: \w+)? \((?:device )?|on device |Disk failure on )"
            r"((?:sd|nvme|md|dm-|mmcblk|loop|sr|vd|xvd|hd)[\w-]*?)(?=[,:;.) ]|-\d+\.|$)"
        ),
        r"^(sd[a-z]+\d*|nvme\d+n\d+|sr\d+)(?: ?:|,)",
        r"^ *md(?:/raid\d*)?:? ?(md\w+):",
        r"\bof RAID array (md\w+)",
        r"\busb (\d+-[\d.]+|usb\d+)\b",
        r"^(?:usb-storage|uas|hub) (\d+-[\d.]+)",
        r"^(?:sd|scsi|sr) (\d+:\d+:\d+:\d+)",
        r"^scsi (host\d+)",
        r"^[xeuo]hci[\w.-]* (\S+): ",
        r"^INFO: task (\S+):\d+ ",
    )
)
"""The name nearest to a disk comes first: "sd 2:0:0:0: [sdb]" is about sdb."""


def classify(text: str) -> KernelEvent | None:
    """The meaning of a line of a kernel log, with any prefix; ``None`` if its message is not in the catalogue."""
    return classify_message(split_prefix(text)[1].strip(), text)


def classify_message(body: str, text: str) -> KernelEvent | None:
    """The meaning of a message without its prefix. ``text`` is the whole line."""
    entry = entry_of(body)
    if entry is None and (second := second_message(text)):
        entry, body = entry_of(second), second
    return KernelEvent(entry.kind, entry.severity, subject_of(body), text) if entry is not None else None


def subject_of(body: str) -> str:
    """What a message is about: a disk, a USB port, a SCSI address, a controller, a task. Empty if
    it names none."""
    for pattern in _SUBJECTS:
        found = pattern.search(body)
        if found is not None:
            return found.group(1)
    return ""
