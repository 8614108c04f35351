"""What the agent's guard must recognise before it opens something to write to it."""

from __future__ import annotations

from dataclasses import dataclass, field

Identity = dict[str, object]
"""What the guard compares with the opened disk: kernel name, serial number, place, size (``dut/agent/disks.py``)."""


@dataclass(frozen=True)
class ScratchClaim:
    """A claim that something may be written to, as the agent verifies it.

    ``disk`` is the identity of the disk to open. ``filesystem`` is set for a file on a mounted filesystem: arguments
    that name the mount and the UUID it must have. ``counters`` are kernel names of the block devices whose counters
    show the traffic: first the one that the data goes to, then those it is made of.
    """

    disk: Identity
    counters: tuple[str, ...]
    filesystem: dict[str, object] = field(default_factory=dict)

    @property
    def kname(self) -> str:
        """The block device that the data goes to."""
        return self.counters[0]

    @property
    def arguments(self) -> dict[str, object]:
        """The claim as arguments of the agent's requests."""
        return {"disk": self.disk, **self.filesystem}
