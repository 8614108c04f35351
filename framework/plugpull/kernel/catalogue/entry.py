"""The type of an entry of the message catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a message is. A healthy kernel logs nothing fatal and no warnings, even if devices are unplugged."""

    FATAL = "fatal"
    WARNING = "warning"
    ERROR = "error"
    INFO = "info"


F, W, E, N = Severity.FATAL, Severity.WARNING, Severity.ERROR, Severity.INFO


@dataclass(frozen=True)
class Entry:
    """One message of the kernel, in every wording it has had.

    ``pattern`` is searched in the message without its prefix (time stamp, host, caller). The first entry that matches
    wins. ``source`` is the kernel file it comes from, ``example`` a line as the kernel prints it.
    """

    kind: str
    severity: Severity
    pattern: str
    source: str
    example: str
