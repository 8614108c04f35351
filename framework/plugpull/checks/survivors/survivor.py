"""The evidence on one survivor: its load, its counters, and the judged time."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice, pairwise
from operator import lt
from typing import Any

from plugpull.checks.accusation import Accusation
from plugpull.checks.data.opinions import every_round
from plugpull.checks.record.load_ends import endless
from plugpull.checks.record.still_there import still_there
from plugpull.checks.stalls import disturbances
from plugpull.checks.starved import GAP, awake, granted, starved
from plugpull.checks.survivors.track import TimeLine, Track, interpolate, on_line, track
from plugpull.errors import RigError
from plugpull.history.events import LedgerBegun, LoadBegun, LoadEnded, LoadSettled, Phase
from plugpull.history.reader import Story
from plugpull.history.readings import Readings

STOP_WITHIN = 5.0
"""Seconds that fio may take to end after it was asked. It ends when its requests in flight complete (at most 1.3 s in
259 cases on virtual benches), and gets a second signal after this time."""
LONGEST = 5.0
"""Seconds that a single request may take. If other requests go on meanwhile, the rate does not show it."""
BUSY = 0.9
"""Share of the DUT's CPU time above which a load is bound by the CPUs, not by its disk."""


class Unjudgeable(RigError):
    """Evidence for one survivor is missing. The message is the sentence of the doubt."""


@dataclass(frozen=True)
class Watched:
    """One survivor under its load at the time of the first cut.

    Times are DUT seconds: ``settled`` is when its load ran steadily, ``cut`` the first edge, ``end`` when its load was
    to end. ``line`` is its counter from ``settled`` to ``end``.
    """

    disk: str
    load: LoadBegun
    settled: float
    cut: float
    end: float
    line: Track
    findings: tuple[Accusation, ...] = ()
    unknowns: tuple[str, ...] = ()


def watched(story: Story, disk: str) -> Watched:
    """The evidence on ``disk``. Raises ``Unjudgeable`` if it is not enough for a judgement."""
    cut, load = _first_cut(story, disk)
    settled = _settled(story, load, cut)
    readings = _attachment_readings(story, disk, cut)
    fate = _Fate(disk)
    end = fate.end(story, load, readings)
    times, counter = readings.at, moved_column(load, readings)
    inside = slice(bisect_right(times, settled), bisect_right(times, end))
    if inside.start >= inside.stop or times[inside.stop - 1] <= cut:
        raise Unjudgeable(f"there are no samples of {disk} under load after the first cut")
    ats, first, counts = array("d", (settled,)), interpolate(times, counter, settled), counter[inside]
    ats.extend(times[inside])
    shared = story.once(_TimeLines).of(ats)
    line = (
        on_line(shared, first, counts)
        if shared is not None
        else track(list(zip(ats, (first, *counts), strict=True)), starved(story))
    )
    return Watched(disk, load, settled, cut, end, line, tuple(fate.findings), tuple(fate.unknowns))


class _TimeLines:
    """The time lines of a story's survivors. Those that were watched for the same time share one."""

    def __init__(self, story: Story) -> None:
        self._starved = starved(story)
        self._lines: dict[bytes, TimeLine | None] = {}

    def of(self, times: array[float]) -> TimeLine | None:
        """The time line of these times; ``None`` if one is not later than the one before it."""
        key = sha256(times).digest()
        if key not in self._lines:
            rises = all(map(lt, times, islice(times, 1, None)))
            self._lines[key] = TimeLine(times, self._starved) if rises else None
        return self._lines[key]


def span(story: Story, disk: str) -> tuple[float, float] | None:
    """The (begin, end) of the judged time of ``disk``, DUT seconds; ``None`` if it cannot be judged."""
    try:
        cut, load = _first_cut(story, disk)
        settled = _settled(story, load, cut)
    except Unjudgeable:
        return None
    ended = story.load_end(load)
    asked = None if ended is None else asked_at(story, load, ended)
    end = asked if asked is not None else None if ended is None else ended.at
    return settled, max(cut, cut if end is None else end)


def moved_column(load: LoadBegun, readings: Readings) -> Sequence[int]:
    """The bytes that count, of each reading: read, written or both, as the load does."""
    reads, writes = "read" in load.mode or "rw" in load.mode, "write" in load.mode or "rw" in load.mode
    columns = [readings.column(number) for number, counts in enumerate((reads, writes)) if counts]
    return columns[0] if len(columns) == 1 else tuple(map(sum, zip(*columns, strict=True))) or (0,) * len(readings)


def busy_cpu(story: Story, begin: float, end: float) -> float | None:
    """Share of the DUT's CPU time that was used in [begin, end]; ``None`` if it was not sampled twice."""
    inside = [one for one in story.cpu_times if begin - 1.0 <= one[0] <= end + 1.0]
    if len(inside) < 2 or inside[-1][2] <= inside[0][2]:
        return None
    return (inside[-1][1] - inside[0][1]) / (inside[-1][2] - inside[0][2])


def declared_rate(story: Story, load: LoadBegun) -> float | None:
    """The rate that the rig file declares for the disk, bytes per second; ``None`` if its load cannot reach it.

    Hubs and controllers with a rate share it among all disks below. Small blocks and flushes are slower than any disk,
    so only loads without them are compared. On a real bus, the disks under load share the rate.
    """
    if load.block * load.depth < 64 << 10 or not (load.argv or _unflushed(story, load)):
        return None
    disks = {one.get("name"): one for one in story.rig.get("disk", ())}
    own = disks.get(load.disk, {}).get("rate")
    if not own:
        return None
    rate = float(own)
    if (story.rig.get("dut") or {}).get("kind") != "virtual":
        return rate / len({one.disk for one in story.of(LoadBegun)})
    for thing, below in _above(story.rig, load.disk):
        if thing.get("rate"):
            rate = min(rate, float(thing["rate"]) / below)
    return rate


def own_rate(story: Story, disk: str) -> float | None:
    """The rate that the rig file declares for a disk, bytes per second; ``None`` if it has none."""
    rate = next((one.get("rate") for one in story.rig.get("disk", ()) if one.get("name") == disk), None)
    return float(rate) if isinstance(rate, int | float) and rate > 0 else None


def _unflushed(story: Story, load: LoadBegun) -> bool:
    """Whether the load writes stamps, and neither flushes nor forces them to the medium."""
    ledgers = [one for one in story.of(LedgerBegun) if (one.disk, one.job) == (load.disk, load.job)]
    return bool(ledgers) and not any(one.flush_writes or one.flush_ms or one.fua for one in ledgers)


def _above(rig: dict[str, Any], disk: str) -> list[tuple[dict[str, Any], int]]:
    """The hubs and the controller above ``disk``, each with the number of disks below it."""
    things = {one.get("name"): one for kind in ("hub", "controller") for one in rig.get(kind, ())}

    def chain(at: object) -> list[str]:
        names: list[str] = []
        while isinstance(at, str) and len(names) <= len(things):
            name = at.rpartition(".")[0]
            names.append(name)
            at = things.get(name, {}).get("at")
        return names

    chains = {one.get("name"): chain(one.get("at")) for one in rig.get("disk", ())}
    return [
        (things[name], sum(name in names for names in chains.values()))
        for name in chains.get(disk, [])
        if name in things
    ]


def asked_at(story: Story, load: LoadBegun, ended: LoadEnded) -> float | None:
    """When the load was asked to end: from its end event, or else the beginning of the phase ``stop``."""
    if not ended.asked or ended.asked_at is not None:
        return ended.asked_at
    return _stop_phase(story, load, ended.at)


def _stop_phase(story: Story, load: LoadBegun, before: float | None) -> float | None:
    stops = [phase.at for phase in story.of(Phase) if phase.name == "stop" and phase.at is not None]
    # The last one: phases before it ended other loads.
    latest = float("inf") if before is None else before
    return max((at for at in stops if (load.at or 0.0) <= at <= latest), default=None)


@dataclass
class _Fate:
    """How the load of a survivor ended, and the findings and doubts from that."""

    disk: str
    findings: list[Accusation] = field(default_factory=list)
    unknowns: list[str] = field(default_factory=list)

    def end(self, story: Story, load: LoadBegun, readings: Readings) -> float:
        """DUT time up to which ``load`` should have moved bytes."""
        last, ended = readings[-1].at, story.load_end(load)
        if story.evidence_until is not None and (ended is None or ended.at is None or story.evidence_until < ended.at):
            until = story.evidence_until
            self.unknowns.append(f"the pace of {self.disk} is known only until {until:.2f} s: the DUT fell silent")
        gone_at = _gone_at(story, self.disk, readings)
        if gone_at is not None and (ended is None or ended.at is None or gone_at <= ended.at):
            self._accuse(f"{self.disk} was removed though it is outside the blast radius", gone_at)
            return min(last, gone_at)
        if ended is None or ended.at is None:
            # Without its end, it is not known when it was to stop, so time after the last byte does not count.
            self.unknowns.append(f"how the load on {self.disk} ended was not recorded")
            stop = _stop_phase(story, load, None)
            return min(last, _last_movement(load, readings), last if stop is None else stop)
        self._slowest(story, ended, readings[0].at, ended.at)
        if not ended.asked:
            return min(last, self._by_itself(load, readings, ended, ended.at))
        return min(last, self._asked(story, load, readings, ended, ended.at))

    def _slowest(self, story: Story, ended: LoadEnded, begin: float, end: float) -> None:
        """Accuse the disk of a request that hung while others went on."""
        longest = ended.longest if ended.longest is not None else _slowest_write(story, ended)
        if longest is None or ended.errno:
            return
        took = longest * granted(story, begin, end) ** 2
        if took > LONGEST:
            said = f"a request of {self.disk} took {longest:.2f} s (limit {LONGEST:g} s)"
            self._accuse(said, end)

    def _by_itself(self, load: LoadBegun, readings: Readings, ended: LoadEnded, at: float) -> float:
        if ended.errno:
            said = ended.message or f"errno {ended.errno}"
            self._accuse(f"the load on {self.disk} ended with an I/O error: {said}", at)
        elif endless(load) or ended.exit_status:
            status = "at an unknown status" if ended.exit_status is None else f"with exit status {ended.exit_status}"
            self.unknowns.append(f"the load on {self.disk} ended by itself {status}, before it was asked to")
        return min(at, _last_movement(load, readings.between(float("-inf"), at)))

    def _asked(self, story: Story, load: LoadBegun, readings: Readings, ended: LoadEnded, at: float) -> float:
        if ended.errno:
            said = ended.message or f"errno {ended.errno}"
            self._accuse(f"the load on {self.disk} ended with an I/O error: {said}", at)
        asked = asked_at(story, load, ended)
        if asked is not None:
            missing = awake(story, readings[-1].at, asked)
            if missing > GAP * story.sample_interval:
                until = f"the samples of {self.disk} end at {readings[-1].at:.2f} s"
                self.unknowns.append(f"{until}, {missing:.2f} s before its load was to end")
            took = awake(story, asked, at)
            if ended.stuck or took > STOP_WITHIN:
                what = f"its load could not be ended in {took:.2f} s" if ended.stuck else f"its load took {took:.2f} s"
                self._accuse(f"{self.disk} held up its requests: {what} after it was asked to end", at)
            return asked
        # It is not on record when it was asked to end, so a short quiet time before its end does not count.
        trailing = _last_movement(load, readings.between(float("-inf"), at))
        if not ended.errno and at - trailing > STOP_WITHIN / 2:
            quiet = f"{at - trailing:.2f} s"
            self.unknowns.append(
                f"{self.disk} did not move for {quiet} before its load ended, asked at an unknown time"
            )
        return trailing

    def _accuse(self, summary: str, at: float) -> None:
        self.findings.append(Accusation(subject=self.disk, summary=summary, at=at))


def _first_cut(story: Story, disk: str) -> tuple[float, LoadBegun]:
    """The first cut made while ``disk`` had a load, and that load."""
    begins = [cut.off.commanded_at for cut in story.cut_records if cut.off.commanded_at is not None and cut.executed]
    begins += disturbances(story, disk)
    if not begins:
        raise Unjudgeable("no cut was made, so there is nothing that the survivors could have kept pace through")
    for begin in sorted(begins):
        load = story.load_at(disk, begin)
        if load is not None:
            return begin, load
    raise Unjudgeable(f"{disk} had no load when a cut was made, so its pace cannot be judged")


def _settled(story: Story, load: LoadBegun, first_cut: float) -> float:
    settled = [event.at for event in story.of(LoadSettled) if load.disk in event.disks and event.at is not None]
    settled = [at for at in settled if (load.at or 0.0) <= at <= first_cut]
    if not settled:
        raise Unjudgeable(f"the load on {load.disk} had not settled before the first cut, so it has no baseline")
    return settled[0]


def _attachment_readings(story: Story, disk: str, at: float) -> Readings:
    """The readings of the attachment at ``at``. Counters start again with each attachment."""
    attachment = story.attachment_at(disk, at)
    if attachment is None:
        raise Unjudgeable(f"{disk} was not there when the first cut was made")
    key = (attachment.kname, attachment.diskseq)
    readings = story.readings(disk).of(key)
    if len(readings) < 2:
        raise Unjudgeable(f"there are no samples of {disk}")
    if readings.only_grow:
        return readings
    for one, two in pairwise(readings):
        if two.read < one.read or two.written < one.written:
            back = f"the counters of {disk} went back at {two.at:.2f} s"
            raise Unjudgeable(f"{back} although no other disk was announced: a reset of it, or another disk's samples")
    return readings


def _slowest_write(story: Story, ended: LoadEnded) -> float | None:
    """Seconds that the slowest write of a stamped load took, by its ledger; ``None`` for other loads."""
    rounds = (one for one in every_round(story) if (one.round.disk, one.round.begun.job) == (ended.disk, ended.job))
    return next((one.slowest for one in rounds), None)


def _gone_at(story: Story, disk: str, readings: Readings) -> float | None:
    attachment = story.attachment_at(disk, readings[0].at) or story.attachments(disk)[0]
    gone_at = story.detached_at(attachment)
    own_cuts = any(disk in cut.armed.victims for cut in story.cut_records)
    if gone_at is not None and still_there(story, attachment.kname, story.number_of(attachment), gone_at):
        return None
    return None if own_cuts else gone_at


def _last_movement(load: LoadBegun, readings: Readings) -> float:
    times, moved = readings.at, moved_column(load, readings)
    later = (place for place in range(len(moved) - 1, 0, -1) if moved[place] > moved[place - 1])
    return times[next(later, 0)] if len(times) else 0.0
