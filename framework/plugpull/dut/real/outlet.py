"""Power-cycles a real DUT through the outlet that feeds it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from plugpull.errors import RigError
from plugpull.switches.base import Switch

OFF_FOR = 10.0
"""Seconds without power: supplies hold it for a while, and a machine that sees too short a gap may not start."""


@dataclass(frozen=True)
class Outlet:
    """The switch port that the DUT's power goes through. ``open`` opens the switch."""

    name: str
    open: Callable[[str], Switch]

    def cycle(self) -> None:
        """Turn the outlet off, wait, turn it on. Raises RigError if it does not turn on again."""
        switch_name, _, port = self.name.partition(".")
        switch = self.open(switch_name)
        try:
            switch.set(port, False)
            time.sleep(OFF_FOR)  # the capacitors of a power supply: there is no event to wait for
        finally:
            switch.set(port, True)
        if switch.read(port) is False:
            raise RigError(
                f"{self.name} acknowledged that it is on, and reads back off", hint="check the switch and its wiring"
            )
