"""What one entry of the message catalogue is made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    FATAL = "fatal"
    WARNING = "warning"
    ERROR = "error"
    INFO = "info"


F, W, E, N = Severity.FATAL, Severity.WARNING, Severity.ERROR, Severity.INFO


@dataclass(frozen=True)
class Entry:
    """One message of the kernel, in all its wordings.

    ``pattern`` is searched in the message without its prefix (time stamp, host, caller). The first entry that matches
    wins. ``source`` is the kernel file it comes from, ``example`` a line as the kernel prints it.
    """

    kind: str
    severity: Severity
    pattern: str
    source: str
    example: str
