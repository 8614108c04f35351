"""A stamped sector: it names the run, the disk, its own place and the write that put it there.

    bytes      what (little-endian)
    0..8       MAGIC
    8..16      run, a random number
    16..24     device, a number made of the disk's serial number
    24..32     sector, counted in units of 512 bytes from the beginning of the disk
    32..40     number of the write: the session in the upper half, counted from 1 in the lower
    40..44     index of this sector in its write
    44..48     sectors of the write
    48..504    57 words of xorshift64 (Marsaglia, 2003), seeded with all of the above
    504..508   lower half of the number once more, so that a sector torn in the middle shows both writes
    508..512   CRC-32 (ISO 3309, zlib's) of bytes 0..508

Every 512 bytes are stamped, also on disks with larger logical blocks, so that a mix inside one logical block shows. The
first 48 bytes determine all the others. ``writer/stamp.h`` implements the same format in C.

Plain Python 3.9 that imports next to nothing: programs on the DUT load it each time they start. ``stamp.py`` has the
same for everybody else.
"""

from __future__ import annotations

import struct
import zlib

SECTOR = 512
MAGIC = b"plugpull"
_HEAD = struct.Struct("<8sQQQQII")
_TAIL = struct.Struct("<II")
_WORDS = struct.Struct("<57Q")
_MASK = (1 << 64) - 1
_RUN, _DEVICE, _SECTOR, _NUMBER = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93
"""Odd multipliers that keep seeds of small numbers apart (golden ratio, and xxHash's primes)."""
Six = tuple[int, int, int, int, int, int]
"""Run, device, sector, number of the write, and this sector's index and count in it."""


def encode(six: Six) -> bytes:
    """The 512 bytes."""
    body = _HEAD.pack(MAGIC, *six) + _WORDS.pack(*_payload(six)) + struct.pack("<I", six[3] & 0xFFFFFFFF)
    return body + struct.pack("<I", zlib.crc32(body))


def decode(data: bytes) -> Six | None:
    """What a sector says; None unless the bytes are exactly those of ``encode``."""
    if len(data) != SECTOR or data[:8] != MAGIC:
        return None
    if _TAIL.unpack_from(data, 504)[1] != zlib.crc32(data[:508]):
        return None
    found = claimed(data)
    return found if found is not None and encode(found) == data else None


def claimed(data: bytes) -> Six | None:
    """What the first 48 bytes claim, complete or not; None without the magic. For damaged sectors."""
    if data[:8] != MAGIC or len(data) < _HEAD.size:
        return None
    _, run, device, sector, number, index, count = _HEAD.unpack_from(data)
    return run, device, sector, number, index, count


def _payload(six: Six) -> list[int]:
    run, device, sector, number, index, count = six
    word = (run * _RUN ^ device * _DEVICE ^ sector * _SECTOR ^ number * _NUMBER) & _MASK
    word ^= (index << 32 | count) & _MASK
    word = word or _RUN  # xorshift stays at zero
    words = []
    for _ in range(57):
        word ^= word << 13 & _MASK
        word ^= word >> 7
        word ^= word << 17 & _MASK
        words.append(word)
    return words
