"""The least and the greatest rate of every block of samples: all that is drawn of most of a long history.

A block is ``BLOCK`` consecutive rows of a scenario's table, and begins at a row that is a multiple of that. Packs
(``packs.py``) have the extremes of blocks, so that reports need not calculate millions of rates to draw a few of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import lt, sub, truediv
from typing import NamedTuple

BLOCK = 20
"""Samples of a block: two seconds, ten a second."""


class Extremes(NamedTuple):
    """The extremes of consecutive blocks from ``row`` on: two rates of each, in their order."""

    row: int
    rates: array[float]

    @property
    def end(self) -> int:
        """The row after the last block."""
        return self.row + len(self.rates) // 2 * BLOCK


def whole_blocks(row: int, count: int) -> range:
    """The first rows of the blocks of which all rates are known from ``count`` rows from ``row`` on. The first row has
    no rate, because a rate is that since the row before."""
    return range(-(-(row + 1) // BLOCK) * BLOCK, row + count - BLOCK + 1, BLOCK)


def extremes_of(numbers: Sequence[int], steps: Sequence[float], row: int) -> bytes:
    """The extremes of a counter's rates in all whole blocks, as an array of doubles. The first of the ``numbers`` is
    that of ``row``; ``steps`` are the seconds from each to the next."""
    blocks = whole_blocks(row, len(numbers))
    if not blocks:
        return b""
    first, last = blocks[0] - row, blocks[-1] - row + BLOCK
    gained = map(sub, islice(numbers, first, last), islice(numbers, first - 1, last - 1))
    return array("d", ends_of_each(map(truediv, gained, islice(steps, first - 1, last - 1)), BLOCK)).tobytes()


def ends_of_each(rates: Iterable[float], width: int) -> list[float]:
    """Of each ``width`` rates the least and the greatest, in their order. What is left of them is left out."""
    each = iter(rates)
    groups = list(zip(*[each] * width, strict=False))
    found: list[float] = []
    least, greatest = list(map(min, groups)), list(map(max, groups))
    rises = map(lt, map(tuple.index, groups, least), map(tuple.index, groups, greatest))
    for group, low, high, up in zip(groups, least, greatest, rises, strict=True):
        found += (low, high) if up or high in group[group.index(low) :] else (high, low)
    return found
