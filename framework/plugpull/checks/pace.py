"""Did the survivors keep their throughput while another disk was cut and came back?

Method. All of it rests on the independent samples of ``/sys/block/*/stat`` (``Sampled``), never on what fio says of
itself: a fio that is stuck, or killed, has no numbers.

- *Counter*: bytes read or bytes written, whichever the disk's load does; both if it does both.
- *Sampling gaps*: an interval between two samples longer than 3 times the median interval means that the sampler, or
  the whole DUT, was starved by its host. Such intervals are taken out of the time line, with the bytes moved in them;
  all durations below are of the time that remains. If they exceed 20 % of the judged time the verdict is UNKNOWN. It
  also is if a single gap could hide a stall longer than allowed: a disk that moved the fraction f of its baseline in a
  gap of g seconds may have stood still for up to (1 - f) g seconds of it.
- *Baseline*: mean rate from ``LoadSettled`` to the commanded off edge of the first cut made while the disk has a load;
  at least 1 s of it is needed.
- *Judged time*: from that edge until the load was told to end, or ended by itself, or the samples end.
- *Stall*: the longest contiguous time in which the counter did not move, counted from sample to sample; it is thus
  exact to two sampling intervals, and errs towards the shorter. Still intervals on both sides of a gap belong together
  if the counter did not move in the gap either.
- *Recovery*: for each commanded edge (off and on, of every cut), the time from the edge to the start of the first
  1 s window that is at pace, where the mean from that start up to the next edge (or the end) is at pace too. At pace is
  a mean rate of at least ``min_ratio`` x baseline. One noisy window later on does not spoil a recovery, and one lucky
  window does not make one. Edges less than 1 s apart count as one. The worst edge is reported.
- *Final ratio*: mean rate from where pace was regained after the last edge to the end (over the last 2 s only, if
  nothing was restored), divided by the baseline. Where pace was not regained: since the last restoring edge, and over
  at least 2 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.track import Track, interpolate, track
from plugpull.errors import Finding
from plugpull.history.events import LoadBegun, LoadEnded, LoadSettled, Phase
from plugpull.history.reader import Reading, Story
from plugpull.results import Survivor

WINDOW = 1.0
"""Seconds over which a rate must hold to count."""
FINAL = 2.0
"""Seconds of the final mean, at least."""
MOST_STARVED = 0.2
"""Share of the judged time that gaps may take."""


class _Unjudgeable(Exception):
    """The evidence for one survivor is missing; the message is the sentence that says so."""


class KeptPace(Check, frozen=True, tag="kept_pace"):
    """No stall of a survivor longer than ``max_stall`` seconds, and after every edge at least ``min_ratio`` of its
    baseline rate again within ``recover_within`` seconds. The module says how these are measured."""

    disks: tuple[str, ...]
    max_stall: float = 2.0
    min_ratio: float = 0.7
    recover_within: float = 5.0

    def judge(self, story: Story) -> Judgement:
        findings: list[Finding] = []
        unknowns: list[str] = []
        survivors: list[Survivor] = []
        for disk in self.disks:
            try:
                survivor = self._survivor(story, disk, findings, unknowns)
            except _Unjudgeable as reason:
                unknowns.append(str(reason))
                survivor = Survivor(disk=disk)
            survivors.append(survivor)
        if not self.disks:
            unknowns.append("kept_pace was asked about no disk")
        stalls = [survivor.stall_s for survivor in survivors if survivor.stall_s is not None]
        kept = (
            f"{len(survivors)} survivor{'s' * (len(survivors) != 1)} kept pace" if not findings and not unknowns else ""
        )
        stall = f"longest stall {seconds(max(stalls))}, limit {self.max_stall:g} s" if stalls else ""
        return Judgement(
            findings=tuple(findings),
            unknowns=tuple(unknowns),
            worst=f"{kept} ({stall})" if kept and stall else kept or stall,
            subject=", ".join(self.disks),
            survivors=tuple(survivors),
        )

    def _survivor(self, story: Story, disk: str, findings: list[Finding], unknowns: list[str]) -> Survivor:
        first_cut, load = _first_cut(story, disk)
        readings = _attachment_readings(story, disk, first_cut)
        interval = _interval(story, readings)
        baseline = _baseline(story, load, readings, first_cut, interval)
        end = self._end(story, load, readings, findings, unknowns)
        line = _judged_line(load, readings, first_cut, end, interval)
        self._doubts(line, disk, baseline, unknowns)
        stall, began = line.stall()
        if stall > self.max_stall:
            what = f"{disk} stood still for {seconds(stall)} {limit(self.max_stall)}"
            findings.append(self._finding(disk, what, began))
        recovery, last_regained = self._recoveries(story, line, disk, baseline, findings, unknowns)
        final = self._final_ratio(story, line, baseline, last_regained)
        if final is not None and final < self.min_ratio and recovery is not None:
            what = f"{disk} ended at {final:.0%} of its baseline (at least {self.min_ratio:.0%} wanted)"
            findings.append(self._finding(disk, what, line.times[-1]))
        return Survivor(
            disk=disk,
            baseline_bps=round(baseline, 1),
            stall_s=round(stall, 6),
            recovery_s=None if recovery is None else round(recovery, 6),
            final_ratio=None if final is None else round(final, 4),
        )

    def _end(
        self,
        story: Story,
        load: LoadBegun,
        readings: Sequence[Reading],
        findings: list[Finding],
        unknowns: list[str],
    ) -> float:
        """DUT time up to which ``load`` should have moved bytes."""
        disk, last = load.disk, readings[-1].at
        ended = story.load_end(load)
        if story.evidence_until is not None and (ended is None or ended.at is None or story.evidence_until < ended.at):
            unknowns.append(f"the pace of {disk} is known only until {story.evidence_until:.2f} s: the DUT fell silent")
        gone_at = _gone_at(story, disk, readings)
        if gone_at is not None and (ended is None or ended.at is None or gone_at <= ended.at):
            findings.append(self._finding(disk, f"{disk} was removed though it is outside the blast radius", gone_at))
            return min(last, gone_at)
        if ended is None or ended.at is None:
            return last
        if ended.errno:
            said = ended.message or f"errno {ended.errno}"
            findings.append(self._finding(disk, f"the load on {disk} ended with an I/O error: {said}", ended.at))
        elif not ended.asked and ended.exit_status:
            unknowns.append(f"the load on {disk} ended by itself with exit status {ended.exit_status}")
        asked_at = _asked_at(story, load, ended)
        if asked_at is not None:
            return min(last, asked_at)
        # When it was told to end is not on record, so that a short quiet time before its end means nothing.
        trailing = _last_movement(load, [reading for reading in readings if reading.at <= ended.at])
        if not ended.errno and ended.at - trailing > self.max_stall:
            quiet = seconds(ended.at - trailing)
            unknowns.append(f"{disk} did not move for {quiet} before its load ended, told to at an unknown time")
        return min(last, trailing)

    def _doubts(self, line: Track, disk: str, baseline: float, unknowns: list[str]) -> None:
        starved, judged = sum(length for length, _ in line.gaps), line.times[-1] - line.times[0]
        if starved > MOST_STARVED * judged:
            share = f"{seconds(starved)} of {seconds(judged)}"
            unknowns.append(f"the sampler was starved for {share}, so the pace of {disk} is not known")
            return
        for length, moved in line.gaps:
            if length - moved / baseline > self.max_stall:
                unknowns.append(f"the sampler was starved for {seconds(length)}, which may hide a stall of {disk}")
                return

    def _recoveries(
        self, story: Story, line: Track, disk: str, baseline: float, findings: list[Finding], unknowns: list[str]
    ) -> tuple[float | None, float | None]:
        """The worst recovery, and where on the time line pace was regained after the last edge."""
        edges = _edges(story, line)
        worst, regained = 0.0, None
        for i, edge in enumerate(edges):
            regained = _regained(line, edge, edges[i + 1 :], self.min_ratio * baseline)
            watched = line.end - edge
            if regained is not None and regained - edge <= self.recover_within:
                worst = max(worst, regained - edge)
            elif watched > self.recover_within:
                back = f"get back to {self.min_ratio:.0%} of its {_rate(baseline)}"
                if regained is None:
                    what = f"{disk} did not {back} in the {seconds(watched)} after an edge"
                else:
                    what = f"{disk} took {seconds(regained - edge)} to {back} after an edge"
                findings.append(self._finding(disk, f"{what} {limit(self.recover_within)}", line.time(edge)))
                return (regained - edge if regained is not None else None), regained
            else:
                unknowns.append(f"{disk} was watched for only {seconds(watched)} after an edge, too short to judge it")
                return None, None
        return worst, regained

    def _final_ratio(self, story: Story, line: Track, baseline: float, regained: float | None) -> float | None:
        if line.end <= 0:
            return None
        begin = max(0.0, line.end - FINAL)
        restored = [cut.restored_at for cut in story.cut_records if cut.restored_at is not None]
        if regained is not None:
            begin = regained if restored else max(begin, regained)
        elif restored:
            begin = min(begin, line.at(max(restored)))
        return line.rate(begin, line.end) / baseline if line.end > begin else None

    def _finding(self, disk: str, summary: str, at: float) -> Finding:
        return Finding(check="kept_pace", subject=disk, summary=summary, at=at)


def kept_pace(disks: Disks, max_stall: float = 2.0, min_ratio: float = 0.7, recover_within: float = 5.0) -> KeptPace:
    """Each of ``disks``, all under load and outside the blast radius, must keep its pace through every cut."""
    return KeptPace(disk_names(disks), max_stall, min_ratio, recover_within)


def _first_cut(story: Story, disk: str) -> tuple[float, LoadBegun]:
    """The first cut made while ``disk`` had a load, and that load. Cuts made before it was loaded say nothing of it."""
    begins = [cut.off.commanded_at for cut in story.cut_records if cut.off.commanded_at is not None and cut.executed]
    if not begins:
        raise _Unjudgeable("no cut was made, so there is nothing that the survivors could have kept pace through")
    for begin in sorted(begins):
        load = story.load_at(disk, begin)
        if load is not None:
            return begin, load
    raise _Unjudgeable(f"{disk} had no load when a cut was made, so its pace cannot be judged")


def _attachment_readings(story: Story, disk: str, at: float) -> tuple[Reading, ...]:
    """The readings of the attachment that held at ``at``: a counter starts anew with each."""
    attachment = story.attachment_at(disk, at)
    if attachment is None:
        raise _Unjudgeable(f"{disk} was not there when the first cut was made")
    key = (attachment.kname, attachment.diskseq)
    readings = tuple(reading for reading in story.readings(disk) if (reading.kname, reading.diskseq) == key)
    if len(readings) < 2:
        raise _Unjudgeable(f"there are no samples of {disk}")
    return readings


def _interval(story: Story, readings: Sequence[Reading]) -> float:
    times = story.sample_times if len(story.sample_times) > 1 else tuple(reading.at for reading in readings)
    return median(two - one for one, two in pairwise(sorted(times)))


def _bytes(load: LoadBegun, reading: Reading) -> int:
    reads, writes = "read" in load.mode or "rw" in load.mode, "write" in load.mode or "rw" in load.mode
    return reading.read * reads + reading.written * writes


def _baseline(story: Story, load: LoadBegun, readings: Sequence[Reading], first_cut: float, interval: float) -> float:
    settled = [event.at for event in story.of(LoadSettled) if load.disk in event.disks and event.at is not None]
    settled = [at for at in settled if (load.at or 0.0) <= at <= first_cut]
    if not settled:
        raise _Unjudgeable(f"the load on {load.disk} had not settled before the first cut, so it has no baseline")
    samples = [(one.at, float(_bytes(load, one))) for one in readings if settled[0] <= one.at <= first_cut]
    line = track(samples, interval) if len(samples) > 1 else None
    if line is None or line.end < WINDOW:
        length = seconds(line.end if line else 0.0)
        raise _Unjudgeable(f"the baseline of {load.disk} was measured for only {length}; {WINDOW:g} s are needed")
    rate = line.rate(0.0, line.end)
    if rate <= 0:
        raise _Unjudgeable(f"{load.disk} did not move a byte before the first cut, so it has no baseline")
    return rate


def _judged_line(load: LoadBegun, readings: Sequence[Reading], begin: float, end: float, interval: float) -> Track:
    times, counter = [one.at for one in readings], [float(_bytes(load, one)) for one in readings]
    samples = [(at, moved) for at, moved in zip(times, counter, strict=True) if begin < at <= end]
    if not samples:
        raise _Unjudgeable(f"there are no samples of {load.disk} under load after the first cut")
    return track([(begin, interpolate(times, counter, begin)), *samples], interval)


def _gone_at(story: Story, disk: str, readings: Sequence[Reading]) -> float | None:
    attachment = story.attachment_at(disk, readings[0].at) or story.attachments(disk)[0]
    gone_at = story.detached_at(attachment)
    own_cuts = any(disk in cut.armed.victims for cut in story.cut_records)
    return None if own_cuts else gone_at


def _asked_at(story: Story, load: LoadBegun, ended: LoadEnded) -> float | None:
    """When the load was told to end: as recorded with its end, or else the beginning of the phase that does it."""
    if not ended.asked or ended.asked_at is not None:
        return ended.asked_at
    stops = [phase.at for phase in story.of(Phase) if phase.name == "stop" and phase.at is not None]
    # The last one: phases before it ended other loads.
    return max((at for at in stops if (load.at or 0.0) <= at <= (ended.at or 0.0)), default=None)


def _last_movement(load: LoadBegun, readings: Sequence[Reading]) -> float:
    last = readings[0].at
    for one, two in pairwise(readings):
        if _bytes(load, two) > _bytes(load, one):
            last = two.at
    return last


def _edges(story: Story, line: Track) -> list[float]:
    """Where on the time line an edge was commanded; those less than a window after another belong to it."""
    times = [edge.commanded_at for cut in story.cut_records if cut.executed for edge in (cut.off, cut.on)]
    places = sorted(line.at(at) for at in times if at is not None and line.times[0] <= at <= line.times[-1])
    edges: list[float] = []
    for place in places:
        if not edges or place - edges[-1] >= WINDOW:
            edges.append(place)
    # What begins too near the end for a window cannot be judged apart: it belongs to the edge before.
    while len(edges) > 1 and line.end - edges[-1] < WINDOW:
        edges.pop()
    return edges


def _regained(line: Track, edge: float, later: Sequence[float], wanted: float) -> float | None:
    """Start of the first window at pace after ``edge`` from which on the mean is at pace too."""
    starts = [edge, *(place for place in line.clock if place > edge)]
    for start in starts:
        if start + WINDOW > line.end + 1e-9:
            return None
        stop = next((place for place in later if place >= start + WINDOW), line.end)
        if line.rate(start, min(start + WINDOW, line.end)) >= wanted and line.rate(start, stop) >= wanted:
            return start
    return None


def _rate(bps: float) -> str:
    return f"{bps / 1e6:.1f} MB/s" if bps >= 1e5 else f"{bps:.0f} B/s"
