"""A load on several disks at once, and what it wrote read back."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from plugpull.dut.link import Message
from plugpull.dut.stage import Stage
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.load.patterns import Pattern, fill_arguments, load_arguments, span_of, verify_arguments
from plugpull.load.runner import FioRunner, Job

START_DEADLINE = 60.0
"""Seconds until every disk must have moved its first bytes."""
BASELINE_SECONDS = 1.1
SAMPLE_INTERVAL = 0.1
"""Seconds between two of the agent's samples (``ScenarioRig.begin`` asks for them)."""
REGAIN_WITHIN = 6.0
"""A little more than the 5 s that ``kept_pace`` grants by default, so that a disk that is still slow then is judged."""
PACE_WINDOW = 1.0
PACE_RATIO = 0.8
"""Rather stricter than the check's own limit: ending the watch early must not end it on a disk that is only nearly
back."""


class Load:
    """A load on several disks. Use it as a context manager: it is ended, and what it wrote is verified, on the way
    out."""

    def __init__(self, stage: Stage, disks: Iterable[str], pattern: Pattern, *, mounted: bool = False) -> None:
        self._stage = stage
        self._disks = tuple(disks)
        self.pattern = pattern
        self._mounted = mounted
        self._fio = FioRunner(stage)
        self._jobs: dict[str, Job] = {}
        self._mark = 0
        self._over = False
        self._baseline: dict[str, float] = {}

    @property
    def disks(self) -> tuple[str, ...]:
        return self._disks

    def job(self, disk: str) -> Job | None:
        return self._jobs.get(disk)

    def moved_since(self) -> int:
        """Position in the history from which the load's own bytes count."""
        return self._mark

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._end(verify=False)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(verify=kind is None)

    def _begin(self) -> None:
        if self.pattern.mode in ("read", "idle") and not self._mounted:
            self._fill()
        self._mark = self._stage.recorder.mark()
        if self.pattern.mode == "idle":
            return
        self._stage.phase("load", f"{self.pattern.name} on {len(self._disks)} disks")
        for disk in self._disks:
            span = span_of(self._stage.disk(disk), self.pattern)
            arguments = load_arguments(self.pattern, span, in_file=self._mounted)
            job = self._fio.start(disk, arguments, span, kind="load", mounted=self._mounted)
            self._jobs[disk] = job
            self._stage.recorder.record(
                ev.LoadBegun(
                    at=self._stage.now(),
                    disk=disk,
                    job=job.name,
                    mode=self.pattern.mode,
                    block=self.pattern.block,
                    depth=self.pattern.depth,
                    span=span,
                    kname=job.kname,
                    argv=("fio", *arguments),
                )
            )

    def _fill(self) -> None:
        """Write the spans once, so that there is something to read that can be told from anything else."""
        self._stage.phase("fill", f"stamping {len(self._disks)} disks")
        jobs = []
        for disk in self._disks:
            span = span_of(self._stage.disk(disk), self.pattern)
            jobs.append(self._fio.start(disk, fill_arguments(self.pattern, span), span, kind="fill"))
        late = self._fio.finish(jobs, START_DEADLINE)
        broken = [job for job in jobs if job in late or job.status != 0]
        if broken:
            job = broken[0]
            raise RigError(
                f"{job.disk} could not be filled before the test: {job.report.message or 'fio did not end in time'}"
            )

    def settle(self, seconds: float = BASELINE_SECONDS) -> None:
        """Wait until every disk of the load moves, then let ``seconds`` of steady load pass to compare with later.

        Raises RigError when a disk does not start.
        """
        if not self._jobs:
            self._stage.pause(seconds)
            return
        self._stage.phase("settle")
        for job in self._jobs.values():
            if not job.ended.is_set():
                self._wait_moving(job)
        begin = self._next_sample()
        self._stage.recorder.record(ev.LoadSettled(at=begin.at, disks=tuple(self._jobs)))
        end = self._watch_steadily(begin, seconds)
        self._baseline = {job.disk: rate_between(begin, end, job.kname) for job in self._jobs.values()}

    def _watch_steadily(self, begin: ev.Sampled, seconds: float) -> ev.Sampled:
        """Until ``seconds`` were covered by samples; time in which the sampler was starved does not count."""
        covered, last, deadline = 0.0, begin, time.monotonic() + START_DEADLINE
        while covered < seconds and time.monotonic() < deadline:
            sample = self._next_sample()
            step = _span(last, sample)
            covered += step if step < 3 * SAMPLE_INTERVAL else 0.0
            last = sample
        return last

    def regain_pace(self, at_least: float = 0.5, within: float = REGAIN_WITHIN) -> None:
        """After a cut: watch until every disk whose load still runs is back at its pace, ``at_least`` seconds long.

        One that does not get there is watched for ``within`` seconds, long enough for the checks to be sure of it. What
        it means is theirs to say.
        """
        self._stage.phase("recover")
        begun = time.monotonic()
        window: deque[ev.Sampled] = deque([self._next_sample()])
        while (passed := time.monotonic() - begun) < within:
            window.append(self._next_sample())
            while len(window) > 2 and _span(window[1], window[-1]) >= PACE_WINDOW:
                window.popleft()
            if (
                passed >= at_least
                and _span(window[0], window[-1]) >= min(PACE_WINDOW, at_least)
                and self._at_pace(window)
            ):
                return

    def _at_pace(self, window: deque[ev.Sampled]) -> bool:
        running = [job for job in self._jobs.values() if not job.ended.is_set()]
        return all(
            rate_between(window[0], window[-1], job.kname) >= PACE_RATIO * self._baseline.get(job.disk, 0.0)
            for job in running
        )

    def _next_sample(self) -> ev.Sampled:
        found = self._stage.wait_for(lambda event: isinstance(event, ev.Sampled), START_DEADLINE)
        if not isinstance(found, ev.Sampled):
            raise RigError(f"the agent sent no sample for {START_DEADLINE:g} s")
        return found

    def _wait_moving(self, job: Job) -> None:
        before: list[int] = []

        def moves(event: ev.Event) -> bool:
            if isinstance(event, ev.Sampled):
                # What was moved before this load, when the disk was filled or identified, does not count.
                before.append(moved_bytes(event, job.kname))
                return before[-1] - before[0] >= self.pattern.block * self.pattern.depth
            return job.ended.is_set()

        found = self._stage.wait_for(moves, START_DEADLINE, since=self._mark)
        if job.ended.is_set() and job.report.errno and not job.asked:
            raise RigError(f"the load on {job.disk} ended before the cut: {job.report.message}")
        if found is None:
            raise RigError(f"{job.disk} moved nothing within {START_DEADLINE:g} s of starting its load")

    # --- the end ------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End all jobs that still run. Each gets its LoadEnded; what cannot be ended gets a ProcessStuck."""
        if self._over:
            return
        self._over = True
        if not self._jobs:
            return
        self._stage.phase("stop")
        running = [job for job in self._jobs.values() if not job.ended.is_set()]
        asked_at = self._stage.now()
        for job in running:
            job.asked_at = asked_at
        stuck = self._fio.stop(running)
        deadline = time.monotonic() + 5
        for job in self._jobs.values():
            if job.name not in stuck:
                # The answer to "stop" and the word of the end come by two roads; the second may be a little later.
                job.ended.wait(max(0.0, deadline - time.monotonic()))
            self._record_end(job, stuck.get(job.name))

    def _record_end(self, job: Job, process: Message | None) -> None:
        at = self._stage.now()
        if process is not None:
            self._stage.recorder.record(
                ev.ProcessStuck(
                    at=at,
                    pid=process["pid"],
                    command=process["command"],
                    state=process["state"],
                    disk=job.disk,
                    stack=tuple(process["stack"]),
                )
            )
        report = job.report
        self._stage.recorder.record(
            ev.LoadEnded(
                at=job.ended_at or at,
                asked_at=job.asked_at if job.asked else None,
                disk=job.disk,
                job=job.name,
                asked=job.asked,
                exit_status=job.status,
                errno=report.errno,
                message=report.message[:300],
                read_bytes=report.read_bytes,
                written_bytes=report.written_bytes,
                stuck=process is not None,
                usr_cpu=report.usr_cpu,
                sys_cpu=report.sys_cpu,
            )
        )

    def _end(self, *, verify: bool) -> None:
        if self._stage.watch.lost:
            return
        try:
            self.stop()
            if verify and not self._mounted:
                self.verify()
        except RigError:
            # On the way out of an error that is already on its way, a second one would hide it.
            if verify:
                raise

    # --- reading back ---------------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Read back what was written on every disk that is attached, and compare each block with its stamp."""
        self._stage.phase("verify", "reading back")
        jobs: list[Job] = []
        for disk in self._disks:
            ranges, why_not = self._ranges(disk)
            if why_not:
                self._stage.recorder.record(ev.Verified(at=self._stage.now(), disk=disk, checked=0, error=why_not))
                continue
            length = sum(size for _, size in ranges)
            jobs.append(self._fio.start(disk, verify_arguments(self.pattern, ranges), length, kind="verify"))
        late = self._fio.finish(jobs, START_DEADLINE * 2)
        for job in jobs:
            self._record_verified(job, job in late)

    def _ranges(self, disk: str) -> tuple[tuple[tuple[int, int], ...], str]:
        """Which (offset, length) ranges must hold what was written, or why that cannot be said."""
        if self._stage.bench.register.attached(disk) is None:
            return (), f"{disk} is not attached"
        span = span_of(self._stage.disk(disk), self.pattern)
        job = self._jobs.get(disk)
        if self.pattern.mode != "write" or job is None:
            return ((0, span),), ""
        if not job.report.complete:
            return (), f"fio left no report of what it wrote to {disk}"
        return certain_ranges(job.report.written_bytes, span, self.pattern, whole=job.asked)

    def _record_verified(self, job: Job, late: bool) -> None:
        report = job.report
        error = ""
        if late:
            error = f"reading back was not done after {START_DEADLINE * 2:g} s"
        elif not report.bad and (
            report.errno or not report.complete or job.status != 0 or report.read_bytes != job.span
        ):
            error = (
                report.message or f"fio ended with status {job.status} after {report.read_bytes} of {job.span} bytes"
            )
        self._stage.recorder.record(
            ev.Verified(
                at=self._stage.now(),
                disk=job.disk,
                checked=report.read_bytes,
                bad=report.bad,
                error=error,
                method="fio verify=crc32c, read back after the load",
            )
        )


def moved_bytes(sample: ev.Sampled, kname: str) -> int:
    """Bytes read and written by a disk since it was attached."""
    counters = sample.disks.get(kname)
    return counters[1] + counters[2] if counters else 0


def _span(begin: ev.Sampled, end: ev.Sampled) -> float:
    return (end.at or 0.0) - (begin.at or 0.0)


def rate_between(begin: ev.Sampled, end: ev.Sampled, kname: str) -> float:
    """Bytes per second between two samples; 0 when no time passed."""
    seconds = _span(begin, end)
    return (moved_bytes(end, kname) - moved_bytes(begin, kname)) / seconds if seconds > 0 else 0.0


def certain_ranges(
    written: int, span: int, pattern: Pattern, *, whole: bool
) -> tuple[tuple[tuple[int, int], ...], str]:
    """Where a sequential load that wraps around ``span`` must have left good blocks after ``written`` bytes.

    A load that was asked to end has completed what it submitted (``whole``). One that was cut off had up to ``depth``
    blocks in flight ahead of its position, and completions out of order can leave some behind it. Any part of these may
    have reached the disk: they prove nothing and are left out.
    """
    block = pattern.block
    if whole:
        extent = min(written - written % block, span)
        return (((0, extent),), "") if extent else ((), "nothing was written")
    ahead, behind = pattern.depth * block, 2 * pattern.depth * block
    position = written % span
    # What is in flight ahead of the position may be at the beginning again, in the first pass too.
    ranges = [(max(0, position + ahead - span), position - behind)]
    if written >= span:
        ranges.append((position + ahead, span - max(0, behind - position)))
    blocks = [(-(-begin // block) * block, end // block * block) for begin, end in ranges]
    certain = tuple((begin, end - begin) for begin, end in blocks if end > begin)
    return (certain, "") if certain else ((), "too little was written before the cut to be certain of any block")
