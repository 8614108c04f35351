"""The one notion of what a load, a stamped write or a check works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeGuard

from plugpull.errors import UsageError
from plugpull.rig.part import Part
from plugpull.rig.topology import CutPoint
from plugpull.targets.claim import Identity, ScratchClaim


class Target(Protocol):
    """A disk, a filesystem, an array: anything that holds data and rests on disks of the rig."""

    @property
    def name(self) -> str:
        """The name of the target in the history. A filesystem on one disk has the name of the disk."""
        ...

    @property
    def disks(self) -> tuple[str, ...]:
        """Names of the rig's disks that it rests on. A cut of any of them reaches it."""
        ...

    @property
    def identity(self) -> str:
        """What stays the same over a replug: a disk's serial number, or the UUID of an array or a filesystem.

        Raises ``UsageError`` while it is not made."""
        ...

    @property
    def size(self) -> int:
        """Bytes that it can hold."""
        ...

    @property
    def rate(self) -> int | None:
        """Bytes per second that it transfers at most, if known."""
        ...

    @property
    def in_file(self) -> bool:
        """Whether data goes into a file on a mounted filesystem instead of onto a block device."""
        ...

    def claim(self, identities: Mapping[str, Identity]) -> ScratchClaim:
        """What the agent must prove before it opens the target, from the identities of its disks by name."""
        ...

    def usable(self, attached: Callable[[str], bool]) -> bool:
        """Whether it can be opened when only the disks are attached for which ``attached`` returns True."""
        ...


Targets = Target | Iterable[Target]


def targets_of(targets: Targets | Part | Iterable[Part]) -> tuple[Target, ...]:
    """One target, or several, as a tuple. Raises ``UsageError`` for a hub."""
    if isinstance(targets, Iterable):
        return tuple(_checked(thing) for thing in targets)
    return (_checked(targets),)


def _checked(thing: Target | Part) -> Target:
    if _is_target(thing):
        return thing
    raise UsageError(f"{thing.name} is a hub, and data can only be written to a disk or to what is made of disks")


def _is_target(thing: Target | Part) -> TypeGuard[Target]:
    return hasattr(thing, "claim")


def reached_by(target: Target, *points: CutPoint) -> bool:
    """Whether a cut of these points takes away a disk that the target rests on."""
    return any(name in point.victims for point in points for name in target.disks)
