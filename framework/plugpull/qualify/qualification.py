"""The file that ``plugpull switch qualify`` writes about a port."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from plugpull.errors import UsageError

VERSION = 1
"""The version of the file's format. Files of other versions are refused."""
Verdict = Literal["PASS", "FAIL", "UNKNOWN"]


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How long one step took over all cycles, in seconds. ``p95``: nearest rank."""

    least: float
    median: float
    p95: float
    most: float
    count: int


class SwitchDevice(msgspec.Struct, frozen=True, kw_only=True):
    """The switch that was measured, as its driver identifies it."""

    driver: str
    model: str = ""
    serial: str = ""
    firmware: str = ""
    place: str = ""


class Qualification(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the file, as JSON."""

    qualification: int
    switch: SwitchDevice
    port: str
    point: str
    mechanism: str
    verdict: Verdict
    findings: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
    cycles: int = 0
    held: float = 0.0
    """Seconds that the port was left off, to see whether power comes back by itself."""
    vbus: str = ""
    """How VBUS was measured, and the result. Empty if it was not measured."""
    latencies: dict[str, Spread] = {}
    """"off acknowledged", "off seen" (by the kernel), "on acknowledged", "on seen", in seconds from the command."""
    kernel: str = ""
    plugpull: str = ""
    date: str = ""


def read_qualification(path: Path) -> Qualification:
    """Raises UsageError if the file cannot be read or is not a qualification."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Qualification)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not a qualification: {error}") from None
    if found.qualification != VERSION:
        raise UsageError(
            f"{path} is a qualification of version {found.qualification}, but this plugpull reads version {VERSION}"
        )
    return found


def write_qualification(path: Path, qualification: Qualification) -> None:
    """Raises UsageError if the file cannot be written."""
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(qualification), indent=2) + b"\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="name another file with --out") from None
