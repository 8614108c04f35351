"""A disk of the rig, which is a part that can be cut and a target that can be written to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from plugpull.rig.model import Disk
from plugpull.rig.part import Part
from plugpull.rig.topology import unit_identity
from plugpull.targets.claim import Identity, ScratchClaim


@dataclass(frozen=True)
class RigDisk(Part):
    """A disk of the rig, with its cut points. As a target, it is the raw block device. ``str()`` gives its name."""

    @property
    def table(self) -> Disk:
        """The disk's table in the rig file."""
        found = self._topology.device(self.name)
        assert isinstance(found, Disk)
        return found

    @property
    def controller(self) -> str:
        """The name of the controller that it is plugged into, directly or through hubs."""
        return self._topology.path_of(self.name).controller

    @property
    def above(self) -> tuple[str, ...]:
        """The names of the hubs above it, the nearest first, and of its controller."""
        return self._topology.above(self.name)

    @property
    def disks(self) -> tuple[str, ...]:
        """Its own name."""
        return (self.name,)

    @property
    def identity(self) -> str:
        """Its serial number, and its logical unit number if that is not 0."""
        return unit_identity(self.table.serial, self.table.lun)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.table.size

    @property
    def rate(self) -> int | None:
        """Bytes per second that it transfers at most, if the rig file says so."""
        return self.table.rate

    @property
    def in_file(self) -> bool:
        """False: data goes onto the block device."""
        return False

    def claim(self, identities: Mapping[str, Identity]) -> ScratchClaim:
        """Its identity, and its own counters."""
        identity = identities[self.name]
        return ScratchClaim(identity, (str(identity["kname"]),))

    def usable(self, attached: Callable[[str], bool]) -> bool:
        """Whether it is attached."""
        return attached(self.name)
