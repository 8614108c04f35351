"""Messages that continue another one and do not repeat its device.

Until Linux 3.16 the SCSI code printed a result as several lines, of which only the first names the disk
(drivers/scsi/constants.c); fs/fat/misc.c and fs/buffer.c did the same until 3.3 and 4.2. What libata says about a
failed command still has two lines (drivers/ata/libata-eh.c).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from plugpull.kernel.catalogue.deferred import deferred
from plugpull.kernel.catalogue.prefix import split_prefix, time_of

LINES = 8
"""Lines in which the continued message is looked for. Results of several commands alternate."""
SECONDS = 0.5
"""Seconds between two parts of a message."""
LONGEST = 400
"""Bytes of a line that are read: the name of the device is at the beginning."""


class _Family(NamedTuple):
    part: re.Pattern[str]
    """The message without a device."""
    whole: re.Pattern[str]
    """The message that names it."""
    later: bool = False
    """Whether it is printed after the part."""


_ATA = deferred(r"^ata\d+\.\d\d: (?:cmd|tag|failed command)")
_SCSI = deferred(r"^(?:sd|sr|st|ses|scsi) \d+:\d+:\d+:\d+:")
_FAMILIES = (
    _Family(
        deferred(
            r"^(?:Result: hostbyte|Sense Key ?:|Add\. Sense:|Additional sense:|ASC=|<<vendor>>|CDB:|[Cc]urrent: sense"
            r"|Unhandled (?:sense|error) code|Descriptor sense data"
            r"|(?:Read|Write|Verify|Synchronize Cache|Inquiry|Mode Sense|Test Unit Ready|Unmap)\b[^:]{0,20}: "
            r"(?:[\da-f]{2} ){3})"
        ),
        _SCSI,
    ),
    _Family(deferred(r"^res [\da-f]{2}/"), _ATA),
    _Family(deferred(r"^lost (?:async |sync )?page write(?: due to|$)"), deferred(r"^Buffer I/O error on dev")),
    _Family(
        deferred(r"^[Ff]ile ?system has been set read-only|^fat_\w+: |^invalid access to FAT"),
        deferred(r"^(?:FAT|VFAT|MSDOS|exFAT)(?:-fs)?[ :(]"),
    ),
    _Family(deferred(r"^(?:raid\d+: )?Operation continuing on"), deferred(r"^(?:raid\d+|md/\S+): Disk failure")),
    _Family(
        deferred(r"^attempt to access beyond end of device"),
        deferred(r"^\S+: rw=\w+, (?:want|sector)="),
        later=True,
    ),
)


def continued(text: bytes, start: int, body: str) -> str:
    """The message, without its prefix, that the one at ``start`` of ``text`` continues; empty if it continues none."""
    family = next((one for one in _FAMILIES if one.part.match(body)), None)
    if family is None:
        return ""
    prefix, _ = split_prefix(_line(text, start))
    at = time_of(prefix)
    for _ in range(1 if family.later else LINES):
        if family.later:
            start = text.find(b"\n", start) + 1
        elif start:
            start = text.rfind(b"\n", 0, start - 1) + 1
        else:
            break
        other, message = split_prefix(_line(text, start))
        if family.whole.search(message.strip()):
            then = time_of(other)
            apart = abs(at - then) if at is not None and then is not None else 0.0
            return message.strip() if apart <= SECONDS else ""
    return ""


def _line(text: bytes, start: int) -> str:
    end = text.find(b"\n", start, start + LONGEST)
    return text[start : end if end >= 0 else start + LONGEST].decode("utf-8", "replace")
