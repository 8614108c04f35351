"""What ``plugpull switch qualify`` wrote about a port, and whether a rig file may cite it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from plugpull.rig.model import Switch

VERSION = 1
"""Of the file. A file of another version is not believed."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How long something took over all cycles, in seconds. ``p95``: nearest rank."""

    least: float
    median: float
    p95: float
    most: float
    count: int


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """The switch that was looked at, in its own words."""

    driver: str
    model: str = ""
    serial: str = ""
    firmware: str = ""
    place: str = ""


class Qualification(msgspec.Struct, frozen=True, kw_only=True):
    """The file, JSON."""

    qualification: int
    switch: Device
    port: str
    point: str
    mechanism: str
    verdict: Literal["PASS", "FAIL", "UNKNOWN"]
    findings: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
    cycles: int = 0
    held: float = 0.0
    """Seconds the port was left off to see whether it comes back by itself."""
    vbus: str = ""
    """How VBUS was measured, and what was found; empty if it was not."""
    latencies: dict[str, Spread] = {}
    """"off acknowledged", "off seen" (by the kernel), "on acknowledged", "on seen", each from the command on."""
    kernel: str = ""
    plugpull: str = ""
    date: str = ""


def read_qualification(path: Path) -> Qualification:
    """Raises ValueError with a sentence for a file that cannot be read or is none."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Qualification)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"{path} is no qualification: {error}") from None
    if found.qualification != VERSION:
        raise ValueError(
            f"{path} is a qualification of version {found.qualification}, and this plugpull reads {VERSION}"
        )
    return found


def problem(folder: Path, citation: str, switch: Switch) -> str | None:
    """Why a ``[[switch]]`` table may not cite this file, as a sentence; None if it may. ``folder`` has the rig file."""
    path = folder / citation
    try:
        found = read_qualification(path)
    except ValueError as error:
        return str(error)
    if found.verdict == "FAIL":
        return (
            f"the switch failed its qualification in {citation}: {found.findings[0] if found.findings else 'no reason'}"
        )
    if found.verdict != "PASS":
        why = found.unknowns[0] if found.unknowns else "no reason"
        return f"the qualification in {citation} came to no verdict: {why}"
    if found.switch.driver != switch.driver:
        return (
            f'{citation} is about a switch with the driver "{found.switch.driver}", and this one has "{switch.driver}"'
        )
    if found.mechanism != switch.mechanism.value:
        return f"{citation} is about {found.mechanism}, and this switch is said to interrupt {switch.mechanism.value}"
    serial = switch.options.get("serial")
    if serial and found.switch.serial and serial != found.switch.serial:
        return f"{citation} is about the switch with the serial number {found.switch.serial}, and this one has {serial}"
    return None
