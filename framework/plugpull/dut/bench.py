"""What every kind of DUT offers to the rest, whatever it is reached by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.link import AgentLink
from plugpull.history.events import DutDied, DutReady, SeenFromOutside
from plugpull.switches.base import Switch


@dataclass(frozen=True)
class PostMortem:
    """What is known of a DUT whose agent is gone. ``death`` is there if the DUT died; ``says`` is the rest of the
    sentence "the agent fell silent" when it did not, or what was done about it; ``console`` are lines of its console
    that belong into the history."""

    death: DutDied | None = None
    says: str = ""
    console: tuple[str, ...] = ()


class Bench(Protocol):
    """A rig that is ready to be used: a DUT with its agent, and the switches that can cut things off it.

    The virtual bench and real ones look alike from here on.
    """

    @property
    def link(self) -> AgentLink: ...

    @property
    def disk_table(self) -> DiskTable: ...

    def ready(self) -> DutReady:
        """Who the DUT is and how it was reached."""
        ...

    def switch(self, name: str) -> Switch: ...

    def power_everything(self) -> None:
        """Every declared disk gets its cable and its power. Returns before the kernel has found them."""
        ...

    def post_mortem(self, timeout: float) -> PostMortem:
        """The agent is lost: is the DUT dead, and of what? ``timeout`` is what signs that come by themselves get."""
        ...

    def bring_back(self) -> PostMortem:
        """The same question when the scenario is over and there is time to wait until the DUT can be reached again.
        What can be done to bring it back is done."""
        ...

    def seen_from_outside(self) -> Iterable[SeenFromOutside]:
        """What a look at the bystanders' media behind the DUT's back shows; nothing where that cannot be done."""
        ...

    def cpu_seconds(self) -> float | None:
        """The CPU time that an emulated DUT has had from its host so far, seconds; None for a real one."""
        ...

    def close(self) -> None:
        """Leave nothing behind. Safe to call twice."""
        ...
