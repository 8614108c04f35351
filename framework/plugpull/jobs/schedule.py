"""Which bench runs which test next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plugpull.jobs.messages import FoundTest
from plugpull.jobs.usual_times import USUAL


@dataclass(frozen=True)
class WaitForOthers:
    """The bench has to wait until another one has ended its test."""


class Schedule:
    """Hands out tests to benches, the longest first, so that no bench is left with a long one at the end.

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
        self.running[bench] = self._left.pop(0)
        return self.running[bench]

    def lost(self, bench: int) -> None:
        """A bench is gone. Nobody runs again what it was running."""
        self.running.pop(bench, None)

    @property
    def seconds(self) -> float:
        """How long the tests that nobody runs yet are expected to take together."""
        return sum(_expected(self._tests[index]) for index in self._left)


def _expected(test: FoundTest) -> float:
    return USUAL if test.seconds is None else test.seconds
