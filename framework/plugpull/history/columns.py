"""Columns of counters: millions of numbers in little memory, and what is known about all of them at once."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import eq, lt

import msgspec

MOST = 2**63 - 1
LEAST = -(2**63)
"""Numbers beyond these are impossible counters, and are kept as these."""
NARROW, MEDIUM, WIDE = "B", "I", "q"
"""Typecodes of a column whose numbers are all small, of one whose numbers have 4 bytes, and of any other. Many counters
stand still, or count what is in flight."""
LARGEST_MEDIUM = 2**32 - 1
SMALL = range(256)
TYPECODES = {NARROW: 1, MEDIUM: 4, WIDE: 8}
"""Of columns, from the narrowest to the widest, with the bytes of a number."""


class PackedColumn(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Numbers of a pack (``packs.py``), which are not all the same, none below 0. ``rises``: each is larger than the
    one before it. ``falls``: some are smaller. ``data``: an array of ``code``."""

    code: str
    rises: bool
    falls: bool
    data: bytes

    def fits(self, count: int) -> bool:
        """Whether these are so many numbers."""
        return self.code in TYPECODES and len(self.data) == count * TYPECODES[self.code]

    def at(self, place: int) -> int:
        """One of the numbers."""
        return int(memoryview(self.data).cast(self.code)[place])  # type: ignore[call-overload]


class Column:
    """Numbers that can only be appended. ``constant``: all are the same. ``negative``: some are below 0. ``flat``:
    parts, as (begin, end), outside of which each number is larger than the one before it.

    ``compared``: whether each number is compared with the one before it when it is appended. That takes time, but less
    than to do it later."""

    __slots__ = ("_compared", "_falls", "constant", "flat", "negative", "numbers")

    def __init__(self, numbers: Iterable[int] = (), *, compared: bool = True) -> None:
        self.numbers: array[int] | memoryview = array(NARROW)
        self.constant, self.negative = True, False
        self._compared, self._falls = compared, False
        self.flat: list[tuple[int, int]] = []
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
        if same and self._go_on(first, count):
            return
        added, numbers, same, negative = _array_of(numbers, self.numbers.typecode, same)
        added = self._widened(added)
        self.constant = self.constant and same and (not self.numbers or self.numbers[0] == added[0])
        self.negative = self.negative or negative
        if self._compared:
            self._compare(numbers, same)
        else:
            self._is_flat(count)
        self.numbers.extend(added)

    def _go_on(self, number: int, count: int) -> bool:
        """Append a number so many times if all numbers so far are the same. Returns whether they are."""
        numbers = self.numbers
        if not self.constant or not numbers or numbers[0] != number or not isinstance(numbers, array):
            return False
        self._is_flat(count)
        numbers.extend(numbers[:1] * count)
        return True

    def extend_packed(self, packed: int | PackedColumn, count: int) -> None:
        """Append so many numbers of a pack, about which all is known; a number stands for a column of it."""
        if isinstance(packed, int):
            if not self._go_on(packed, count):
                self.extend((packed,) * count)
            return
        assert isinstance(self.numbers, array), "a part of a column is not appended to"
        added: array[int] = array(packed.code)
        added.frombytes(packed.data)
        so_far = len(self.numbers)
        before = self.numbers[-1] if so_far else added[0] - 1
        if not self._compared or not packed.rises:
            self._is_flat(count)
        elif before >= added[0]:
            self._is_flat(1)
        self._falls = self._falls or (self._compared and (packed.falls or added[0] < before))
        self.constant = False
        added = self._widened(added)
        self.numbers.extend(added)

    def _is_flat(self, count: int) -> None:
        """Note that so many numbers that are about to be appended may be flat."""
        begin = end = len(self.numbers)
        if self.flat and self.flat[-1][1] == begin:
            begin, _ = self.flat.pop()
        self.flat.append((begin, end + count))

    def _widened(self, added: array[int]) -> array[int]:
        """Numbers that are about to be appended, as wide as those that are there, or the other way round."""
        assert isinstance(self.numbers, array), "a part of a column is not appended to"
        own, other = self.numbers.typecode, added.typecode
        if TYPECODES[own] < TYPECODES[other]:
            self.numbers = array(other, self.numbers)
        return added if TYPECODES[own] <= TYPECODES[other] else array(own, added)

    def _compare(self, numbers: Sequence[int], same: bool) -> None:
        """Compare numbers that are about to be appended."""
        before = self.numbers[-1] if self.numbers else numbers[0] - 1
        rises = all(map(lt, numbers, islice(numbers, 1, None)))
        if not rises:
            self._is_flat(len(numbers))
        elif before >= numbers[0]:
            self._is_flat(1)
        # Sorting what is sorted already is one comparison per number, and keeps the very same objects.
        falls = not (rises or same or sorted(numbers) == list(numbers))
        self._falls = self._falls or falls or numbers[0] < before

    def until(self, count: int) -> Column:
        """The first ``count`` numbers, not copied. What is true of all of them may be unknown."""
        part = Column(compared=self._compared)
        part.numbers = memoryview(self.numbers)[:count]
        part.constant, part.negative = self.constant, self.negative
        part.flat = [(begin, min(end, count)) for begin, end in self.flat if begin < count]
        part._falls = self._falls
        return part


def _array_of(numbers: Sequence[int], typecode: str, same: bool) -> tuple[array[int], Sequence[int], bool, bool]:
    """The numbers as an array, of ``typecode`` if they fit; the same numbers as objects; whether all are the same; and
    whether some are below 0."""
    first, last = numbers[0], numbers[-1]
    narrow = typecode == NARROW and first in SMALL and last in SMALL
    if same:
        one = max(LEAST, min(MOST, first))
        code = NARROW if narrow else MEDIUM if typecode != WIDE and 0 <= one <= LARGEST_MEDIUM else WIDE
        return array(code, (one,)) * len(numbers), numbers, True, one < 0
    if narrow and max(numbers) in SMALL and min(numbers) in SMALL:
        return array(NARROW, numbers), numbers, False, False
    if typecode != WIDE and 0 <= first <= last <= LARGEST_MEDIUM:
        try:
            return array(MEDIUM, numbers), numbers, False, False
        except OverflowError:
            pass
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
    varying = [one for one in columns if not one.constant]
    if not varying:
        yield from range(1, len(columns[0]))
        return
    parts = varying[0].flat
    for column in varying[1:]:
        parts = list(_common(parts, column.flat))
    for begin, end in parts:
        begin = max(begin, 1)
        first, *others = (one.numbers[begin - 1 : end].tolist() for one in varying)
        flags = bytes(map(eq, first, islice(first, 1, None)))
        at = flags.find(1)
        while at >= 0:
            if all(one[at] == one[at + 1] for one in others):
                yield begin + at
            at = flags.find(1, at + 1)


def _common(ones: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts that both have in common. Each are in order."""
    one = other = 0
    while one < len(ones) and other < len(others):
        begin, end = max(ones[one][0], others[other][0]), min(ones[one][1], others[other][1])
        if begin < end:
            yield begin, end
        one, other = one + (ones[one][1] == end), other + (others[other][1] == end)
