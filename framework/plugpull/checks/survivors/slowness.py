"""How much slower a survivor was after the first cut: its recovery from each edge, and its final rate.

``pace.py`` defines them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import sqrt
from statistics import fmean
from typing import Protocol

from plugpull.checks.collector import Collector
from plugpull.checks.data.opinions import counters_stood_still
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.limits import bench_kind, declared
from plugpull.checks.record.stale_samples import LITTLE
from plugpull.checks.stalls import disturbances
from plugpull.checks.starved import LEAST_GRANTED, granted
from plugpull.checks.survivors.baseline import SIGMAS, Baseline
from plugpull.checks.survivors.baseline import WINDOW as HALF
from plugpull.checks.survivors.survivor import BUSY, Watched, busy_cpu, own_rate
from plugpull.checks.survivors.track import Track
from plugpull.history.reader import Story

WINDOW = 1.0
"""Seconds over which a rate must hold to count."""
SHORTEST = 0.5
"""A rate that is too low over these seconds shows that pace was not regained."""
FINAL = 2.0
"""The shortest span of the final mean, seconds."""
LASTING, LONG, CALM = 0.95, 3.0, 1.0
"""The share of its baseline that an emulated disk keeps which is bound by its own rate, over at least so many seconds
that begin so long after the last edge. In 480 healthy cases it kept 0.96 and more, and more than 0.97 where its
baseline is known to 5 %."""
AT_ITS_RATE = 0.1
"""The share by which the baseline of such a disk may differ from its rate, and a half second from the baseline."""
AGREES = 1.1
"""By this factor a ledger may have more than the counters: requests that were under way at both ends of a span."""
LEAST_POWER = 0.9
"""The smallest loss, as a share, that a check with the default limit must be able to notice."""


@dataclass(frozen=True)
class PaceLimits:
    max_stall: float
    all_stalls: float
    min_ratio: float
    recover_within: float
    given: bool


class SurvivorVerdict(Protocol):
    """The judgement of one survivor, which takes findings and doubts."""

    story: Story
    disk: str
    limits: PaceLimits
    said: Collector

    def accuse(self, summary: str, at: float) -> None: ...

    def attainable(self, seen: Watched, begin: float, end: float) -> float: ...


@dataclass
class Slowness:
    """Recovery and final rate of one survivor."""

    verdict: SurvivorVerdict
    seen: Watched
    base: Baseline
    cut: float
    recovery: float | None = None
    final: float | None = None
    smallest: float = 1.0

    def judge(self) -> None:
        line, bounds = self.seen.line, self.verdict.limits
        regained = self._recoveries()
        self.final, length = self._final_ratio(regained)
        self.smallest = min(1.0, 1.0 - self._wanted(length) + self._margin(length))
        if self.final is not None and self.recovery is not None and self.final < bounds.min_ratio:
            what = f"ended at {self.final:.0%} of its baseline (at least {bounds.min_ratio:.0%} wanted)"
            if self._too_slow(self.final, length):
                self._accuse(what, line.end - length, line.end, line.times[-1])
            elif not self._slow_at_last(regained):
                self._doubt(what, self._margin(length))
        elif self.recovery is not None and not self._lost_a_little():
            self._last_seconds(regained)
        if not bounds.given and self.smallest > LEAST_POWER:
            spread = f"the baseline of {self.verdict.disk} varies by {self.base.spread:.0%}"
            self.verdict.said.doubt(f"{spread}: a loss of less than {self.smallest:.0%} would not have been seen")

    def _wanted(self, length: float) -> float:
        """A mean over ``length`` seconds below this share of the baseline is certainly too low. Chance explains at most
        half of the limit, so a disk at a tenth of its rate never counts as noisy."""
        ratio = self.verdict.limits.min_ratio
        return ratio - min(self._margin(length), ratio / 2) if self.base.stationary else ratio

    def _margin(self, length: float) -> float:
        """By how much chance, and a host that ran the DUT at varying speed, may lower a mean over ``length``
        seconds."""
        had = granted(self.verdict.story, self.seen.settled, self.seen.end)
        return self.base.margin(length) + (1.0 - had) / 4

    def _ratio(self, begin: float, end: float) -> float:
        """The mean rate between two places on the time line, as a share of the attainable baseline."""
        line = self.seen.line
        had = self.verdict.attainable(self.seen, line.time(begin), line.time(end))
        return line.rate(begin, end) / self.base.rate / had

    def _accuse(self, what: str, begin: float, end: float, at: float | None = None) -> None:
        """Accuse the disk of a lower rate between two places on the time line, unless the baseline or the DUT's CPUs
        may be the cause. ``at`` is a DUT time, of ``begin`` if it is absent."""
        line = self.seen.line
        at = line.time(begin) if at is None else at
        what = f"{self.verdict.disk} {what}"
        had = granted(self.verdict.story, line.time(begin), line.time(end))
        busy = busy_cpu(self.verdict.story, self.seen.settled, self.seen.cut)
        if busy is not None and busy >= BUSY:
            reason = f"but the DUT's CPUs were {busy:.0%} busy before the first cut already"
            self.verdict.said.doubt(f"{what}, {reason}")
        elif had < LEAST_GRANTED:
            self.verdict.said.doubt(f"{what}, but the DUT's host gave it only {had:.0%} of its CPU time then")
        elif self._uncounted(begin, end):
            self.verdict.said.doubt(f"{what}, but by its ledger it completed more than its counters say")
        elif not self.base.stationary and self._as_before(begin, end):
            slow = f"{self.base.dropped} of its {len(self.base.rates)} half seconds were slower than a third"
            self.verdict.said.doubt(f"{what}, but its baseline was not steady ({slow})")
        else:
            self.verdict.accuse(what, at)

    def _uncounted(self, begin: float, end: float) -> bool:
        """Whether a ledger that contradicts the disk's counters elsewhere does so between two places, too."""
        line = self.seen.line
        counted = AGREES * line.rate(begin, end) * (end - begin) + LITTLE
        ledgers = counters_stood_still(self.verdict.story, self.verdict.disk)
        return any(one.completed(line.time(begin), line.time(end)) > counted for one in ledgers)

    def _doubt(self, what: str, margin: float) -> None:
        """Add a doubt about a rate that is below its limit by no more than chance, or bound by the CPUs."""
        busy = busy_cpu(self.verdict.story, self.seen.settled, self.seen.cut)
        if busy is None or busy < BUSY:
            chance = f"known to {margin:.0%} only"
            self.verdict.said.doubt(f"{self.verdict.disk} {what}, {chance}")

    def _too_slow(self, final: float, length: float) -> bool:
        """Whether a mean over the last ``length`` seconds is certainly too low: by its margin, or by half of that and
        by its half seconds. A slow one before the cut makes the margin large."""
        if final < self._wanted(length):
            return True
        if self._as_fast_as_its_host():
            return False
        half = self.verdict.limits.min_ratio - self._margin(length) / 2
        ranked = self.base.steady_but_for_one and final < half
        return ranked and not self._as_before(self.seen.line.end - length, self.seen.line.end)

    def _as_before(self, begin: float, end: float) -> bool:
        """Whether a span may be as slow by chance, as a part of the half seconds before the cut was: by its mean, or by
        the ranks of its half seconds among those before the cut, each at the limit's share of its rate.

        That is the rank test of Mann, Whitney and Wilcoxon. For it, only the number of slow half seconds matters, not
        how slow they were, so that a single one does not hide a lasting loss.

        An emulated disk without a rate of its own is as fast as the host lets it be, and a busy host slows it for
        seconds. It is judged by the slowest half second that it had, and so is one whose pace wandered before."""
        line, ratio = self.seen.line, self.verdict.limits.min_ratio
        if self._as_fast_as_its_host() or not self.base.steady_but_for_one:
            return line.end > self.cut and line.rate(self.cut, line.end) >= ratio * min(self.base.rates)
        count = int((end - begin) / HALF + 1e-9)
        after = [self._ratio(begin + i * HALF, begin + (i + 1) * HALF) for i in range(count)]
        before = [ratio * rate / self.base.rate for rate in self.base.rates]
        if not after or fmean(after) >= fmean(before):
            return True
        pairs = len(before) * len(after)
        above = sum((one > two) + (one == two) / 2 for one in after for two in before)
        error = sqrt(pairs * (len(before) + len(after) + 1) / 12)
        return above > pairs / 2 - SIGMAS * error

    def _as_fast_as_its_host(self) -> bool:
        story = self.verdict.story
        return bench_kind(story) == "virtual" and own_rate(story, self.verdict.disk) is None

    def _recoveries(self) -> float | None:
        """The place on the time line where pace was regained after the last edge. Sets the worst recovery."""
        line, within, ratio = self.seen.line, self.verdict.limits.recover_within, self.verdict.limits.min_ratio
        edges = _edges(self.verdict.story, self.verdict.disk, line, self.cut)
        worst, regained = 0.0, None
        for i, edge in enumerate(edges):
            regained = self._regained(edge, edges[i + 1 :])
            watched_for = line.end - edge
            if regained is not None and self._took(edge, regained) <= within:
                worst = max(worst, self._took(edge, regained))
            elif watched_for > within + WINDOW or self._still_slow(edge + within):
                back = f"get back to {ratio:.0%} of its {rate_text(self.base.rate)}"
                if regained is None:
                    mean = self._ratio(edge, line.end)
                    what = f"did not {back} in the {seconds(watched_for)} after an edge, {mean:.0%} of it on average"
                else:
                    what = f"took {seconds(self._took(edge, regained))} to {back} after an edge"
                self._accuse(f"{what} {limit(within)}", edge, line.end if regained is None else regained)
                self.recovery = None if regained is None else self._took(edge, regained)
                return regained
            else:
                short = f"was watched for only {seconds(watched_for)} after an edge, too short to judge it"
                self.verdict.said.doubt(f"{self.verdict.disk} {short}")
                return None
        self.recovery = worst
        return regained

    def _still_slow(self, since: float) -> bool:
        """Whether the disk is too slow from ``since`` on to the end, though that is shorter than a window."""
        length = self.seen.line.end - since
        return length >= SHORTEST and self._ratio(since, self.seen.line.end) < self._wanted(length)

    def _regained(self, edge: float, later: Sequence[float]) -> float | None:
        """Start of the first window at pace after ``edge`` from which on the mean is at pace too."""
        line = self.seen.line
        later_samples = range(bisect_right(line.clock, edge), len(line.clock))
        for start in chain((edge,), map(line.clock.__getitem__, later_samples)):
            if start + WINDOW > line.end + 1e-9:
                return None
            stop = next((place for place in later if place >= start + WINDOW), line.end)
            window, mean = self._ratio(start, min(start + WINDOW, line.end)), self._ratio(start, stop)
            if window >= self._wanted(WINDOW) and mean >= self._wanted(stop - start):
                return start
        return None

    def _took(self, edge: float, regained: float) -> float:
        """The counted seconds from an edge until pace was regained."""
        begin = self.seen.line.time(edge)
        return (regained - edge) * granted(self.verdict.story, begin, begin + regained - edge) ** 2

    def _final_ratio(self, regained: float | None) -> tuple[float | None, float]:
        """The final ratio, and over how many seconds it was measured."""
        line = self.seen.line
        if line.end <= self.cut:
            return None, FINAL
        begin = max(self.cut, line.end - FINAL)
        restored = [cut.restored_at for cut in self.verdict.story.cut_records if cut.restored_at is not None]
        if regained is not None:
            begin = regained if restored else max(begin, regained)
        elif restored:
            begin = min(begin, max(self.cut, line.at(max(restored))))
        if line.end <= begin:
            return None, FINAL
        return self._ratio(begin, line.end), line.end - begin

    def _lost_a_little(self) -> bool:
        """Whether a disk that is bound by its own rate lost a little of it for good. Adds the finding."""
        line = self.seen.line
        begin = max(_edges(self.verdict.story, self.verdict.disk, line, self.cut), default=self.cut) + CALM
        length = line.end - begin
        if length < LONG or not self._bound_by_its_rate():
            return False
        margin, ratio = self._margin(length), self._ratio(begin, line.end)
        self.smallest = min(self.smallest, 1.0 - LASTING + 2 * margin)
        if ratio >= LASTING - margin:
            return False
        wanted = f"at least {LASTING:.0%} wanted, known to {margin:.1%}"
        self._accuse(
            f"was at {ratio:.1%} of its baseline in the last {length:.1f} s of its load ({wanted})", begin, line.end
        )
        return True

    def _bound_by_its_rate(self) -> bool:
        """Whether the disk is emulated, has the default limit, and was as fast as the rig file says."""
        story, disk, base = self.verdict.story, self.verdict.disk, self.base
        own = own_rate(story, disk)
        if own is None or bench_kind(story) != "virtual":
            return False
        if self.verdict.limits.given or "min_ratio" in declared(story, disk):
            return False
        return base.stationary and base.spread <= AT_ITS_RATE and abs(base.rate / own - 1.0) <= AT_ITS_RATE

    def _last_seconds(self, regained: float | None) -> None:
        """Judge a disk that regained its pace and lost it later. Half of the effect of chance is a doubt."""
        ratio, margin = self._last_ratio(regained), self._margin(FINAL)
        if not self._slow_at_last(regained) and ratio < self.verdict.limits.min_ratio - margin / 2:
            self._doubt(self._at_last(ratio), margin)

    def _slow_at_last(self, regained: float | None) -> bool:
        """Whether the last seconds are certainly too slow. Adds the finding."""
        ratio = self._last_ratio(regained)
        if ratio >= self._wanted(FINAL):
            return False
        self._accuse(self._at_last(ratio), self.seen.line.end - FINAL, self.seen.line.end)
        return True

    def _last_ratio(self, regained: float | None) -> float:
        """The rate of the last seconds, or that of a healthy disk if pace was not regained early enough."""
        end = self.seen.line.end
        return 1.0 if regained is None or end - regained < FINAL else self._ratio(end - FINAL, end)

    def _at_last(self, ratio: float) -> str:
        wanted = f"at least {self.verdict.limits.min_ratio:.0%} wanted"
        return f"was at {ratio:.0%} of its baseline in the last {FINAL:g} s of its load ({wanted})"


def _edges(story: Story, disk: str, line: Track, begin: float) -> list[float]:
    """The places of the commanded edges, and of the stalls of other disks, on the time line. Edges less than a window
    after another belong to it."""
    times = [edge.commanded_at for cut in story.cut_records if cut.executed for edge in (cut.off, cut.on)]
    times += disturbances(story, disk)
    inside = (line.at(at) for at in times if at is not None and line.times[0] <= at <= line.times[-1])
    edges: list[float] = []
    for place in sorted(place for place in inside if place >= begin):
        if not edges or place - edges[-1] >= WINDOW:
            edges.append(place)
    # An edge too near the end for a window belongs to the edge before.
    while len(edges) > 1 and line.end - edges[-1] < WINDOW:
        edges.pop()
    return edges


def rate_text(bps: float) -> str:
    """A rate in words."""
    return f"{bps / 1e6:.1f} MB/s" if bps >= 1e5 else f"{bps:.0f} B/s"
