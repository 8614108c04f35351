"""A stamped sector: it names the run, the disk, its own place and the write that put it there.

``stamp_format.py`` has the bytes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from plugpull.integrity.oracle import stamp_format
from plugpull.integrity.oracle.stamp_format import SECTOR

__all__ = ["SECTOR", "Stamp", "claimed", "decode", "device_number"]


@dataclass(frozen=True)
class Stamp:
    """The content of one stamped sector.

    ``number`` is that of the write; ``index`` and ``count`` are this sector's place in it.
    """

    run: int
    device: int
    sector: int
    number: int
    index: int
    count: int

    def encode(self) -> bytes:
        """The 512 bytes."""
        return stamp_format.encode((self.run, self.device, self.sector, self.number, self.index, self.count))


def decode(data: bytes) -> Stamp | None:
    """The stamp in a sector; None unless the bytes are exactly those of ``Stamp.encode``."""
    found = stamp_format.decode(data)
    return None if found is None else Stamp(*found)


def claimed(data: bytes) -> Stamp | None:
    """The stamp that the first 48 bytes claim, complete or not; None without the magic. For damaged sectors."""
    found = stamp_format.claimed(data)
    return None if found is None else Stamp(*found)


def device_number(serial: str) -> int:
    """The number that identifies a disk in its stamps."""
    return int.from_bytes(hashlib.blake2b(serial.encode(), digest_size=8).digest(), "little")
