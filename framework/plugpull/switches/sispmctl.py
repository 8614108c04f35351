"""EnerGenie and Gembird power strips on USB ("Silver Shield PM"), through sispmctl (run as a program; sispmctl(1)).

Some versions of sispmctl end with an assertion when no strip is attached, and all versions accept the number of a strip
that is not attached. So the strip is named by its serial number, and every edge is read back. sispmctl takes the first
of two strips with the same serial number, and on a strip with one outlet it switches that outlet, whatever number it
gets; this driver refuses both (its ``src/main.c`` and ``check_outlet_number`` in ``src/sispm_ctl.c``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import (
    Capabilities,
    DeviceSwitch,
    Identity,
    SwitchContext,
    disobeyed,
    require_ports,
    seconds_left,
)
from plugpull.switches.host import Completed, Host
from plugpull.switches.kinds import FoundSwitch, Kind
from plugpull.switches.programs import error_line

SCAN = 10.0
"""Seconds that ``sispmctl -s`` gets to list the strips."""
_STRIP = re.compile(r"^device type:\s*(?P<outlets>\d{1,3})-socket.*\nserial number:\s*(?P<serial>\S+)", re.MULTILINE)
_RULE = (
    'SUBSYSTEM=="usb", ATTR{idVendor}=="04b4", ATTR{idProduct}=="fd1?", GROUP="dialout", MODE="0660", TAG+="uaccess"'
)


class SispmctlOptions(Table):
    """Keys of an EnerGenie strip."""

    serial: Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2})+$")]
    """As ``sispmctl -s`` prints it: "01:01:51:4c:e3"."""


class Sispmctl(DeviceSwitch):
    def __init__(self, context: SwitchContext, options: SispmctlOptions) -> None:
        super().__init__(
            context,
            Identity("sispmctl", model="EnerGenie strip", serial=options.serial, place=f"serial {options.serial}"),
            Capabilities(context.mechanism, read_back=True, latching=True),
        )
        self._serial = options.serial.lower()
        with self._deadline() as deadline:
            self._check(seconds_left(deadline))

    def _check(self, timeout: float) -> None:
        """Raises RigError unless one strip has the serial number, and it has the outlets that are declared."""
        scan = _sispmctl(self._context.host, ["-s"], timeout)
        found = [strip for strip in parse_strips(scan.stdout) if strip.serial == self._serial]
        where = self._context.host.name
        if not found:
            others = ", ".join(parse_scan(scan.stdout)) or "none"
            said = f" (sispmctl: {error_line(scan)})" if scan.status != 0 else ""
            raise RigError(
                f"no strip with this serial number is attached to {where}; found: {others}{said}",
                hint="is it plugged in, and may this user open it? This udev rule lets the group dialout: " + _RULE,
            )
        if len(found) > 1:
            raise RigError(
                f"{len(found)} strips with this serial number are attached to {where}, and sispmctl takes the first",
                hint="plugpull cannot distinguish them: unplug one, or plug it into another machine",
            )
        require_ports(self._context, found[0].outlets, "a strip of this model")

    def _command(self, port: str, on: bool) -> None:
        number = self._number(port)
        with self._deadline() as deadline:
            # It obeys its options in order, so one process both switches and reads back.
            if self._state(number, seconds_left(deadline), "-o" if on else "-f", str(number)) is not on:
                raise disobeyed((port,), on, "does the strip click? unplug its USB cable for some seconds")

    def read(self, port: str) -> bool | None:
        number = self._number(port)
        with self._deadline() as deadline:
            return self._state(number, seconds_left(deadline))

    def _state(self, number: int, timeout: float, *first: str) -> bool:
        """The state of an outlet. ``first`` are options that sispmctl obeys before it reads the state."""
        line = ["-q", "-n", "-D", self._serial, *first, "-g", str(number)]
        done = _sispmctl(self._context.host, line, timeout)
        if done.status != 0:
            raise RigError(
                f"sispmctl {' '.join(line)} ended with status {done.status}: {error_line(done)}",
                hint="is the strip still plugged in? `sispmctl -s` lists those that are",
            )
        return parse_state(done.stdout)


def _sispmctl(host: Host, arguments: Sequence[str], timeout: float) -> Completed:
    try:
        return host.run(["sispmctl", *arguments], timeout)
    except RigError as error:
        if error.hint:
            raise
        # It asks five times, and waits five seconds for each answer.
        raise RigError(error.what, hint="a strip does not answer: unplug its USB cable for some seconds") from error


class PowerStrip(NamedTuple):
    """A strip that ``sispmctl -s`` lists."""

    serial: str
    outlets: int


def parse_scan(text: str) -> tuple[str, ...]:
    """The serial numbers that ``sispmctl -s`` prints."""
    return tuple(strip.serial for strip in parse_strips(text))


def parse_strips(text: str) -> tuple[PowerStrip, ...]:
    """Every strip that ``sispmctl -s`` prints, in its order."""
    return tuple(PowerStrip(found["serial"].lower(), int(found["outlets"])) for found in _STRIP.finditer(text))


def parse_state(text: str) -> bool:
    """The state that ``-n -g`` prints: 1 or 0. Raises RigError for anything else."""
    words = text.split()
    if words[-1:] not in (["0"], ["1"]):
        raise RigError(
            f"sispmctl printed {text.strip()[:60]!r} for the outlet, which is neither 0 nor 1",
            hint="is this the sispmctl of sispmctl.sourceforge.net? plugpull is tested with version 3.1",
        )
    return words[-1] == "1"


def _find(host: Host) -> Iterator[FoundSwitch]:
    try:
        found = parse_strips(host.run(["sispmctl", "-s"], SCAN).stdout)
    except RigError:
        return
    for serial, outlets in found:
        place = f"serial {serial}"
        yield FoundSwitch("sispmctl", "EnerGenie", serial, place, outlets, {"serial": serial}, Mechanism.MAINS, _RULE)


KIND = Kind(
    "sispmctl",
    "EnerGenie and Gembird strips on USB, through sispmctl",
    SispmctlOptions,
    Sispmctl,
    frozenset({Mechanism.MAINS}),
    find=_find,
    identity_keys=("serial",),
)
