"""Which bench runs which test next. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plugpull.jobs.messages import FoundTest
from plugpull.jobs.usual_times import USUAL


@dataclass(frozen=True)
class WaitForOthers:
    """The bench has to wait until another one has ended its test."""


LONG = 27.0
"""Seconds from which on a test is long. Such a one mostly waits, for a timeout of the kernel or for nothing to happen:
on the external disk study, the CPUs were idle half of the time while two of them ran, and a quarter otherwise."""


class Schedule:
    """Hands out tests to benches, the longest first, so that no bench is left with a long one at the end, and a long
    one beside shorter ones, which use the CPUs that it leaves idle.

    Tests that must be alone come last; they run while the other benches wait. Choices within a scenario depend on its
    id and the seed alone, so the order changes none of them.
    """

    def __init__(self, tests: Sequence[FoundTest]) -> None:
        def rank(index: int) -> tuple[bool, float]:
            return tests[index].alone, -_expected(tests[index])

        self._tests = tests
        self._left = sorted(range(len(tests)), key=rank)
        self.running: dict[int, int] = {}
        """The index of the test that each bench runs."""

    def next(self, bench: int) -> int | WaitForOthers | None:
        """The next test of a bench that has ended its last one; ``None``: none is left."""
        self.running.pop(bench, None)
        if any(self._tests[index].alone for index in self.running.values()):
            return WaitForOthers() if self._left else None
        if not self._left:
            return None
        if self._tests[self._left[0]].alone and self.running:
            return WaitForOthers()
        self.running[bench] = self._left.pop(self._first_beside(self.running.values()))
        return self.running[bench]

    def _first_beside(self, running: Iterable[int]) -> int:
        """The place of the test that comes next beside these: a shorter one beside a long one, while there are enough
        of them to fill the time of all long ones that are left."""
        beside = [place for place, index in enumerate(self._left) if not self._tests[index].alone]
        shorter = [place for place in beside if not self._long(self._left[place])]
        if not shorter or not any(self._long(index) for index in running):
            return 0
        spent = self._together(shorter)
        return shorter[0] if spent > self._together(beside) - spent else 0

    def _together(self, places: Iterable[int]) -> float:
        return sum(_expected(self._tests[self._left[place]]) for place in places)

    def _long(self, index: int) -> bool:
        return _expected(self._tests[index]) >= LONG

    def lost(self, bench: int) -> None:
        """A bench is gone. Nobody runs again what it was running."""
        self.running.pop(bench, None)

    @property
    def seconds(self) -> float:
        """How long the tests that nobody runs yet are expected to take together."""
        return sum(_expected(self._tests[index]) for index in self._left)


def _expected(test: FoundTest) -> float:
    return USUAL if test.seconds is None else test.seconds
