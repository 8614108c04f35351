"""The kernel's own way to turn a hub port off: the attribute ``disable`` (kernel 6.0 and later).

Writing 1 first disconnects the device in software and then turns off the port's power, if the hub can
(drivers/usb/core/port.c, disable_store). This is an orderly removal, because the kernel knows that it is coming. It is
a different fault from a pulled cable, so its only mechanism is ``logical``.
"""

from __future__ import annotations

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Capabilities, DeviceSwitch, Identity, SwitchContext, disobeyed
from plugpull.switches.kinds import Kind
from plugpull.switches.usb_hub import HubPort, Location, halves_of


class PortDisableOptions(Table):
    """Keys of a hub whose ports the kernel disables."""

    location: Location
    """The hub as the kernel names it: "1-1.4", or "1" for the root hub of bus 1."""


class PortDisable(DeviceSwitch):
    def __init__(self, context: SwitchContext, options: PortDisableOptions) -> None:
        place = f"hub {options.location}"
        super().__init__(
            context,
            Identity("port-disable", model="the kernel's port attribute", place=place),
            Capabilities(context.mechanism, read_back=True, latching=False),
        )
        self._location = options.location
        self._host = context.host
        with self._deadline():
            self._disabled(halves_of(self._host, self._location, 1)[0])

    def _command(self, port: str, on: bool) -> None:
        number = self._number(port)
        with self._deadline():
            for half in halves_of(self._host, self._location, number):
                self._host.write_text(f"{half.path}/disable", "0" if on else "1")
                if self._disabled(half) is on:
                    raise disobeyed((port,), on, "look for the reason in the kernel log")

    def read(self, port: str) -> bool | None:
        """On if either half of the socket is on."""
        number = self._number(port)
        with self._deadline():
            return not all(self._disabled(half) for half in halves_of(self._host, self._location, number))

    def _disabled(self, half: HubPort) -> bool:
        path = f"{half.path}/disable"
        if not self._host.glob(path):
            raise RigError(
                f"{half} has no attribute `disable`",
                hint="that needs kernel 6.0 or later; use the driver uhubctl instead",
            )
        return parse_disable(self._host.read_text(path))


def parse_disable(text: str) -> bool:
    """Whether the port is disabled: the attribute reads as 1. Raises RigError if it reads as neither 1 nor 0."""
    if text.strip() not in ("0", "1"):
        raise RigError(f"the attribute `disable` reads as {text.strip()[:40]!r}, which is neither 0 nor 1")
    return text.strip() == "1"


KIND = Kind(
    "port-disable",
    "the kernel's attribute that disables a hub port",
    PortDisableOptions,
    PortDisable,
    frozenset({Mechanism.LOGICAL}),
    identity_keys=("location",),
)
