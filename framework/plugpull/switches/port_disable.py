"""The kernel's own way to turn a hub port off: its attribute ``disable`` (kernel 6.0 and later).

Writing 1 first disconnects the device in software and then drops the port's power, where the hub can
(drivers/usb/core/port.c, disable_store). The kernel knows that it is coming, so this is an orderly removal, another
fault than a cable that is pulled, and is kept apart: its mechanism is ``logical`` and nothing else.
"""

from __future__ import annotations

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Capabilities, Identity
from plugpull.switches.kinds import Kind, Wiring
from plugpull.switches.program_switch import ProgramSwitch, disobeyed
from plugpull.switches.usb_hub import HubPort, Location, halves_of


class PortDisableOptions(Table):
    """Keys of a hub whose ports the kernel disables."""

    location: Location
    """The hub as the kernel names it: "1-1.4", or "1" for the root hub of bus 1."""


class PortDisable(ProgramSwitch):
    def __init__(self, wiring: Wiring, options: PortDisableOptions) -> None:
        place = f"hub {options.location}"
        super().__init__(
            wiring,
            Identity("port-disable", model="the kernel's port attribute", place=place),
            Capabilities(wiring.mechanism, read_back=True, latching=False),
        )
        self._location = options.location
        self._host = wiring.host
        with self._told():
            self._disabled(halves_of(self._host, self._location, 1)[0])

    def _command(self, port: str, on: bool) -> None:
        number = self._number(port)
        with self._told():
            for half in halves_of(self._host, self._location, number):
                self._host.write_text(f"{half.path}/disable", "0" if on else "1")
                if self._disabled(half) is on:
                    raise disobeyed(port, on, "the kernel log says why")

    def read(self, port: str) -> bool | None:
        """On if either half of the socket is."""
        number = self._number(port)
        with self._told():
            return not all(self._disabled(half) for half in halves_of(self._host, self._location, number))

    def _disabled(self, half: HubPort) -> bool:
        path = f"{half.path}/disable"
        if not self._host.glob(path):
            raise RigError(
                f"{half} has no attribute `disable`", mend="that takes a kernel of 6.0 or later; use uhubctl instead"
            )
        return parse_disable(self._host.read_text(path))


def parse_disable(text: str) -> bool:
    """What the attribute reads as: 1 while the port is disabled, 0 while it is not. Raises RigError for the rest."""
    if text.strip() not in ("0", "1"):
        raise RigError(f"the attribute `disable` reads as {text.strip()[:40]!r}, which is neither 0 nor 1")
    return text.strip() == "1"


def _open(wiring: Wiring, options: PortDisableOptions) -> PortDisable:
    return PortDisable(wiring, options)


KIND = Kind(
    "port-disable",
    "the kernel's attribute that disables a hub port",
    PortDisableOptions,
    _open,
    frozenset({Mechanism.LOGICAL}),
)
