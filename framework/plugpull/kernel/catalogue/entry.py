"""The type of an entry of the message catalogue."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How bad a message is. A healthy kernel logs nothing fatal and no warnings, even if devices are unplugged."""

    FATAL = "fatal"
    WARNING = "warning"
    ERROR = "error"
    INFO = "info"


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One wording of a message. The first entry that matches wins.

    ``wording`` is in the notation of ``wording.py``; it is compared with the message without its prefix (time stamp,
    host, caller). ``source`` is the kernel file it comes from, with the versions if it is no longer there. An entry
    whose ``kind`` is empty says that there is nothing to report; ``reason`` says why.
    """

    kind: str
    severity: Severity
    wording: str
    source: str
    reason: str = ""
