"""EnerGenie and Gembird power strips on USB ("Silver Shield PM"), through sispmctl (run as a program; sispmctl(1)).

Some versions of it end with an assertion when no strip is attached, and all of them take a number for a strip that is
not there; so the strip is named by its serial number, and every edge is read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Capabilities, Identity
from plugpull.switches.host import Host
from plugpull.switches.kinds import Found, Kind, Wiring
from plugpull.switches.program_switch import ProgramSwitch, disobeyed, left, words_of

OUTLETS = 4
_SERIAL = re.compile(r"^serial number:\s*(\S+)", re.MULTILINE)
_RULE = (
    'SUBSYSTEM=="usb", ATTR{idVendor}=="04b4", ATTR{idProduct}=="fd1?", GROUP="dialout", MODE="0660", TAG+="uaccess"'
)


class SispmctlOptions(Table):
    """Keys of an EnerGenie strip."""

    serial: Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2})+$")]
    """As ``sispmctl -s`` prints it: "01:01:51:4c:e3"."""


class Sispmctl(ProgramSwitch):
    def __init__(self, wiring: Wiring, options: SispmctlOptions) -> None:
        super().__init__(
            wiring,
            Identity("sispmctl", model="EnerGenie strip", serial=options.serial, place=f"serial {options.serial}"),
            Capabilities(wiring.mechanism, read_back=True, latching=True),
        )
        self._serial = options.serial
        with self._told() as deadline:
            scan = wiring.host.run(["sispmctl", "-s"], left(deadline))
            found = parse_scan(scan.stdout)
            if options.serial not in found:
                others = ", ".join(found) or "none"
                raise RigError(
                    f"no strip with this serial number is attached to {wiring.host.name}; found: {others}",
                    mend="is it plugged in, and may this user open it? `plugpull switch list` prints the udev rule",
                )

    def _command(self, port: str, on: bool) -> None:
        number = self._number(port)
        with self._told() as deadline:
            self._run("-o" if on else "-f", number, left(deadline))
            if self._state(number, left(deadline)) is not on:
                raise disobeyed(port, on, "does the strip click? unplug its USB cable for some seconds")

    def read(self, port: str) -> bool | None:
        number = self._number(port)
        with self._told() as deadline:
            return self._state(number, left(deadline))

    def _state(self, number: int, timeout: float) -> bool:
        return parse_state(self._run("-g", number, timeout))

    def _run(self, action: str, number: int, timeout: float) -> str:
        line = ["sispmctl", "-q", "-n", "-D", self._serial, action, str(number)]
        done = self._wiring.host.run(line, timeout)
        if done.status != 0:
            raise RigError(
                f"{' '.join(line)} ended with status {done.status}: {words_of(done)}",
                mend="is the strip still plugged in? `sispmctl -s` lists those that are",
            )
        return done.stdout


def parse_scan(text: str) -> tuple[str, ...]:
    """The serial numbers that ``sispmctl -s`` prints."""
    return tuple(_SERIAL.findall(text))


def parse_state(text: str) -> bool:
    """What ``-n -g`` prints: 1 or 0. Raises RigError for anything else."""
    words = text.split()
    if words[-1:] not in (["0"], ["1"]):
        raise RigError(f"sispmctl says {text.strip()[:60]!r} of the outlet, which is neither 0 nor 1")
    return words[-1] == "1"


def _open(wiring: Wiring, options: SispmctlOptions) -> Sispmctl:
    return Sispmctl(wiring, options)


def _find(host: Host) -> Iterator[Found]:
    try:
        found = parse_scan(host.run(["sispmctl", "-s"], 10.0).stdout)
    except RigError:
        return
    for serial in found:
        place = f"serial {serial}"
        yield Found("sispmctl", "EnerGenie", serial, place, OUTLETS, {"serial": serial}, Mechanism.MAINS, _RULE)


KIND = Kind(
    "sispmctl",
    "EnerGenie and Gembird strips on USB, through sispmctl",
    SispmctlOptions,
    _open,
    frozenset({Mechanism.MAINS}),
    find=_find,
)
