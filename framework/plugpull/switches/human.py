"""A person who pulls the plug: asked on the terminal, and the wait is on record as the time the edge took."""

from __future__ import annotations

import time
from typing import Annotated

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Acknowledged, Capabilities, Identity
from plugpull.switches.kinds import Kind, Wiring
from plugpull.switches.program_switch import ProgramSwitch


class HumanOptions(Table):
    """Keys of a person's own."""

    labels: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """What is written on each plug, in the order of the ports; a port without one is called by its number."""
    patience: Annotated[float, Field(gt=0)] = 300.0
    """Seconds the person gets for each request."""


class Human(ProgramSwitch):
    """``waited`` holds the seconds that each request took."""

    def __init__(self, wiring: Wiring, options: HumanOptions) -> None:
        super().__init__(
            wiring, Identity("human", model="a person"), Capabilities(wiring.mechanism, read_back=False, latching=True)
        )
        self._options = options
        self.waited: list[float] = []

    def set(self, port: str, on: bool) -> Acknowledged:
        number = self._number(port)
        label = self._options.labels[number - 1] if number <= len(self._options.labels) else f"port {port}"
        commanded = time.monotonic()
        with self._told():
            try:
                self.waited.append(self._wiring.person.do(request(self._wiring, label, on), self._options.patience))
            except RigError as error:
                raise RigError(f"{label} was not switched: {error.what}", mend=error.mend) from error
        return Acknowledged(port, commanded, time.monotonic())


def request(wiring: Wiring, label: str, on: bool) -> str:
    """What to ask for, in words that fit what is interrupted."""
    thing = {
        Mechanism.MAINS: "the power lead",
        Mechanism.DATA: "the data cable",
        Mechanism.VBUS: "the USB power",
        Mechanism.DATA_VBUS: "the USB cable",
        Mechanism.LOGICAL: "the device",
    }[wiring.mechanism]
    return f"{wiring.name}: {'plug in' if on else 'PULL OUT'} {thing} of {label}"


def _open(wiring: Wiring, options: HumanOptions) -> Human:
    return Human(wiring, options)


KIND = Kind("human", "a person who is asked on the terminal", HumanOptions, _open, frozenset(Mechanism))
