"""What switches have in common that are reached by running a program or asking a server for each command."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from plugpull.errors import RigError
from plugpull.plain import clean_line
from plugpull.rig.credentials import without_userinfo
from plugpull.rig.model import Mechanism
from plugpull.switches.base import Capabilities, Identity, PortByPort
from plugpull.switches.host import Closing, Completed
from plugpull.switches.kinds import Wiring

MOST_WORDS = 300
"""Characters of what a program said that go into an error message."""


class ProgramSwitch(PortByPort, Closing):
    """Nothing is held open between two commands. ``first`` is the name of its first port, 0 or 1."""

    first = 1

    def __init__(self, wiring: Wiring, identity: Identity, capabilities: Capabilities) -> None:
        self._wiring = wiring
        self.identity = identity
        self.capabilities = capabilities

    @property
    def name(self) -> str:
        return self._wiring.name

    @property
    def mechanism(self) -> Mechanism:
        return self._wiring.mechanism

    def close(self) -> None:
        """There is nothing to close."""

    def read(self, port: str) -> bool | None:
        return None

    @contextmanager
    def _told(self) -> Iterator[float]:
        """The deadline of one command, for a block whose errors say which switch it was and where it is."""
        try:
            yield time.monotonic() + self._wiring.timeout
        except RigError as error:
            place = f" ({self.identity.place})" if self.identity.place else ""
            raise RigError(without_userinfo(f"switch {self.name}{place}: {error.what}"), mend=error.mend) from None

    def _number(self, port: str) -> int:
        last = self._wiring.ports + self.first - 1
        number = int(port) if port.isascii() and port.isdigit() else -1
        if not self.first <= number <= last:
            raise RigError(f"switch {self.name} has no port {port}", mend=f"its ports are {self.first} to {last}")
        return number


def left(deadline: float) -> float:
    """Seconds until a time of ``time.monotonic()``; a moment, if it is over, for what has to be given a deadline."""
    return max(0.01, deadline - time.monotonic())


def disobeyed(port: str, on: bool, mend: str) -> RigError:
    """A port that says it is not what it was switched to."""
    wanted, found = ("on", "off") if on else ("off", "on")
    return RigError(f"port {port} was switched {wanted}, and reading it back says it is {found}", mend=mend)


def words_of(done: Completed) -> str:
    """What a program that failed had to say, on one line."""
    said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return clean_line(said[0][:MOST_WORDS]) if said else "it says nothing"
