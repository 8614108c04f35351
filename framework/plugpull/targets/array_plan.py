"""What an array is to be made of, and mdadm's options for it."""

from __future__ import annotations

from plugpull.errors import NotServed
from plugpull.rig.quantities import parse_size
from plugpull.targets.array import LEAST, Array, RaidLevel
from plugpull.targets.disk import RigDisk

CHUNK = 64 << 10
"""Bytes of one member's part of a stripe, unless a scenario says otherwise."""


def planned(name: str, level: str, disks: tuple[RigDisk, ...], slow: tuple[RigDisk, ...] = ()) -> Array:
    """An array that is to be made; those of its disks that are ``slow`` come last. Raises ``NotServed`` if there are
    too few disks for its level."""
    kind = RaidLevel(level)
    if len(set(disks)) < LEAST[kind]:
        raise NotServed(f"a {level} needs {LEAST[kind]} scratch disks, and this rig has {len(set(disks))} for it")
    ordered = sorted(disks, key=lambda disk: disk in slow)
    return Array(name, kind, tuple(ordered), write_mostly=tuple(disk.name for disk in ordered if disk in slow))


def options_of(array: Array, size: str, bitmap: bool | str, *, ppl: bool, chunk: int = CHUNK) -> tuple[str, ...]:
    """mdadm's options for an array that uses ``size`` of each member, with chunks of so many bytes. Raises
    ``NotServed`` if a member is too small."""
    level = array.level
    if level is RaidLevel.STRIPED:
        return (f"--chunk={chunk >> 10}",)
    array.require(parse_size(size))
    said = [f"--size={parse_size(size) >> 10}"]
    if level is not RaidLevel.MIRRORED:
        said.append(f"--chunk={chunk >> 10}")
    if ppl:
        return (*said, "--bitmap=none", "--consistency-policy=ppl")
    if isinstance(bitmap, str):
        said.append(f"--bitmap-chunk={parse_size(bitmap) >> 10}K")
    # Without --force, a RAID 5 begins degraded, and its last member is rebuilt as if it had been lost (mdadm(8)).
    # Writes to members that are not read may lag behind; 256 of them is what mdadm(8) has for a default.
    force = ["--force"] * (level is RaidLevel.PARITY) + ["--write-behind=256"] * bool(array.write_mostly)
    return (*said, *force, f"--bitmap={'internal' if bitmap else 'none'}")
