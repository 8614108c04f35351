"""An array as a target: what follows from its members and its UUID. Making one with mdadm is not built yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from plugpull.errors import UsageError
from plugpull.targets.claim import Identity, ScratchClaim
from plugpull.targets.disk import RigDisk


class RaidLevel(StrEnum):
    """How an array spreads data over its members, by the names of md(4)."""

    STRIPED = "raid0"
    MIRRORED = "raid1"
    PARITY = "raid5"
    DOUBLE_PARITY = "raid6"


@dataclass(frozen=True)
class Array:
    """An array of disks. ``uuid`` is the one that it was made with, ``kname`` the kernel's name of its block device,
    such as "md127"; both are empty before it is made."""

    name: str
    level: RaidLevel
    members: tuple[RigDisk, ...]
    uuid: str = ""
    kname: str = ""

    def __post_init__(self) -> None:
        least = {RaidLevel.STRIPED: 2, RaidLevel.MIRRORED: 2, RaidLevel.PARITY: 3, RaidLevel.DOUBLE_PARITY: 4}[
            self.level
        ]
        if len(set(self.disks)) < least:
            raise UsageError(f"{self.name} is a {self.level} of {len(set(self.disks))} disks, which needs {least}")

    @property
    def disks(self) -> tuple[str, ...]:
        """Names of its members."""
        return tuple(member.name for member in self.members)

    @property
    def identity(self) -> str:
        """Its UUID. Raises ``UsageError`` before it is made."""
        if not self.uuid:
            raise UsageError(f"the array {self.name} is not made yet")
        return self.uuid

    @property
    def size(self) -> int:
        """Bytes, without allowing for md's metadata. Each member counts as the smallest one."""
        return min(member.size for member in self.members) * self._shares

    @property
    def rate(self) -> int | None:
        """Bytes per second that its members write at most together, without those that hold copies or parity."""
        rates = [member.rate for member in self.members if member.rate is not None]
        return min(rates) * self._shares if len(rates) == len(self.members) else None

    @property
    def _shares(self) -> int:
        """Members' worth of data that it holds."""
        return 1 if self.level is RaidLevel.MIRRORED else len(self.members) - self.spare

    @property
    def spare(self) -> int:
        """Members that may be missing while every byte can still be read."""
        mirrored = len(self.members) - 1
        return {RaidLevel.STRIPED: 0, RaidLevel.MIRRORED: mirrored, RaidLevel.PARITY: 1, RaidLevel.DOUBLE_PARITY: 2}[
            self.level
        ]

    @property
    def in_file(self) -> bool:
        """False: data goes onto the block device."""
        return False

    def claim(self, identities: Mapping[str, Identity]) -> ScratchClaim:
        """The UUID with the identities of the attached members: of each, the guard accepts a membership in this
        array only. The array's own counters come first, then those of its members."""
        attached = [identities[name] for name in self.disks if name in identities]
        members = [{**identity, "made": [self.identity]} for identity in attached]
        array: Identity = {"kname": self.kname, "uuid": self.identity, "members": members}
        return ScratchClaim(array, (self.kname, *(str(identity["kname"]) for identity in attached)))

    def usable(self, attached: Callable[[str], bool]) -> bool:
        """Whether it has enough of its members to be read."""
        return sum(not attached(name) for name in self.disks) <= self.spare
