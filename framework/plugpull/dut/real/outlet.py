"""Bringing a real DUT back that died: through the outlet that its power goes through, if it has one."""

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
        """Off, wait, on. Raises RigError when it does not turn on again, whatever else went wrong before that."""
        switch_name, _, port = self.name.partition(".")
        switch = self.open(switch_name)
        try:
            switch.set(port, False)
            time.sleep(OFF_FOR)  # what has to run down is on the other side of a power supply, and tells nothing
        finally:
            switch.set(port, True)
        if switch.read(port) is False:
            raise RigError(f"{self.name} was told to turn on, and reads back off", mend="look at the switch")
