"""The class of a series of verdicts: new, ongoing, fixed, passing again, flaky, or passing.

The results are read once, from the oldest to the newest. Only PASS and FAIL are results: a night that is UNKNOWN, was
skipped or is missing changes nothing. The rules, where a flip is a result unlike the one before:

- ``new``: FAIL after PASS, or the first result is FAIL, or it fails for a reason that it did not have before.
- ``ongoing``: FAIL, as the result before, or from the first time on if all its findings are expected.
- ``flaky``: two flips, with no settled streak between them. Three FAIL in a row are settled (a regression), and so are
  five PASS in a row. PASS and FAIL in one run are flaky at once. Five equal results in a row end it; after five PASS it
  is flaky again with the first FAIL for a reason that it had, as long as a failure is among the newest 20 results.
- ``passing again``: PASS after a failure that was not flaky, fewer than three in a row; then ``fixed``, as long as
  the failure is among the newest 20 results.
- ``passing``: all others with a PASS. ``never run``: no result at all.
"""

from __future__ import annotations

from math import sqrt
from typing import Literal

import msgspec

WINDOW = 20
"""Results that are counted, for k of n."""
CONFIRMED = 3
"""PASS in a row that make it fixed, and FAIL in a row that make it a regression and not a flake."""
CLEARED = 5
"""Equal results in a row after which a series is no longer flaky."""
NORMAL_95 = 1.959964
"""The 97.5 % quantile of the normal distribution."""

SeriesClass = Literal["new", "ongoing", "fixed", "passing again", "flaky", "gone", "never run", "passing"]
CLASSES: tuple[SeriesClass, ...] = (
    "new",
    "ongoing",
    "fixed",
    "passing again",
    "flaky",
    "gone",
    "never run",
    "passing",
)


EXPECTED = "expected:"
"""Before the name of an expected finding, in the kind of a reason."""


def is_expected(reason: str) -> bool:
    """Whether a reason is a finding that the kernel is known to cause."""
    return f" {EXPECTED}" in reason


class Streaks(msgspec.Struct, kw_only=True):
    """What the results so far amount to. Nights are texts, as the runs give their time.

    ``failed`` are the newest results, oldest first. ``flips`` are counted since the last settled streak, the first of
    them at ``flipped``. ``reasons`` has the night on which each reason of the present failures was first seen; a
    flaky series keeps its reasons. ``fresh``: the newest result failed for a reason not seen before. ``calmed``: it was
    flaky, and has only passed since then.
    """

    failed: list[bool] = []
    streak: int = 0
    since: str = ""
    last: str = ""
    flips: int = 0
    flipped: str = ""
    flaky: bool = False
    calmed: bool = False
    failed_before: bool = False
    reasons: dict[str, str] = {}
    fresh: str = ""
    newest: str = ""

    @property
    def failing(self) -> bool:
        return bool(self.failed) and self.failed[-1]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The class of a series now. ``k`` of ``n``: passes since the failure of 3 if passing again, otherwise failures of
    the newest results."""

    name: SeriesClass
    since: str = ""
    last: str = ""
    k: int = 0
    n: int = 0
    reason: str = ""


def advance(progress: Streaks, night: str, statuses: set[str], reasons: list[str]) -> None:
    """Read the results of one night (PASS, FAIL, or both) and the reasons of its failures."""
    if "PASS" in statuses:
        _result(progress, night, [], failed=False)
    if "FAIL" in statuses:
        _result(progress, night, reasons or [""], failed=True)
    if {"PASS", "FAIL"} <= statuses:
        progress.flaky, progress.flipped = True, progress.flipped or night


def _result(progress: Streaks, night: str, reasons: list[str], *, failed: bool) -> None:
    first, flipped = not progress.failed, bool(progress.failed) and progress.failing != failed
    if first or flipped:
        progress.streak, progress.since = 0, night
        progress.failed_before = not first and not failed
        if flipped:
            progress.flips += 1
            progress.flipped = progress.flipped if progress.flips > 1 else night
    if failed and progress.calmed:
        progress.flaky = any(progress.failed) and not set(reasons).isdisjoint(progress.reasons)
        progress.calmed = False
    if failed:
        _reasons(progress, night, reasons, begins=first or flipped)
    progress.failed = [*progress.failed, failed][-WINDOW:]
    progress.streak += 1
    progress.last = night
    _settle(progress, failed)


def _reasons(progress: Streaks, night: str, reasons: list[str], *, begins: bool) -> None:
    known = progress.reasons
    unseen = [reason for reason in reasons if reason not in known and not is_expected(reason)]
    # The failures of a flaky series are one story; otherwise each streak has its own reasons.
    kept = known if progress.flaky or not begins else {}
    progress.fresh = unseen[0] if unseen and kept else ""
    progress.reasons = {**kept, **{reason: kept.get(reason, night) for reason in reasons}}
    progress.newest = progress.fresh or next((one for one in reasons if not is_expected(one)), reasons[0])
    if not progress.flaky and not begins:
        # It goes on since the oldest of the reasons that it still has; ``reasons`` has them in order.
        progress.since = next(seen for reason, seen in progress.reasons.items() if reason in reasons)


def _settle(progress: Streaks, failed: bool) -> None:
    if progress.flaky:
        if progress.streak >= CLEARED:
            progress.flaky, progress.flips, progress.flipped = False, 0, ""
            progress.failed_before, progress.calmed = False, not failed
            if failed:  # from here on it is one failure, which began with its streak
                progress.reasons = dict.fromkeys(progress.reasons, progress.since)
    elif progress.streak >= (CONFIRMED if failed else CLEARED):
        progress.flips, progress.flipped = 0, ""
    elif progress.flips >= 2:
        progress.flaky, progress.failed_before = True, False


def standing(progress: Streaks) -> Standing:
    """The class of a series with these results."""
    failures, results = sum(progress.failed), len(progress.failed)
    if not results:
        return Standing(name="never run")

    def named(name: SeriesClass, since: str, reason: str = "") -> Standing:
        return Standing(name=name, since=since, last=progress.last, k=failures, n=results, reason=reason)

    if progress.failing and progress.fresh:
        return named("new", progress.last, progress.fresh)
    if progress.flaky:
        return named("flaky", progress.flipped, progress.newest)
    if progress.failing:
        new = progress.streak == 1 and not is_expected(progress.newest)
        return named("new" if new else "ongoing", progress.since, progress.newest)
    if progress.failed_before and progress.streak < CONFIRMED:
        again = named("passing again", progress.since, progress.newest)
        return msgspec.structs.replace(again, k=progress.streak, n=CONFIRMED)
    if progress.failed_before and failures:
        return named("fixed", progress.since, progress.newest)
    return named("passing", progress.since)


def wilson(k: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of k in n (E. B. Wilson, 1927).

    >>> [round(each, 3) for each in wilson(3, 20)]
    [0.052, 0.36]
    """
    if n == 0:
        return 0.0, 1.0
    z2, share = NORMAL_95**2, k / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 / (1 + z2 / n) * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return middle - half, middle + half
