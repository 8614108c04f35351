"""Checks from outside the guest that disks which are never written stay unchanged.

Each medium gets its own pattern before the guest can see it. When the scenario is over, the medium is compared with
that pattern. A medium of zeros would hide that somebody wrote zeros.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from plugpull.history.events import SeenFromOutside

PIECE = 1 << 20
METHOD = "every byte of the medium compared from outside the guest"


def fill(medium: Path, name: str) -> None:
    """Write the pattern: a kilobyte that names the disk, at the start of each MiB and in the last sectors.

    The rest stays a hole, which reads as zeros.
    """
    mark = _mark(name)
    size = medium.stat().st_size
    with medium.open("r+b") as file:
        for at in _places(size):
            file.seek(at)
            file.write(mark[: size - at])


def look(medium: Path, disk: str, at: float | None) -> SeenFromOutside:
    """Compare the medium with the pattern of ``fill``."""
    size, mark = medium.stat().st_size, _mark(disk)
    expected = {place: mark[: size - place] for place in _places(size)}
    differ = first = 0
    with medium.open("rb") as file:
        for begin in range(0, size, PIECE):
            piece = file.read(PIECE)
            wanted = bytearray(len(piece))
            for place, data in expected.items():
                if begin <= place < begin + PIECE:
                    wanted[place - begin : place - begin + len(data)] = data
            if piece == wanted:
                continue
            sectors = [n for n in range(0, len(piece), 512) if piece[n : n + 512] != wanted[n : n + 512]]
            first = first or begin // 512 + sectors[0] // 512
            differ += len(sectors)
    detail = f"{differ} sectors have changed, the first is sector {first}" if differ else ""
    return SeenFromOutside(at=at, disk=disk, ok=not differ, method=METHOD, detail=detail)


def _mark(name: str) -> bytes:
    return hashlib.shake_256(name.encode()).digest(1024)


def _places(size: int) -> list[int]:
    return [*range(0, size, PIECE), size - 1024] if size >= 2 * PIECE else [0]
