"""Whether the survivors kept their throughput while another disk was cut and came back.

Method. It uses only the agent's samples of ``/sys/block/*/stat`` (``Sampled``), never the numbers of fio: a fio process
that is stuck or was killed has none.

- *Counter*: bytes read or bytes written, depending on the disk's load; both if the load does both.
- *Judged time*: from ``LoadSettled`` until the load was asked to end. Time in which the DUT was starved by its host
  (``starved.py``) is removed, with the bytes moved in it; all durations below refer to the remaining time. If more than
  20 % of the judged time is starved, the verdict is UNKNOWN. It is also UNKNOWN if a single gap could hide a long
  stall: a disk that moved the fraction f of its baseline in a gap of g seconds may have stood still for up to (1 - f) g
  seconds of it.
- *Baseline*: the mean rate from ``LoadSettled`` to the commanded off edge of the first cut, with its spread
  (``baseline.py``). It must be at least 1 s long. A rate is below a limit only if the spread does not explain it.
- *Declared rate*: if the rig file has a rate for the disk, the baseline of fio's loads must be at least half of it.
  On an emulated bench no disk may be much faster than its own rate: then requests never reached it.
- *Stall*: a period with a mean rate below 5 % of the baseline, so a trickle is a stall too. Its length is exact to two
  sampling intervals. Judged are the longest stall, and the sum of all stalls that are longer than the disk needs for
  its requests in flight, or than those before the first cut, where that is known to be less. It is UNKNOWN if only
  their shortest possible length is within the limit (``pauses.py``). A stall in which the DUT
  answered late as well (``late_answers.py``) is UNKNOWN, if what is left of it without that is within the limit.
- *Recovery*: for each commanded edge (off and on, of every cut), the time from the edge to the start of the first
  1 s window at pace, if the mean from that start up to the next edge (or the end) is at pace too. At pace means a mean
  rate of at least ``min_ratio`` x baseline. So neither a later noisy window nor a single fast one changes the result.
  Edges less than 1 s apart count as one. The worst edge is reported.
- *Final ratio*: the mean rate from the recovery after the last edge to the end (over the last 2 s only, if nothing was
  restored), divided by the baseline. The last 2 s are also judged by themselves, which shows a slow decline.
- *Lasting loss*: an emulated disk that was as fast as its rate in the rig file, and has the default limits, keeps 95 %
  of its baseline, less what chance explains, from 1 s after the last edge to the end, if that is 3 s or more.
- *Slow hosts*: if the host ran the DUT at a share of its speed, stalls and recoveries count only for the granted time
  (``starved.awake``), and rates are compared with the attainable rate: less by the share that the host withheld, and by
  its square for a disk that is as fast as its host. Less than half of the CPU time over the judged time is UNKNOWN.
- *CPU*: a load that used up the DUT's CPUs before the first cut is bound by them, not by its disk. A lower rate is then
  not a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plugpull.checks import limits
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.data.opinions import counters_stood_still, sampler_stood_still
from plugpull.checks.evidence import limit, miswired, seconds
from plugpull.checks.late_answers import answered_late
from plugpull.checks.record.stale_samples import LITTLE
from plugpull.checks.starved import LEAST_GRANTED, gaps, granted
from plugpull.checks.survivors.baseline import LEAST, SIGMAS, WINDOW, Baseline, baseline
from plugpull.checks.survivors.pauses import interval_of, nearly_too_long, usual_pause
from plugpull.checks.survivors.slowness import PaceLimits, Slowness, rate_text
from plugpull.checks.survivors.survivor import (
    BUSY,
    Unjudgeable,
    Watched,
    busy_cpu,
    declared_rate,
    own_rate,
    span,
    watched,
)
from plugpull.checks.survivors.too_fast import FAST_FOR, FASTEST, fastest
from plugpull.checks.survivors.track import EPSILON, Stall, Track
from plugpull.history.reader import Story
from plugpull.judging.results import Better, Measurement, Survivor

MOST_STARVED = 0.2
"""Share of the judged time that the DUT may have been starved."""
MOST_HIDDEN = 2.0
"""The longest stall, in seconds, that starvation of a virtual DUT may hide without making the verdict UNKNOWN."""
AROUND_A_HOLE = 2.0
"""Seconds before and after a hole of the samples in which what a survivor is accused of may have its cause."""
TRICKLE = 0.05
"""A disk below this share of its baseline stands still."""
SLOWEST = 0.5
"""Share of its declared rate that a disk must reach before the first cut."""

BASELINE, STALL, STALLS = "baseline rate", "longest stall", "all stalls"
RECOVERY, FINAL_RATE = "recovered after", "final rate"
"""Names of its measurements."""
RATIO = "of the baseline"


class KeptPace(Check, frozen=True, tag="kept_pace"):
    """No survivor stalls for longer than ``max_stall`` seconds, or for more than ``all_stalls`` seconds in total. After
    every edge, each has at least ``min_ratio`` of its baseline rate again within ``recover_within`` seconds.

    The module describes the method. ``None``: the disk's limit in the rig file, or the default of the kind of bench."""

    disks: tuple[str, ...]
    max_stall: float | None = None
    min_ratio: float | None = None
    recover_within: float | None = None
    all_stalls: float | None = None

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        verdicts = [_Verdict(story, disk, self._limits(story, disk), said) for disk in self.disks]
        for verdict in verdicts:
            verdict.reach()
        wiring = miswired(story)
        if wiring and said.findings:
            said.findings.clear()
            said.unknowns.insert(0, wiring)
        if not self.disks:
            said.doubt("kept_pace was asked about no disk")
        survivors = tuple(verdict.survivor for verdict in verdicts)
        measured = [survivor for survivor in survivors if survivor.measured is not None]
        lowest = min(measured, key=lambda survivor: survivor.measured or 0.0, default=Survivor(disk=""))
        return said.judgement(
            _worst(verdicts, passed=said.clean),
            survivors=survivors,
            measured=lowest.measured,
            limit=lowest.limit,
            unit=lowest.unit,
            smallest=lowest.smallest,
        )

    def claims(self, story: Story) -> Iterable[Claim]:
        for disk in self.disks:
            judged = span(story, disk)
            if judged is not None:
                what = f"{disk} kept its pace"
                evidence = (Evidence.SAMPLES, Evidence.LOAD)
                stall = limits.max_stall(story, disk, self.max_stall)
                yield Claim(what=what, evidence=evidence, begin=judged[0], end=judged[1], disk=disk, limit=stall)

    def _limits(self, story: Story, disk: str) -> PaceLimits:
        stalls = self.all_stalls
        return PaceLimits(
            max_stall=limits.max_stall(story, disk, self.max_stall),
            all_stalls=limits.all_stalls(story, disk, self.max_stall) if stalls is None else stalls,
            min_ratio=limits.min_ratio(story, disk, self.min_ratio),
            recover_within=limits.recover_within(story, disk, self.recover_within),
            given=self.min_ratio is not None,
        )


def kept_pace(
    disks: Disks,
    max_stall: float | None = None,
    min_ratio: float | None = None,
    recover_within: float | None = None,
    all_stalls: float | None = None,
) -> KeptPace:
    """Each of ``disks``, all under load and outside the blast radius, must keep its pace through every cut."""
    return KeptPace(disk_names(disks), max_stall, min_ratio, recover_within, all_stalls)


@dataclass
class _Verdict:
    """The judgement of one survivor."""

    story: Story
    disk: str
    limits: PaceLimits
    said: Collector
    smallest: float | None = None

    @property
    def survivor(self) -> Survivor:
        """Its entry in the results, from the measurements."""
        return survivor_of(self.disk, self.said.measurements, self.limits.min_ratio, self.smallest)

    def reach(self) -> None:
        """Judge, and add the results to the collector."""
        try:
            self._judge(watched(self.story, self.disk))
        except Unjudgeable as reason:
            self.said.doubt(str(reason))

    def _judge(self, seen: Watched) -> None:
        self.said.take(*seen.findings, *seen.unknowns)
        for why in sampler_stood_still(self.story)[:1]:
            raise Unjudgeable(f"the pace of {self.disk} is not known: {why}")
        uncounted = counters_stood_still(self.story, self.disk)
        for one in uncounted[:1]:
            self.said.doubt(f"the pace of {self.disk} is not known: {one.clause}")
        cut = seen.line.at(seen.cut)
        base = baseline(seen.line, cut, seen.load.block)
        if base is None:
            raise Unjudgeable(_no_baseline(seen, cut))
        self._doubts(seen.line, base)
        longest, total = self._stalls(seen, base)
        slow = Slowness(self, seen, base, cut)
        slow.judge()
        if not uncounted:  # a rate that is too high or too low at once may be theirs
            self._declared(seen, base)
            self._too_fast(seen)
        self.smallest = round(slow.smallest, 4)
        error = SIGMAS * base.noise(base.windows * WINDOW) * base.rate
        self._measure(BASELINE, base.rate, "B/s", "up", 1, error=error, n=base.windows)
        self._measure(STALL, longest, "s", "down", 6)
        self._measure(STALLS, total, "s", "down", 6)
        if slow.recovery is not None:
            self._measure(RECOVERY, slow.recovery, "s", "down", 6)
        if slow.final is not None:
            self._measure(FINAL_RATE, slow.final, RATIO, "up", 4)

    def _measure(
        self, name: str, value: float, unit: str, better: Better, digits: int, error: float | None = None, n: int = 1
    ) -> None:
        self.said.measure(
            Measurement(
                name=name,
                subject=self.disk,
                value=round(value, digits),
                unit=unit,
                low=None if error is None else round(value - error, digits),
                high=None if error is None else round(value + error, digits),
                n=n,
                better=better,
            )
        )

    def accuse(self, summary: str, at: float) -> None:
        """Accuse the disk; or doubt, where a real DUT did not even run its sampler about that time."""
        hole = self._hole(at)
        if hole:
            self.said.doubt(f"{summary}, but nothing was sampled for {seconds(hole)} about that time")
        else:
            self.said.accuse(self.disk, summary, at)

    def _hole(self, at: float) -> float:
        """The length of a hole of the samples about ``at``, which is as long as a stall; 0 if there is none. What an
        emulated DUT's host did is on record instead (``starved.py``)."""
        if limits.bench_kind(self.story) == "virtual":
            return 0.0
        near = (gap for gap in gaps(self.story) if gap.begin - AROUND_A_HOLE <= at <= gap.end + AROUND_A_HOLE)
        return max((gap.length for gap in near if gap.length > self.limits.max_stall), default=0.0)

    def _doubts(self, line: Track, base: Baseline) -> None:
        starved, judged = sum(length for length, _ in line.gaps.values()), line.times[-1] - line.times[0]
        if starved > MOST_STARVED * judged:
            share = f"{seconds(starved)} of {seconds(judged)}"
            self.said.doubt(f"the sampler was starved for {share}, so the pace of {self.disk} is not known")
            return
        had = granted(self.story, line.times[0], line.times[-1])
        if had < LEAST_GRANTED:
            slow = f"the DUT's host gave it only {had:.0%} of its CPU time"
            self.said.doubt(f"{slow}, so the pace of {self.disk} is not known")
        virtual = limits.bench_kind(self.story) == "virtual"
        most = max(self.limits.max_stall, MOST_HIDDEN) if virtual else self.limits.max_stall
        for length, moved in line.gaps.values():
            if length - moved / base.rate > most:
                what = f"the sampler was starved for {seconds(length)}, which may hide a stall of {self.disk}"
                self.said.doubt(what)
                return

    def _stalls(self, seen: Watched, base: Baseline) -> tuple[float, float]:
        """The longest stall and the sum of all stalls, seconds."""
        slow = [one for one in seen.line.stalls(TRICKLE * base.rate) if not self._wrote(one)]
        if not slow:
            return 0.0, 0
        speeds = [self._speed(one.began, one.began + one.seconds) for one in slow]
        stalls = [Stall(one.began, one.seconds * speed) for one, speed in zip(slow, speeds, strict=True)]
        longest = max(stalls, key=lambda stall: stall.seconds, default=Stall(seen.settled, 0.0))
        # A disk may complete all requests in flight together, and then none until the next ones are done.
        pause = seen.load.block * seen.load.depth / base.rate + 2 * interval_of(seen.line)
        usual = usual_pause(seen, slow, pause)
        long = [stall for stall in stalls if stall.seconds > usual]
        total = sum(stall.seconds for stall in long)
        most = max(self.limits.max_stall, pause)
        too_long = [
            (stall, self._late(seen, one) * speed)
            for one, stall, speed in zip(slow, stalls, speeds, strict=True)
            if stall.seconds > most
        ]
        certain = [(stall, late) for stall, late in too_long if stall.seconds - late > most]
        if too_long:
            worst, late = max(certain or too_long, key=lambda one: one[0].seconds)
            what = f"{self.disk} stood still for {seconds(worst.seconds)} {limit(self.limits.max_stall)}"
            if certain:
                self.accuse(what, worst.began)
            else:
                self.said.doubt(f"{what}, but the DUT's answers were late as well, by up to {seconds(late)}")
        elif total > self.limits.all_stalls:
            what = f"{self.disk} stood still for {seconds(total)} in {len(long)} stalls"
            self.accuse(f"{what} {limit(self.limits.all_stalls)}", long[0].began)
        else:
            self.said.doubt(*nearly_too_long(self.story, seen, long, most, self.limits))
        return longest.seconds, total

    def _late(self, seen: Watched, stall: Stall) -> float:
        """Seconds of a stall, as it was, in which the DUT answered late."""
        end = seen.line.time(seen.line.at(stall.began) + stall.seconds - EPSILON)
        return answered_late(self.story, stall.began, end)

    def _wrote(self, stall: Stall) -> bool:
        """Whether the disk was written in a stall, by a ledger that contradicts its counters."""
        begin, end = stall.began, stall.began + stall.seconds
        return any(one.completed(begin, end) > LITTLE for one in counters_stood_still(self.story, self.disk))

    def _speed(self, begin: float, end: float) -> float:
        """The weight of a second of [begin, end]: 1, or less if the DUT's host ran it slowly."""
        return granted(self.story, begin, end) ** 2

    def attainable(self, seen: Watched, begin: float, end: float) -> float:
        """The share of the baseline that is attainable in [begin, end], given the speed of the DUT's host.

        The limit of an emulated disk runs on its host's clock. In 2,406 healthy windows of a second in which the host
        gave the DUT 50 to 80 % of its time, disks with a limit had 99 % of their baseline on average, and never less
        than 85 % of it times that share."""
        share = granted(self.story, begin, end) / granted(self.story, seen.settled, seen.cut)
        return min(1.0, share if own_rate(self.story, self.disk) is not None else share**2)

    def _too_fast(self, seen: Watched) -> None:
        """Accuse a disk that moved more than it can: requests were answered that never reached it."""
        own = own_rate(self.story, self.disk)
        if limits.bench_kind(self.story) != "virtual" or own is None:
            return
        found = fastest(self.story, seen, own)
        if found is not None:
            rate, at = found
            what = f"{self.disk} moved {rate_text(rate)} for {FAST_FOR:g} s, faster than its {rate_text(own)}"
            self.accuse(f"{what} (limit {FASTEST:.0%})", at)

    def _declared(self, seen: Watched, base: Baseline) -> None:
        declared = declared_rate(self.story, seen.load)
        if declared is None or base.rate >= SLOWEST * declared * self._speed(seen.settled, seen.cut):
            return
        what = f"{self.disk} transferred {rate_text(base.rate)} before the first cut"
        what = f"{what}, {base.rate / declared:.0%} of the {rate_text(declared)} that the rig file declares"
        busy = busy_cpu(self.story, seen.settled, seen.cut)
        if busy is not None and busy >= BUSY:
            self.said.doubt(f"{what}, but the DUT's CPUs were {busy:.0%} busy")
        else:
            self.accuse(f"{what} (limit {SLOWEST:.0%})", seen.cut)


def survivor_of(disk: str, measurements: Iterable[Measurement], limit: float, smallest: float | None) -> Survivor:
    """The entry of a disk in ``survivors`` of ``results.json``. Without measurements only its name is known."""
    found = {one.name: one.value for one in measurements if one.subject == disk}
    if BASELINE not in found:
        return Survivor(disk=disk)
    final = found.get(FINAL_RATE)
    return Survivor(
        disk=disk,
        baseline_bps=found[BASELINE],
        stall_s=found[STALL],
        stalls_s=found[STALLS],
        recovery_s=found.get(RECOVERY),
        final_ratio=final,
        measured=final,
        limit=limit,
        unit=RATIO,
        smallest=smallest,
    )


def _worst(verdicts: Sequence[_Verdict], *, passed: bool) -> str:
    survivors = [verdict.survivor for verdict in verdicts if verdict.survivor.stall_s is not None]
    if not survivors:
        return ""
    stalls = max(verdicts, key=lambda verdict: verdict.survivor.stall_s or 0.0)
    parts = [f"longest stall {seconds(stalls.survivor.stall_s or 0.0)}, limit {stalls.limits.max_stall:g} s"]
    ratios = [verdict for verdict in verdicts if verdict.survivor.final_ratio is not None]
    if ratios:
        lowest = min(ratios, key=lambda verdict: verdict.survivor.final_ratio or 0.0)
        ratio = f"lowest rate {lowest.survivor.final_ratio:.0%} of the baseline, limit {lowest.limits.min_ratio:.0%}"
        blindest = max(verdict.survivor.smallest or 0.0 for verdict in ratios)
        parts.append(f"{ratio}, would have noticed a loss of {blindest:.0%} or more")
    said = "; ".join(parts)
    count = len(verdicts)
    return f"{count} survivor{'s' * (count != 1)} kept pace ({said})" if passed else said


def _no_baseline(seen: Watched, cut: float) -> str:
    if cut < LEAST:
        length = seconds(max(0.0, cut))
        return f"the baseline of {seen.disk} was measured for only {length}; {LEAST:g} s are needed"
    return f"{seen.disk} did not move a byte before the first cut, so it has no baseline"
