"""Troubles of the benches: nights and scenarios without a result, and whether they become more.

A scenario that is UNKNOWN says nothing of the DUT, so it does not count in any series of verdicts. It says something of
the bench.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from math import comb
from typing import Literal

import msgspec

from plugpull.archive.present import Lane, Night, Nights, verdicts_by_night
from plugpull.archive.records import JUDGED

COUNTED = 20
"""Nights that are counted, for k of n."""
LATELY = 7
"""Nights that are compared with those before."""
EARLIER = 60
"""Nights before, at most."""
UNLIKELY = 0.05
"""The probability by chance below which a bench is said to decay."""
SILENT = 3
"""Nights in a row without a result after which a single scenario is named."""
_VARIES = re.compile(r"\d+(?:\.\d+)?")

BenchState = Literal["decaying", "failing", "unsteady", "no result"]


class BenchTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """A bench with nights that were UNKNOWN, in part or as a whole, or (with a ``key``) a scenario without results.

    ``decaying``: more such nights lately than before. ``failing``: the newest night is one. ``unsteady``: others are.
    ``no result``: this scenario was run and gave none, ``k`` nights in a row. Otherwise ``k`` of the newest ``n``
    nights had something UNKNOWN. ``since`` is the first night of the newest row of such nights, ``last`` its last one;
    ``reason`` is what was said most often."""

    rig: str
    kernel: str
    key: str
    state: BenchState
    since: str
    last: str
    k: int
    n: int
    reason: str


def bench_troubles(db: sqlite3.Connection, nights: Nights) -> tuple[BenchTrouble, ...]:
    """The troubles of all benches, the worst first."""
    counted = verdicts_by_night(db, nights.names)
    verdicts = dict(db.execute("SELECT id, verdict FROM run").fetchall())
    found: list[BenchTrouble] = []
    for lane, of_lane in sorted(_lanes(nights).items()):
        bad = [_is_bad(counted[night.id], verdicts.get(night.id, "")) for night in of_lane]
        if any(bad[-COUNTED:]):
            found.append(_trouble(db, lane, of_lane, bad))
        found += _silent(db, lane, of_lane)
    order = ("decaying", "failing", "no result", "unsteady")
    return tuple(sorted(found, key=lambda one: order.index(one.state)))


def _lanes(nights: Nights) -> dict[Lane, list[Night]]:
    """The nights of each bench. A night on which a rig could not be run has no kernel: it counts for the kernel line
    that the rig ran last."""
    lanes = {lane: list(of_lane) for lane, of_lane in nights.lanes.items() if lane[1]}
    for lane, of_lane in nights.lanes.items():
        if not lane[1]:
            others = [other for other in lanes if other[0] == lane[0]]
            last = max(others, key=lambda other: nights.lanes[other][-1].started, default=lane)
            lanes[last] = sorted([*lanes.get(last, []), *of_lane], key=lambda night: night.started)
    return lanes


def _is_bad(counted: Counter[str], verdict: str) -> bool:
    """Whether a night lacks results that it was to have. A skipped scenario is not missed."""
    lost = sum(count for status, count in counted.items() if status not in (*JUDGED, "SKIP"))
    return lost > 0 or (verdict == "UNKNOWN" and not any(counted[status] for status in JUDGED))


def _trouble(db: sqlite3.Connection, lane: Lane, nights: list[Night], bad: list[bool]) -> BenchTrouble:
    recent = bad[-COUNTED:]
    newest = max(number for number, one in enumerate(bad) if one)
    first = newest
    while first > 0 and bad[first - 1]:
        first -= 1
    lately, before = bad[-LATELY:], bad[-LATELY - EARLIER : -LATELY]
    worse = bool(before) and more_often(sum(lately), len(lately), sum(before), len(before)) < UNLIKELY
    state: BenchState = "decaying" if worse else "failing" if bad[-1] else "unsteady"
    runs = [night.id for night, one in zip(nights[-COUNTED:], recent, strict=True) if one]
    return BenchTrouble(
        rig=lane[0],
        kernel=lane[1],
        key="",
        state=state,
        since=nights[first].name,
        last=nights[newest].name,
        k=sum(recent),
        n=len(recent),
        reason=_usual(_reasons(db, runs)),
    )


def _silent(db: sqlite3.Connection, lane: Lane, nights: list[Night]) -> Iterator[BenchTrouble]:
    """Scenarios that were run on the newest nights, and gave no result on any of the last ``SILENT`` of these."""
    recent = {night.id: night.name for night in nights[-COUNTED:]}
    if len(recent) < SILENT:
        return
    rows = db.execute(
        "SELECT series.scenario, result.run_id, result.status, result.detail FROM result "
        "JOIN series ON series.id = result.series_id WHERE series.rig = ? AND series.kernel_line = ? "
        "AND result.run_id >= ? AND result.status != 'SKIP'",
        (*lane, min(recent)),
    )
    of_scenario: dict[str, dict[int, tuple[bool, str]]] = {}
    for scenario, run, status, detail in rows:
        if run in recent:
            there = of_scenario.setdefault(scenario, {})
            there[run] = (there.get(run, (False, ""))[0] or status in JUDGED, detail)
    order = list(recent)
    for scenario, there in sorted(of_scenario.items()):
        ran = [run for run in order if run in there]
        without = _last_without([there[run][0] for run in ran])
        if without >= SILENT:
            yield BenchTrouble(
                rig=lane[0],
                kernel=lane[1],
                key=scenario,
                state="no result",
                since=recent[ran[-without]],
                last=recent[ran[-1]],
                k=without,
                n=len(ran),
                reason=_usual(there[run][1] for run in ran[-without:]),
            )


def _last_without(judged: list[bool]) -> int:
    count = 0
    for one in reversed(judged):
        if one:
            break
        count += 1
    return count


def _reasons(db: sqlite3.Connection, runs: list[int]) -> Iterator[str]:
    for run in runs:
        notes = db.execute("SELECT text FROM note WHERE run_id = ? AND kind = 'unknown'", (run,))
        unjudged = "status NOT IN ('PASS', 'FAIL', 'SKIP')"
        details = db.execute(f"SELECT detail FROM result WHERE run_id = ? AND {unjudged}", (run,))
        yield from (text for (text,) in (*notes, *details))


def _usual(reasons: Iterable[str]) -> str:
    """The most frequent reason, apart from its numbers."""
    alike: Counter[str] = Counter()
    example: dict[str, str] = {}
    for reason in reasons:
        if reason:
            shape = _VARIES.sub("N", reason)
            alike[shape] += 1
            example[shape] = reason
    return example[alike.most_common(1)[0][0]] if alike else ""


def more_often(k: int, n: int, before: int, of: int) -> float:
    """The probability of k or more of n by chance, if it happens as often as ``before`` times in ``of`` and these
    together (Fisher's exact test, one-sided).

    >>> round(more_often(5, 7, 1, 30), 5)
    0.00026
    """
    total = k + before
    ways = comb(n + of, total)
    return sum(comb(n, i) * comb(of, total - i) for i in range(k, min(n, total) + 1)) / ways
