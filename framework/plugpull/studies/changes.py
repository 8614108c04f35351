"""Two conditions of a study compared: the evidence of a difference, and the doubt where repeats are too few."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from plugpull.measure.compare import (
    FLOOR,
    MOST_REPEATS,
    SIGNIFICANT,
    RelativeChange,
    compare_all,
    repeats_needed,
    welch_test,
)
from plugpull.measure.estimate import estimate
from plugpull.studies.figures import interval, rate


@dataclass(frozen=True)
class NamedRepeats:
    """The repeats of one condition, which ``name`` says in words."""

    name: str
    samples: Sequence[float]


@dataclass(frozen=True)
class Compared:
    """``two`` against ``one``, in a table of so many comparisons."""

    one: NamedRepeats
    two: NamedRepeats
    found: RelativeChange
    table: int

    @property
    def change(self) -> str:
        """The change with its interval, in words."""
        bounds = "" if self.found.low is None else f" ({self.found.low:+.1%} to {self.found.high:+.1%})"
        return f"{self.found.change:+.1%}{bounds}"

    def evidence(self, say: Callable[[float], str] = rate) -> tuple[str, ...]:
        """Both means and the test. ``say`` puts a value in words."""
        return (
            f"{self.one.name}: {interval(estimate(self.one.samples), say)}",
            f"{self.two.name}: {interval(estimate(self.two.samples), say)}",
            f"exact permutation test: p = {self.found.p:.4f}, corrected for the comparisons of this table",
        )

    def doubt(self, question: str) -> str:
        """That it cannot be said whether ``question`` although it is likely, and how many repeats would show it. Empty
        if it can be said, or if it is not likely."""
        if self.found.answer not in ("too few", "unclear") or abs(self.found.change) < FLOOR or not self._likely:
            return ""
        count = min(len(self.one.samples), len(self.two.samples))
        needed = repeats_needed(self.one.samples, self.two.samples, self.table)
        more = f"it would take more than {MOST_REPEATS}"
        if needed is not None:
            more = f"measure with --repeats {max(needed, count + 1)}"
        return f"{count} repeats are too few to say whether {question}: {self.change}; {more}"

    @property
    def unshown(self) -> str:
        """That no difference was shown, and no likeness either, as a clause; empty otherwise."""
        return (
            f"{self.two.name} {self.change}, not shown to differ" if self.found.answer in ("too few", "unclear") else ""
        )

    @property
    def _likely(self) -> bool:
        fewest = min(len(self.one.samples), len(self.two.samples))
        return fewest > 1 and welch_test(self.one.samples, self.two.samples) < SIGNIFICANT


def compared(pairs: Iterable[tuple[NamedRepeats, NamedRepeats]]) -> tuple[Compared, ...]:
    """The pairs of one table."""
    table = tuple(pairs)
    found = compare_all([(one.samples, two.samples) for one, two in table])
    return tuple(Compared(one, two, each, len(table)) for (one, two), each in zip(table, found, strict=True))
