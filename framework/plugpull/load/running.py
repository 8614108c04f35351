"""Jobs that run on several disks at once: waits until they are steady, watches them, ends them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from plugpull.checks.base import Named
from plugpull.checks.survivors.baseline import WINDOW, baseline
from plugpull.checks.survivors.track import track
from plugpull.dut.conversation.link import Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.faults.triggers import Moved, Trigger
from plugpull.history import events as ev
from plugpull.history.counters import NOTHING, rates_between
from plugpull.load.runner import Job
from plugpull.rig.quantities import parse_size
from plugpull.targets.target import Target

START_DEADLINE = 60.0
"""Seconds in which every disk must move its first bytes."""
BASELINE_SECONDS = 2.1
"""Seconds of load before the first cut: four of the half-second windows of a baseline. With fewer windows, their spread
does not show by how much a later rate may differ by chance."""
LONGEST_BASELINE = 4.0
"""Additional seconds of baseline for a rate that varies, as on a slow host."""
KNOWN = 0.05
"""The first cut may be made when a baseline's standard error is below this share of it."""
SAMPLE_INTERVAL = 0.1
"""Seconds between two samples of the agent (``ScenarioRig.begin`` sets them)."""
REGAIN_WITHIN = 6.0
"""Seconds: 1.5 s that ``kept_pace`` grants by default, the window of 1 s that must then be at pace, and the last 2 s,
which are judged by themselves. So a disk that is still slow then is judged."""
ENDED_WITHIN = 30.0
"""Seconds until a load on something that is gone must have had an error."""
PACE_WINDOW = 1.0
"""Seconds over which ``kept_pace`` wants a rate after the last edge. A disk that stood still for a moment after it must
have had one whole such time since then."""
PACE_RATIO = 0.85
"""The check's own limit: the watch must not end early for a disk that has almost recovered."""


class RunningJobs(ABC):
    """One job on each of several disks. As a context manager, it ends the jobs and verifies their data on exit."""

    baseline_seconds = BASELINE_SECONDS

    def __init__(self, context: ScenarioContext, targets: Iterable[Target]) -> None:
        self._context = context
        self._targets = tuple(targets)
        self._jobs: dict[str, Job] = {}
        self._mark = 0
        self._over = False
        self._baseline: dict[str, float] = {}
        self._settled = False
        context.busy.append(self._runs)
        context.timed.append(lambda: self._settled and self._runs())

    def _runs(self) -> bool:
        return any(not job.ended.is_set() for job in self._jobs.values())

    @abstractmethod
    def _begin(self) -> None:
        """Start a job on each disk. Raises RigError."""

    @abstractmethod
    def _stop_jobs(self, running: Iterable[Job]) -> dict[str, Message]:
        """End jobs. Returns, by name, what each job that could not be ended is stuck in."""

    @abstractmethod
    def verify(self) -> None:
        """Read back the written data of every attached disk, and record the result."""

    @abstractmethod
    def _first_bytes(self, disk: str) -> int:
        """Bytes that a disk must have moved to count as running."""

    @property
    def disks(self) -> tuple[str, ...]:
        """Names of the targets, by which the history knows them."""
        return tuple(target.name for target in self._targets)

    def moved(self, disk: Named, amount: int | str) -> Trigger:
        """A trigger: when this much was read or written on ``disk`` since the load began. A load of stamped writes
        begins when its span is filled.

        ``amount`` is bytes, or text such as "32 MiB".

            with rig.load(rig.disks, sequential_write) as load:
                load.settle()
                with rig.cut(victim.cable, when=load.moved(victim, "32 MiB")):
                    rig.wait(seconds=2)
        """
        return Moved(disk.name, parse_size(amount))

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException as error:
            self._context.leaving(error)
            self._end(verify=False)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.leaving(error)
        self._end(verify=kind is None)

    def settle(self, seconds: float | None = None) -> None:
        """Wait until every disk of the load moves, then wait for ``seconds`` of steady load as the baseline.

        The default is ``baseline_seconds``. Raises ``RigError`` if a disk does not start.
        """
        seconds = self.baseline_seconds if seconds is None else seconds
        self._settled = True
        if not self._jobs:
            self._context.pause(seconds)
            return
        begin = self._wait_all_moving()
        end = self._watch_steadily(begin, seconds)
        self._baseline = {job.disk: rate_between(begin, end, job.kname) for job in self._jobs.values()}

    def run_for(self, seconds: float) -> None:
        """Wait until every disk of the load moves, then let it run for ``seconds``. There is no baseline: for scenarios
        that judge no pace. Raises ``RigError`` if a disk does not start."""
        if self._jobs:
            self._wait_all_moving()
        self._context.pause(seconds)

    def _wait_all_moving(self) -> ev.Sampled:
        """The first sample in which every disk has moved."""
        self._context.phase("settle")
        for job in self._jobs.values():
            if not job.ended.is_set():
                self._wait_moving(job)
        begin = self._next_sample()
        self._context.recorder.record(ev.LoadSettled(at=begin.at, disks=tuple(self._jobs)))
        return begin

    def _watch_steadily(self, begin: ev.Sampled, seconds: float) -> ev.Sampled:
        """Wait until samples cover ``seconds`` and the rates are known well enough, but at most ``LONGEST_BASELINE``
        longer. Time in which the sampler was starved does not count."""
        covered, samples, deadline = 0.0, [begin], time.monotonic() + START_DEADLINE
        while time.monotonic() < deadline:
            sample = self._next_sample()
            step = _span(samples[-1], sample)
            covered += step if step < 3 * SAMPLE_INTERVAL else 0.0
            samples.append(sample)
            if covered >= seconds + LONGEST_BASELINE or (covered >= seconds and self._known(samples)):
                break
        return samples[-1]

    def _known(self, samples: Sequence[ev.Sampled]) -> bool:
        """True if the mean rate of each running disk is known to within ``KNOWN``."""
        for job in self._jobs.values():
            if job.ended.is_set():
                continue
            line = track([(one.at or 0.0, float(moved_bytes(one, job.kname))) for one in samples])
            base = baseline(line, line.end, 1)
            if base is None or not base.stationary or base.noise(base.windows * WINDOW) > KNOWN:
                return False
        return True

    def regain_pace(self, at_least: float = PACE_WINDOW, within: float | None = None) -> None:
        """Watch after a cut until every disk with a running load has been back at its pace for ``at_least`` seconds.

        A disk that does not get there is watched for ``within`` seconds, by default long enough for the checks to judge
        it.
        """
        within = self._long_enough() if within is None else within
        self._context.phase("recover")
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

    def _long_enough(self) -> float:
        """Seconds to watch: longer if the rig file grants a disk more time."""
        limits = (self._context.disk(disk).limits for target in self._targets for disk in target.disks)
        granted = (own.recover_within for own in limits if own is not None and own.recover_within is not None)
        return REGAIN_WITHIN + max(granted, default=0.0)

    def _at_pace(self, window: deque[ev.Sampled]) -> bool:
        running = [job for job in self._jobs.values() if not job.ended.is_set()]
        return all(
            rate_between(window[0], window[-1], job.kname) >= PACE_RATIO * self._baseline.get(job.disk, 0.0)
            for job in running
        )

    def _next_sample(self) -> ev.Sampled:
        found = self._context.wait_for(lambda event: isinstance(event, ev.Sampled), START_DEADLINE)
        if not isinstance(found, ev.Sampled):
            raise RigError(f"the agent sent no sample for {START_DEADLINE:g} s")
        return found

    def _wait_moving(self, job: Job) -> None:
        before: list[int] = []

        def moves(event: ev.Event) -> bool:
            if isinstance(event, ev.Sampled):
                # Bytes moved before this load, when the disk was filled or identified, do not count.
                before.append(moved_bytes(event, job.kname))
                return before[-1] - before[0] >= self._first_bytes(job.disk)
            return job.ended.is_set()

        found = self._context.wait_for(moves, START_DEADLINE, since=self._mark)
        if job.ended.is_set() and job.report.errno and not job.asked:
            raise RigError(f"the load on {job.disk} ended before the cut: {job.report.message}")
        if found is None:
            raise RigError(f"{job.disk} moved nothing within {START_DEADLINE:g} s of starting its load")

    # --- the end ------------------------------------------------------------------------------------------------

    def wait_ended(self, within: float = ENDED_WITHIN) -> bool:
        """Wait until it has ended by itself on every disk, as it does at an error. False if it does not."""

        def ended(event: ev.Event) -> bool:
            return all(job.ended.is_set() for job in self._jobs.values())

        return self._context.wait_for(ended, within, since=0) is not None

    def stop(self) -> None:
        """End all jobs that still run. Each gets a LoadEnded; one that cannot be ended gets a ProcessStuck."""
        if self._over:
            return
        self._over = True
        if not self._jobs:
            return
        self._context.phase("stop")
        running = [job for job in self._jobs.values() if not job.ended.is_set()]
        asked_at = self._context.now()
        for job in running:
            job.asked_at = asked_at
        stuck = self._stop_jobs(running)
        deadline = time.monotonic() + 5
        for job in self._jobs.values():
            if job.name not in stuck:
                # The answer to "stop" and the message of the end arrive separately, the second perhaps a little later.
                job.ended.wait(max(0.0, deadline - time.monotonic()))
            self._record_end(job, stuck.get(job.name))

    def _record_end(self, job: Job, process: Message | None) -> None:
        at = self._context.now()
        if process is not None:
            self._context.recorder.record(
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
        self._context.recorder.record(
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
                longest=report.longest,
            )
        )

    def _end(self, *, verify: bool) -> None:
        if self._context.listener.lost:
            return
        try:
            self.stop()
            if verify:
                with self._context.untimed():
                    self.verify()
        except RigError:
            # During the handling of an error, a second one would hide it.
            if verify:
                raise


def moved_bytes(sample: ev.Sampled, kname: str) -> int:
    """Bytes read and written by a disk since it was attached."""
    return sample.disks.get(kname, NOTHING).moved


def _span(begin: ev.Sampled, end: ev.Sampled) -> float:
    return (end.at or 0.0) - (begin.at or 0.0)


def rate_between(begin: ev.Sampled, end: ev.Sampled, kname: str) -> float:
    """Bytes per second between two samples; 0 when no time passed."""
    seconds = _span(begin, end)
    if seconds <= 0:
        return 0.0
    return rates_between(begin.disks.get(kname, NOTHING), end.disks.get(kname, NOTHING), seconds).total
