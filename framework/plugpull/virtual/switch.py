"""The switches of the virtual bench."""

from __future__ import annotations

from typing import Protocol

from plugpull.rig.model import Mechanism
from plugpull.switches.base import Capabilities, Identity, PortByPort


class Outlets(Protocol):
    """What turns outlets on and off: the bench."""

    def switch_port(self, outlet: str, on: bool) -> bool:
        """Turn one outlet off or on. Returns False when a defect makes the switch only pretend."""
        ...

    def port_is_on(self, outlet: str) -> bool:
        """The state of what is behind an outlet."""
        ...


class VirtualSwitch(PortByPort):
    """A switch of the virtual bench: its ports are cables and power leads of emulated devices."""

    def __init__(self, name: str, mechanism: Mechanism, bench: Outlets) -> None:
        self._name = name
        self._mechanism = mechanism
        self._bench = bench
        self._claimed: dict[str, bool] = {}

    @property
    def name(self) -> str:
        return self._name

    @property
    def mechanism(self) -> Mechanism:
        return self._mechanism

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(self._mechanism, read_back=True, latching=True)

    @property
    def identity(self) -> Identity:
        return Identity("virtual", model="QEMU")

    def close(self) -> None:
        """Nothing to do: the bench closes its own devices."""

    def _command(self, port: str, on: bool) -> None:
        honest = self._bench.switch_port(f"{self._name}.{port}", on)
        self._claimed.pop(port, None)
        if not honest:
            self._claimed[port] = on

    def read(self, port: str) -> bool | None:
        if port in self._claimed:
            return self._claimed[port]
        return self._bench.port_is_on(f"{self._name}.{port}")
