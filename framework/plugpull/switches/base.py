"""What every switch can do, whatever it is made of."""

from __future__ import annotations

from typing import Protocol

from plugpull.rig.model import Mechanism


class Switch(Protocol):
    """A thing with ports that can be turned off and on.

    ``set`` returns when the device has acknowledged; ``read`` asks the device itself for a port's state, and says None
    when it has no read-back. Both raise RigError, within a deadline of their own, when the device does not do what
    it should.
    """

    @property
    def name(self) -> str: ...

    @property
    def mechanism(self) -> Mechanism: ...

    def set(self, port: str, on: bool) -> None: ...

    def read(self, port: str) -> bool | None: ...
