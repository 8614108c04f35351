"""Columns of counters: millions of numbers in little memory, and what is known about all of them at once."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import eq, lt

MOST = 2**63 - 1
LEAST = -(2**63)
"""Numbers beyond these are impossible counters, and are kept as these."""
NARROW, WIDE = "B", "q"
"""Typecodes of a column whose numbers are all small, and of any other. Many counters stand still, or count what is in
flight."""
SMALL = range(256)


class Column:
    """Numbers that can only be appended. ``constant``: all are the same. ``negative``: some are below 0.
    ``rising``: each number after the one with this index is larger than the one before it.

    ``compared``: whether each number is compared with the one before it when it is appended. That takes time, but less
    than to do it later."""

    __slots__ = ("_compared", "_falls", "constant", "negative", "numbers", "rising")

    def __init__(self, numbers: Iterable[int] = (), *, compared: bool = True) -> None:
        self.numbers: array[int] | memoryview = array(NARROW)
        self.constant, self.negative = True, False
        self._compared, self._falls, self.rising = compared, False, 0
        self.extend(tuple(numbers))

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def falls(self) -> bool:
        """Whether some number is smaller than the one before it."""
        if not self._compared:
            numbers = self.numbers.tolist()
            return sorted(numbers) != numbers
        return self._falls

    def extend(self, numbers: Sequence[int]) -> None:
        """Append numbers."""
        if not numbers:
            return
        assert isinstance(self.numbers, array), "a part of a column is not appended to"
        first, count = numbers[0], len(numbers)
        same = first == numbers[-1] and numbers.count(first) == count
        if same and self.constant and self.numbers and self.numbers[0] == first:
            self.rising = len(self.numbers) + count - 1
            self.numbers.extend(self.numbers[:1] * count)
            return
        added, numbers, same, negative = _array_of(numbers, self.numbers.typecode, same)
        if added.typecode != self.numbers.typecode:
            added, self.numbers = array(WIDE, added), array(WIDE, self.numbers)
        self.constant = self.constant and same and (not self.numbers or self.numbers[0] == added[0])
        self.negative = self.negative or negative
        if self._compared:
            self._compare(numbers, same)
        else:
            self.rising = len(self.numbers) + count - 1
        self.numbers.extend(added)

    def _compare(self, numbers: Sequence[int], same: bool) -> None:
        """Compare numbers that are about to be appended."""
        before = self.numbers[-1] if self.numbers else numbers[0] - 1
        rises = all(map(lt, numbers, islice(numbers, 1, None)))
        if not rises:
            self.rising = len(self.numbers) + len(numbers) - 1
        elif before >= numbers[0]:
            self.rising = len(self.numbers)
        # Sorting what is sorted already is one comparison per number, and keeps the very same objects.
        falls = not (rises or same or sorted(numbers) == list(numbers))
        self._falls = self._falls or falls or numbers[0] < before

    def until(self, count: int) -> Column:
        """The first ``count`` numbers, not copied. What is true of all of them may be unknown."""
        part = Column(compared=self._compared)
        part.numbers = memoryview(self.numbers)[:count]
        part.constant, part.negative, part.rising = self.constant, self.negative, min(self.rising, max(0, count - 1))
        part._falls = self._falls
        return part


def _array_of(numbers: Sequence[int], typecode: str, same: bool) -> tuple[array[int], Sequence[int], bool, bool]:
    """The numbers as an array, of ``typecode`` if they fit; the same numbers as objects; whether all are the same; and
    whether some are below 0."""
    first, last = numbers[0], numbers[-1]
    narrow = typecode == NARROW and first in SMALL and last in SMALL
    if same:
        one = max(LEAST, min(MOST, first))
        return array(NARROW if narrow else WIDE, (one,)) * len(numbers), numbers, True, one < 0
    if narrow and max(numbers) in SMALL and min(numbers) in SMALL:
        return array(NARROW, numbers), numbers, False, False
    try:
        # Numbers without a sign are put into an array in half the time. The top byte of one that is not huge is 0.
        data = array("Q", numbers).tobytes()
    except OverflowError:
        data = b""
    if data and data[7::8].count(0) == len(numbers):
        return array(WIDE, data), numbers, False, False
    numbers = [max(LEAST, min(MOST, number)) for number in numbers]
    return array(WIDE, numbers), numbers, len(set(numbers)) == 1, min(numbers) < 0


def unchanged(columns: Sequence[Column]) -> Iterator[int]:
    """Each index at which every one of ``columns``, all of one length, has the number that it has one place before."""
    end = min(one.rising for one in columns) + 1
    varying = sorted((one.numbers for one in columns if not one.constant), key=len)
    if not varying:
        yield from range(1, min(end, len(columns[0])))
        return
    first, *others = varying
    numbers = first[:end].tolist()
    flags = bytes(map(eq, numbers, islice(numbers, 1, None)))
    at = flags.find(1)
    while at >= 0:
        if all(one[at] == one[at + 1] for one in others):
            yield at + 1
        at = flags.find(1, at + 1)
