"""What all relay boards share: which contact the load is on, and what a relay can interrupt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plugpull.rig.model import Mechanism

MECHANISMS = frozenset({Mechanism.DATA, Mechanism.VBUS, Mechanism.DATA_VBUS, Mechanism.MAINS})
"""What the contact of a relay can be wired into."""
ContactName = Literal["no", "nc"]
"""The contact of a relay: "no", normally open, or "nc", normally closed."""


@dataclass(frozen=True)
class Contact:
    """The contact that the load is wired to: a port on "no" is on while its relay is energised, one on "nc" while it
    is not."""

    wiring: ContactName = "no"

    def energised(self, on: bool) -> bool:
        """Must the relay be energised for its port to be in this state?"""
        return on == (self.wiring == "no")

    def on(self, energised: bool) -> bool:
        """The state of the port while the relay is energised, or is not."""
        return energised == (self.wiring == "no")
