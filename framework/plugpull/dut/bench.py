"""What every kind of DUT offers, virtual or real."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.link import AgentLink
from plugpull.history.events import CountedOutside, DutDied, DutReady, SeenFromOutside
from plugpull.switches.base import Switch


@dataclass(frozen=True)
class PostMortem:
    """What is known of a DUT whose agent is gone.

    ``death`` is set if the DUT died. ``says`` goes on after "the agent fell silent" if it did not die, or says what was
    done to bring it back. ``console`` holds lines of its console that belong into the history.
    """

    death: DutDied | None = None
    says: str = ""
    console: tuple[str, ...] = ()


class Bench(Protocol):
    """A rig that is ready to be used: a DUT with its agent, and the switches that can cut things off it.

    Code above this line does not distinguish the virtual bench from real ones.
    """

    @property
    def link(self) -> AgentLink: ...

    @property
    def disk_table(self) -> DiskTable: ...

    def ready(self) -> DutReady:
        """What the DUT is and how it was reached."""
        ...

    def switch(self, name: str) -> Switch: ...

    @property
    def can_move(self) -> bool:
        """Whether disks can be plugged into other sockets: on an emulated bench, or by a person."""
        ...

    def move(self, sockets: Mapping[str, str]) -> dict[str, str]:
        """Plug disks into other sockets: names and sockets of the rig file, such as "hub1.3". Returns where each is
        then, as the agent writes it. Raises RigError."""
        ...

    @property
    def can_stall(self) -> bool:
        """Whether disks can be made to answer no command: only emulated ones."""
        ...

    def stall(self, disk: str, on: bool) -> None:
        """Have a disk answer no command, or answer again; returns when the DUT goes on. Raises RigError."""
        ...

    def lift_rates(self, to: int | None) -> None:
        """Let emulated disks move so many bytes per second whose rates are less, or hold them to their rates again.
        Real disks stay as they are. Raises RigError."""
        ...

    def harmed_by_sleep(self, kernel: str) -> str:
        """Why a DUT with this release of Linux must not be suspended on this bench; empty if it may."""
        ...

    def flushes(self) -> Mapping[str, int]:
        """How often each disk was flushed so far, by its own count; without disks that do not count it."""
        ...

    def power_everything(self) -> None:
        """Connect and power every declared disk. Returns before the kernel has found them."""
        ...

    def post_mortem(self, timeout: float) -> PostMortem:
        """Find out whether a DUT whose agent is gone has died, and of what.

        ``timeout`` is how long to wait, in seconds, for signs that come by themselves."""
        ...

    def bring_back(self) -> PostMortem:
        """Bring back a DUT whose agent is gone, if possible. Returns what became of it.

        Called after the scenario, when there is time to wait until the DUT can be reached again."""
        ...

    def seen_from_outside(self) -> Iterable[SeenFromOutside | CountedOutside]:
        """The state of the bystanders' media, and what each disk itself counted, without asking the DUT; empty where
        that is not possible."""
        ...

    def cpu_seconds(self) -> float | None:
        """The CPU time that an emulated DUT has had from its host so far, seconds; None for a real one."""
        ...

    def close(self) -> None:
        """Close everything that the bench opened. Safe to call twice."""
        ...
