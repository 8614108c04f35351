"""A switch that records in the run's journal which of its ports are off, so that the next start restores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism
from plugpull.switches.base import Acknowledged, Capabilities, Identity, Switch


class Journaled:
    """A switch that calls ``note`` with (port, on): off before the command, on after its acknowledgement.

    ``broken`` is set by the first error: the device may have been unplugged, and then it has to be opened again.
    """

    def __init__(self, switch: Switch, note: Callable[[str, bool], None]) -> None:
        self._switch = switch
        self._note = note
        self._noted_on: set[str] = set()
        self.broken = False

    @property
    def name(self) -> str:
        return self._switch.name

    @property
    def mechanism(self) -> Mechanism:
        return self._switch.mechanism

    @property
    def capabilities(self) -> Capabilities:
        return self._switch.capabilities

    @property
    def identity(self) -> Identity:
        return self._switch.identity

    def set(self, port: str, on: bool) -> Acknowledged:
        return self.set_many((port,), on)[0]

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        if not on:
            for port in ports:
                self._note(port, False)
        with self._watched():
            done = (self._switch.set(ports[0], on),) if len(ports) == 1 else self._switch.set_many(ports, on)
        if on:
            for port in ports:
                # The power is on even if the journal cannot be written; then the next start restores it once more.
                with suppress(RigError):
                    self._note(port, True)
                self._noted_on.add(port)
        return done

    def read(self, port: str) -> bool | None:
        with self._watched():
            state = self._switch.read(port)
        if state is False and port in self._noted_on:
            self._noted_on.discard(port)
            with suppress(RigError):
                self._note(port, False)  # it acknowledged, and the port is still off
        return state

    def close(self) -> None:
        self._switch.close()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # a driver may raise anything
            self.broken = True
            raise
