"""Finds what was recorded in a span of time, in a record that is nearly in order of time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate


class TimeIndex:
    """The times of a record, in seconds and in the order of the record."""

    def __init__(self, times: Sequence[float]) -> None:
        self._most = list(accumulate(times, max))
        self._least = list(accumulate(reversed(times), min))[::-1]

    def first_from(self, begin: float) -> int:
        """The first place with a time of ``begin`` or later; the length of the record if there is none."""
        return bisect_left(self._most, begin)

    def last_until(self, end: float) -> int:
        """The last place with a time of ``end`` or earlier; -1 if there is none."""
        return bisect_right(self._least, end) - 1

    def places(self, begin: float, end: float) -> range:
        """The places in the record in which times of [begin, end] can be. Whatever is before them is earlier than
        ``begin``, and whatever is after them later than ``end``; some of them may be, too."""
        first = self.first_from(begin)
        return range(first, max(first, self.last_until(end) + 1))
