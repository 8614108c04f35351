"""Loads that run for a fixed time, to measure their rates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from plugpull.dut.conversation.link import Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.counters import NOTHING
from plugpull.load.designs import Condition, Design, interleaved
from plugpull.load.fio_report import FioReport
from plugpull.load.patterns import Pattern, measuring_arguments
from plugpull.load.runner import FioRunner, Job, Work
from plugpull.load.running import START_DEADLINE, RunningJobs
from plugpull.load.tasks import FioTask, length_of_task
from plugpull.streams import ORDER
from plugpull.studies.measured import to_repeat
from plugpull.targets.target import Target

RAMP = 0.4
"""Seconds after the first bytes of every disk that are not measured: a throttle grants a burst of 0.1 s, and caches and
queues fill."""
SECONDS = 1.5
"""The length of a measurement on a virtual bench, whose rates are limited and steady."""
REAL_SECONDS = 5.0
"""The length of a measurement on a real one."""
OVERHEAD = 0.8
"""Seconds that it takes to begin and end a measurement."""
STARTS = 1.2
"""Seconds that the start of fio takes on an emulated guest, whose processors it keeps busy: 18 measurements of one disk
took 2.5 s longer than what was measured."""
MORE = 0.2
"""Seconds for each further disk that the same fio works on: it must be proved to be the right one. With nine disks it
took 1.0 s longer than with one, and 4.7 s on a machine with four times as much work as processors."""
REAL_STARTS, REAL_MORE = 0.2, 0.1
"""The same on a real DUT."""
REPEATS = 5
"""Rounds, unless the command line says otherwise."""
REQUESTS = 32
"""Requests per second at least, if the rate of a disk is known. The counters count whole requests."""
WRITES = ("write", "randwrite")
PARTITION_SCAN = 256 << 10
"""More bytes than the kernel reads when a disk was opened for writing: 128 KiB on an emulated one."""
AGAIN = 0.5
"""At most so many measurements are repeated, as a share of the planned ones. Otherwise the host is too busy."""
BLOCKS = (64 << 10, 128 << 10)
"""The smallest and the largest request that is chosen for that. Smaller ones would keep an emulated guest busy."""


LONG = 10
"""A long measurement takes so many times as long on a virtual bench, and ``REAL_LONG`` times on a real one."""
REAL_LONG = 24


def length_of(condition: Condition[object], *, virtual: bool) -> float:
    """Seconds of one measurement, without what comes before and after it."""
    if virtual:
        return SECONDS * (LONG if condition.long else 1)
    return REAL_SECONDS * (REAL_LONG if condition.long else 1)


def expected_seconds(design: Iterable[Condition[object] | FioTask[object]], repeats: int, *, virtual: bool) -> float:
    """About how long it takes to measure a design of conditions or of tasks."""
    each = (RAMP + OVERHEAD + _starting(one, virtual=virtual) + _length(one, virtual=virtual) for one in design)
    return repeats * sum(each)


def _starting(one: Condition[object] | FioTask[object], *, virtual: bool) -> float:
    """Seconds to start what works on these disks: one fio for all disks of a condition, and one for each of a task."""
    first, more = (STARTS, MORE) if virtual else (REAL_STARTS, REAL_MORE)
    return len(one.disks) * first if isinstance(one, FioTask) else first + more * (len(one.disks) - 1)


def _length(one: Condition[object] | FioTask[object], *, virtual: bool) -> float:
    if isinstance(one, FioTask):
        return length_of_task(one, virtual=virtual)
    return length_of(one, virtual=virtual)


def block_for(targets: Iterable[Target]) -> int:
    """Bytes of one request: the same for all targets, and small enough for the slowest one."""
    rates = [target.rate for target in targets if target.rate is not None]
    smallest, block = BLOCKS
    while block > smallest and rates and block * REQUESTS > min(rates):
        block //= 2
    return block


class TimedLoad(RunningJobs):
    """fio on one or several disks, without stamps and without reading back. What it writes cannot be verified."""

    def __init__(
        self, context: ScenarioContext, targets: Iterable[Target], pattern: Pattern, *, together: bool = False
    ) -> None:
        super().__init__(context, targets)
        self._pattern = pattern
        self._together = together and len(self._targets) > 1
        self._fio = FioRunner(context)

    def _begin(self) -> None:
        self._mark = self._context.recorder.mark()
        works = [self._work(target) for target in self._targets]
        if self._together:
            jobs = self._fio.start_together(works, kind="measure")
            for job, work in zip(jobs, works, strict=True):
                self._begun(job, work)
        else:
            for work in works:
                self._begun(self._fio.start(*work, kind="measure"), work)

    def _work(self, target: Target) -> Work:
        span = target.size - target.size % self._pattern.block
        name = target.name if self._together else ""
        return Work(target, measuring_arguments(self._pattern, span, in_file=target.in_file, together=name), span)

    def _begun(self, job: Job, work: Work) -> None:
        self._jobs[job.disk] = job
        self._context.recorder.record(
            ev.LoadBegun(
                at=self._context.now(),
                disk=job.disk,
                job=job.name,
                mode=_mode(self._pattern),
                block=self._pattern.block,
                depth=self._pattern.depth,
                span=work.span,
                kname=job.kname,
                argv=("fio", *work.arguments),
            )
        )

    def watch(self, seconds: float) -> tuple[float, float]:
        """Wait until all disks move, and then for ``RAMP`` and ``seconds``. Returns the DUT times of the first and the
        last sample of these seconds. Raises RigError."""
        started = max(self._wait_transfer(job) for job in self._jobs.values())
        begin = self._sample_after(started + RAMP)
        return begin, self._sample_after(begin + seconds)

    def _wait_transfer(self, job: Job) -> float:
        """Wait until the disk transfers in the direction of the load, and return when it did, DUT seconds.

        Opening a disk for writing makes the kernel read its partition table, long before an emulated guest's fio works.
        """
        enough = 2 * self._pattern.block + (0 if self._pattern.mode in WRITES else PARTITION_SCAN)
        before: list[int] = []

        def transfers(event: ev.Event) -> bool:
            if isinstance(event, ev.Sampled):
                counters = event.disks.get(job.kname, NOTHING)
                done = counters.written_bytes if self._pattern.mode in WRITES else counters.read_bytes
                before.append(done)
                return done - before[0] >= enough
            return job.ended.is_set()

        found = self._context.wait_for(transfers, START_DEADLINE, since=self._mark)
        if job.ended.is_set() and not job.asked:
            failed = next((one for one in self._jobs.values() if one.report.errno), job)
            raise RigError(f"the load on {failed.disk} ended before it was measured: {failed.report.message}")
        if found is None:
            raise RigError(f"{job.disk} moved nothing within {START_DEADLINE:g} s of starting its load")
        return found.at or 0.0

    def _sample_after(self, at: float) -> float:
        while True:
            sample = self._next_sample()
            if sample.at is not None and sample.at >= at:
                return sample.at

    def verify(self) -> None:
        """Nothing: the data is not stamped."""

    def _first_bytes(self, disk: str) -> int:
        return self._pattern.block

    def _stop_jobs(self, running: Iterable[Job]) -> dict[str, Message]:
        stuck = self._fio.stop(running)
        return self._holding(stuck) if self._together else stuck

    def _holding(self, stuck: dict[str, Message]) -> dict[str, Message]:
        """Of the jobs of a process that could not be ended: those whose disk has requests in flight, or all if none
        has. The others only wait for it, and what fio moved on them is not known."""
        samples = (
            event for event in reversed(self._context.recorder.since(self._mark)) if isinstance(event, ev.Sampled)
        )
        disks = last.disks if (last := next(samples, None)) is not None else {}
        jobs = [job for job in self._jobs.values() if job.name in stuck]
        holding = {job.name: job.disk for job in jobs if disks.get(job.kname, NOTHING).in_flight}
        if not holding:
            return stuck
        for job in jobs:
            if job.name not in holding:
                waits = f"its fio was not ended: it waits for {', '.join(holding.values())}"
                job.asked, job.report = True, FioReport(message=waits, complete=False)
                job.ended.set()
        return {name: stuck[name] for name in holding}


def measure(context: ScenarioContext, design: Design[Target], repeats: int, *, virtual: bool) -> None:
    """Measure every condition in each of ``repeats`` rounds, each with loads of its own, and record when.

    Measurements that do not count, because the host starved the DUT, are repeated afterwards. Raises RigError if a load
    does not start.
    """
    block = block_for(target for condition in design for target in condition.disks)
    planned, since = len(design) * repeats, len(_measured(context))
    known: dict[int, tuple[int, Condition[Target]]] = {}
    for number, (repeat, condition) in enumerate(interleaved(design, repeats, context.streams.of(ORDER)), 1):
        known[number] = repeat, replace(condition, pattern=replace(condition.pattern, block=block))
        _measure_once(context, known[number][1], (number, planned), (repeat, repeats), virtual=virtual)
    left = max(1, int(AGAIN * planned))
    while left and (spoilt := to_repeat(context.recorder.since(), since)[:left]):
        for event in spoilt:
            repeat, condition = known[event.number]
            number = max(known) + 1
            known[number] = repeat, condition
            _measure_once(context, condition, (number, planned), (repeat, repeats), virtual=virtual)
        left -= len(spoilt)


def _measured(context: ScenarioContext) -> tuple[ev.Measured, ...]:
    return tuple(event for event in context.recorder.since() if isinstance(event, ev.Measured))


def _measure_once(
    context: ScenarioContext,
    condition: Condition[Target],
    number: tuple[int, int],
    repeat: tuple[int, int],
    *,
    virtual: bool,
) -> None:
    pattern, names = condition.pattern, ", ".join(target.name for target in condition.disks)
    place = f"{number[0]} of {number[1]}" if number[0] <= number[1] else "again"
    context.phase("measure", f"{place}: {pattern.name} on {names}")
    with TimedLoad(context, condition.disks, pattern, together=True) as load:
        begin, end = load.watch(length_of(condition, virtual=virtual))
        context.recorder.record(
            ev.Measured(
                at=end,
                begin=begin,
                disks=load.disks,
                mode=_mode(pattern),
                block=pattern.block,
                depth=pattern.depth,
                number=number[0],
                planned=number[1],
                repeat=repeat[0],
                repeats=repeat[1],
            )
        )


def _mode(pattern: Pattern) -> ev.LoadMode:
    assert pattern.mode != "idle"
    return pattern.mode


__all__ = ["REPEATS", "TimedLoad", "block_for", "expected_seconds", "length_of", "measure"]
