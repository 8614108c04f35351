"""An array as a target: what follows from its members and its UUID. ``made_array.py`` makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from plugpull.errors import NotServed, UsageError
from plugpull.integrity.oracle.array_layout import covers
from plugpull.targets.claim import Identity, ScratchClaim
from plugpull.targets.disk import RigDisk


class RaidLevel(StrEnum):
    """How an array spreads data over its members, by the names of md(4)."""

    STRIPED = "raid0"
    MIRRORED = "raid1"
    STRIPED_MIRRORS = "raid10"
    PARITY = "raid5"
    DOUBLE_PARITY = "raid6"


LEAST = {
    RaidLevel.STRIPED: 2,
    RaidLevel.MIRRORED: 2,
    RaidLevel.STRIPED_MIRRORS: 3,
    RaidLevel.PARITY: 3,
    RaidLevel.DOUBLE_PARITY: 4,
}
"""The smallest number of members."""
SUPERBLOCK = 1 << 20
"""Bytes that mdadm leaves free on each member in front of the data, at least (super1.c, version 1.2)."""


@dataclass(frozen=True)
class Array:
    """An array of disks. ``uuid`` is the one that it was made with, ``kname`` the kernel's name of its block device,
    such as "md127"; both are empty before it is made. ``bytes`` is its size once it is made. ``write_mostly`` are names
    of its last members, if they are read only when nothing else can be."""

    name: str
    level: RaidLevel
    members: tuple[RigDisk, ...]
    uuid: str = ""
    kname: str = ""
    bytes: int = 0
    write_mostly: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.disks)) < LEAST[self.level]:
            raise UsageError(
                f"{self.name} is a {self.level} of {len(set(self.disks))} disks, which needs {LEAST[self.level]}"
            )

    def require(self, size: int) -> None:
        """Raises ``NotServed`` if a member has no room for ``size`` bytes of the array's data and its superblock."""
        smallest = min(self.members, key=lambda member: member.size)
        if smallest.size < size + SUPERBLOCK:
            needed = (size + SUPERBLOCK) >> 20
            raise NotServed(
                f"the {self.level} needs {needed} MiB of each member, and {smallest.name} has {smallest.size >> 20} MiB"
            )

    @property
    def disks(self) -> tuple[str, ...]:
        """Names of its members."""
        return tuple(member.name for member in self.members)

    @property
    def identity(self) -> str:
        """Its UUID. Raises ``UsageError`` before it is made."""
        if not self.uuid:
            raise UsageError(f"the array {self.name} is not made yet", hint="use it inside its with block")
        return self.uuid

    @property
    def size(self) -> int:
        """Bytes. Before it is made, without allowing for md's metadata; each member counts as the smallest one."""
        return self.bytes or int(min(member.size for member in self.members) * self._shares)

    @property
    def rate(self) -> int | None:
        """Bytes per second that its members write at most together, without those that hold copies or parity."""
        rates = [member.rate for member in self.members if member.rate is not None]
        return int(min(rates) * self._shares) if len(rates) == len(self.members) else None

    @property
    def _shares(self) -> float:
        """Members' worth of data that it holds."""
        if self.level is RaidLevel.MIRRORED:
            return 1
        return len(self.members) / 2 if self.level is RaidLevel.STRIPED_MIRRORS else len(self.members) - self.spare

    @property
    def spare(self) -> int:
        """Members that may be missing, whichever they are, while every byte can still be read."""
        return {
            RaidLevel.STRIPED: 0,
            RaidLevel.MIRRORED: len(self.members) - 1,
            RaidLevel.STRIPED_MIRRORS: 1,
            RaidLevel.PARITY: 1,
            RaidLevel.DOUBLE_PARITY: 2,
        }[self.level]

    @property
    def in_file(self) -> bool:
        """False: data goes onto the block device."""
        return False

    def claim(self, identities: Mapping[str, Identity]) -> ScratchClaim:
        """The UUID with the identities of the attached members: of each, the guard accepts a membership in this
        array only. The array's own counters come first, then those of its members."""
        attached = [self.member(identities[name]) for name in self.disks if name in identities]
        array: Identity = {"kname": self.kname, "uuid": self.identity, "members": attached}
        return ScratchClaim(array, (self.kname, *(str(identity["kname"]) for identity in attached)))

    def member(self, identity: Identity) -> Identity:
        """The identity of a disk that may be a member of this array."""
        return {**identity, "made": [self.identity]}

    def covers(self, missing: frozenset[str]) -> bool:
        """Whether every byte can be read without these members."""
        return covers(self.level, self.disks, missing)

    def usable(self, attached: Callable[[str], bool]) -> bool:
        """Whether it has enough of its members to be read."""
        return self.covers(frozenset(name for name in self.disks if not attached(name)))


def is_clean(values: Mapping[str, str]) -> bool:
    """Whether an array with these attributes of md misses no member and copies nothing, now or soon. Right after it was
    assembled, a resync that is due has not begun and is not in ``sync_action``, but in ``resync_start``. A rebuild that
    md has done, and counts no missing member after, stays in ``sync_action`` until its thread has time, which it does
    not have under a load: 40 s with raid6."""
    if "sync_action" not in values:
        return int(values.get("degraded") or 0) == 0  # a level without redundancy
    due = values.get("resync_start", "none") != "none"
    missing = int(values.get("degraded") or 0)
    rebuilt = values["sync_action"] == "recover" and values.get("sync_completed") == "none"
    return (values["sync_action"] == "idle" or rebuilt) and not due and missing == 0
