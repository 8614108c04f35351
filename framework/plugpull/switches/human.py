"""A person who pulls the plug when asked on the terminal. The wait is recorded as the time the edge took."""

from __future__ import annotations

import time
from typing import Annotated

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Acknowledged, Capabilities, DeviceSwitch, Identity, SwitchContext
from plugpull.switches.kinds import Kind


class HumanOptions(Table):
    """Keys of a person."""

    labels: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """The label on each plug, in the order of the ports. A port without a label is called by its number."""
    patience: Annotated[float, Field(gt=0)] = 300.0
    """Seconds the person gets for each request."""


class Human(DeviceSwitch):
    """A person at the bench. ``waited`` holds the seconds that each request took."""

    def __init__(self, context: SwitchContext, options: HumanOptions) -> None:
        super().__init__(
            context,
            Identity("human", model="a person"),
            Capabilities(context.mechanism, read_back=False, latching=True),
        )
        self._options = options
        self.waited: list[float] = []

    def set(self, port: str, on: bool) -> Acknowledged:
        number = self._number(port)
        label = self._options.labels[number - 1] if number <= len(self._options.labels) else f"port {port}"
        commanded = time.monotonic()
        with self._deadline():
            try:
                self.waited.append(self._context.person.do(request(self._context, label, on), self._options.patience))
            except RigError as error:
                raise RigError(f"{label} was not switched: {error.what}", hint=error.hint) from error
        return Acknowledged(port, commanded, time.monotonic())


def request(context: SwitchContext, label: str, on: bool) -> str:
    """The request to the person, with the thing that the mechanism interrupts."""
    thing = {
        Mechanism.MAINS: "the power lead",
        Mechanism.DATA: "the data cable",
        Mechanism.VBUS: "the USB power",
        Mechanism.DATA_VBUS: "the USB cable",
        Mechanism.LOGICAL: "the device",
    }[context.mechanism]
    return f"{context.name}: {'plug in' if on else 'PULL OUT'} {thing} of {label}"


KIND = Kind(
    "human",
    "a person who is asked on the terminal",
    HumanOptions,
    Human,
    frozenset(Mechanism),
    identity_keys=("name", "labels"),
)
