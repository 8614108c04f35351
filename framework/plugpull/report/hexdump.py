"""Two sectors side by side: what was expected and what was found."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH = 16
SHOWN = 6
"""Rows shown at most: the stamp's header is in the first three."""


@dataclass(frozen=True)
class Byte:
    text: str
    differs: bool


@dataclass(frozen=True)
class HexRow:
    """Sixteen bytes at ``offset`` in the sector, or, where ``omitted`` is not 0, so many rows left out."""

    offset: int
    expected: tuple[Byte, ...] = ()
    found: tuple[Byte, ...] = ()
    omitted: int = 0


def rows(expected_hex: str, found_hex: str, shown: int = SHOWN) -> tuple[HexRow, ...]:
    """The first row, and those that differ, up to ``shown``. Either side may be empty: it is not known then."""
    expected, found = bytes.fromhex(expected_hex), bytes.fromhex(found_hex)
    wanted = []
    for offset in range(0, max(len(expected), len(found)), WIDTH):
        if offset == 0 or expected[offset : offset + WIDTH] != found[offset : offset + WIDTH]:
            wanted.append(offset)
    made = [HexRow(offset, *_pair(expected, found, offset)) for offset in wanted[:shown]]
    if len(wanted) > shown:
        made.append(HexRow(wanted[shown], omitted=len(wanted) - shown))
    return tuple(made)


def _pair(expected: bytes, found: bytes, offset: int) -> tuple[tuple[Byte, ...], tuple[Byte, ...]]:
    one, two = expected[offset : offset + WIDTH], found[offset : offset + WIDTH]
    differs = [not one or not two or a != b for a, b in zip(one or two, two or one, strict=False)]
    both = bool(one) and bool(two)
    return tuple(
        tuple(Byte(f"{byte:02x}", both and different) for byte, different in zip(side, differs, strict=False))
        for side in (one, two)
    )  # type: ignore[return-value]


def ascii_of(row: tuple[Byte, ...]) -> str:
    """The bytes as text, dots for what has none."""
    return "".join(chr(int(byte.text, 16)) if 0x20 <= int(byte.text, 16) < 0x7F else "." for byte in row)
