"""Stamped writes on several disks at once, judged by the oracle afterwards."""

from __future__ import annotations

import errno
from collections.abc import Iterable

from plugpull.checks.base import Named
from plugpull.dut.conversation.link import Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import DutError, RigError
from plugpull.faults.triggers import AtRandom, Flushing, Promised, Trigger
from plugpull.history import events as ev
from plugpull.integrity.oracle.stamp import SECTOR
from plugpull.integrity.patterns import Extents, Stamped, extents_for
from plugpull.integrity.writing.reading import ReadBacks
from plugpull.integrity.writing.session import StampRunner, StreamJob
from plugpull.load.runner import Job
from plugpull.load.running import RunningJobs
from plugpull.targets.on_bench import is_usable
from plugpull.targets.target import Target

FILL = 512
"""Sectors of one write while the span is filled before the load."""
BASELINE_SECONDS = 5.0
"""Small writes and flushes are limited by the DUT's CPUs, and their rate varies by 17 to 46 % from second to second."""
FILLED_WITHIN = 300.0


class DiskFailed(DutError):
    """A disk failed although it was not cut: a finding against the disk."""


def fill_block(block: int) -> int:
    """Sectors of one write of a fill: a multiple of ``block``."""
    return max(block, FILL // block * block)


def wait_filled(context: ScenarioContext, job: StreamJob) -> None:
    """Wait until a disk's initial content is durable: filled, or flushed. Raises DiskFailed or RigError on failure."""

    def ready(event: ev.Event) -> bool:
        return job.tally.filled or job.ended.is_set()

    context.wait_for(ready, FILLED_WITHIN, since=0)
    if job.tally.filled:
        return
    if job.tally.errno and context.bench.disk_table.attached(job.disk) is not None:
        raise DiskFailed(_failure(context, job))
    why = job.report.message or (f"errno {job.tally.errno}" if job.tally.errno else "it did not finish in time")
    raise RigError(f"{job.disk} could not be filled before the test: {why}")


def _failure(context: ScenarioContext, job: StreamJob) -> str:
    first, sectors = job.tally.failed
    size = context.disk(job.disk).size // SECTOR
    last = ", the last of the disk: READ CAPACITY reports too many" if first + sectors == size else ""
    error = errno.errorcode.get(job.tally.errno, str(job.tally.errno))
    return f"{job.disk} failed to write {sectors} sectors from {first} ({error}) although nothing was cut{last}"


def record_ended(context: ScenarioContext, job: StreamJob) -> None:
    """Record the end of a writer in the history."""
    context.recorder.record(
        ev.LedgerEnded(
            at=job.ended_at or context.now(),
            disk=job.disk,
            job=job.name,
            asked=job.asked,
            received=job.received,
            status=job.status,
            stuck=not job.ended.is_set(),
            why=job.report.message,
        )
    )


class RunningStamps(RunningJobs):
    """Stamped writes on one or several disks, for the length of their ``with`` block.

    Each span is written once before the load, and read back after it.
    """

    def __init__(self, context: ScenarioContext, targets: Iterable[Target], pattern: Stamped) -> None:
        super().__init__(context, targets)
        self.pattern = pattern
        if pattern.writing.promises:
            self.baseline_seconds = BASELINE_SECONDS
        self._runner = StampRunner(context)
        self._run = context.random.getrandbits(64)
        self._session = 0
        self._reads = ReadBacks(context, self._runner, self._run)
        self._extents: dict[str, Extents] = {t.name: extents_for(t, pattern) for t in self._targets}

    def _begin(self) -> None:
        self._start(fill=self.pattern.fill)

    def _start(self, *, fill: bool = False) -> None:
        context = self._context
        self._session += 1
        self._over = False
        self._jobs = {}
        context.phase("fill" if fill else "load", f"{self.pattern.name} on {len(self._targets)} disks")
        present = [t for t in self._targets if self._session == 1 or is_usable(context, t)]
        self._reads.planned(self._session, present)
        for target in present:
            started = self._start_one(target, fill)
            self._jobs[target.name] = started
            self._reads.wrote(target, started, self._extents[target.name], blank=self._session == 1 and not fill)
        for job in self._jobs.values():
            self._wait_ready(job)
        self._mark = context.recorder.mark()
        context.phase("load", f"{self.pattern.name} on {len(self._targets)} disks")
        for job in self._jobs.values():
            context.recorder.record(
                ev.LoadBegun(
                    at=context.now(),
                    disk=job.disk,
                    job=job.name,
                    mode="write",
                    block=self.pattern.writing.block * SECTOR,
                    depth=self.pattern.writing.depth,
                    span=job.span,
                    kname=job.kname,
                )
            )

    def _start_one(self, target: Target, fill: bool) -> StreamJob:
        block = self.pattern.writing.block
        return self._runner.write(
            target,
            self._extents[target.name],
            self.pattern.writing,
            run=self._run,
            session=self._session,
            seed=self._context.random.getrandbits(32),
            fill=fill_block(block) if fill else 0,
        )

    def _wait_ready(self, job: Job) -> None:
        assert isinstance(job, StreamJob)
        wait_filled(self._context, job)

    def _first_bytes(self, disk: str) -> int:
        return self.pattern.writing.block * SECTOR * self.pattern.writing.depth

    def _stop_jobs(self, running: Iterable[Job]) -> dict[str, Message]:
        return self._runner.stop(running)

    def stop(self) -> None:
        if self._over:
            return
        super().stop()
        for job in self._jobs.values():
            assert isinstance(job, StreamJob)
            record_ended(self._context, job)

    def verify(self) -> None:
        """Read back every attached disk; ``nothing_lost`` judges the content later."""
        self._context.phase("verify", "reading back")
        self._reads.read()

    def _end(self, *, verify: bool) -> None:
        super()._end(verify=verify)
        if verify and not self._context.listener.lost:
            self._reads.over()

    def something_to_lose(self, disk: Named, low: float = 0.05, high: float = 0.3) -> Trigger:
        """A trigger: ``low`` to ``high`` seconds, drawn at random, after something beyond the fill became durable on
        ``disk``: it was flushed, or written with FUA."""
        return Promised(disk.name, AtRandom(low, high))

    def flushing(self, disk: Named) -> Trigger:
        """A trigger: at the instant at which a flush of ``disk`` is under way."""
        return Flushing(disk.name)

    def in_flush(self, disk: str) -> bool:
        """Whether a flush of a disk is under way, as far as the ledger has arrived."""
        job = self._jobs.get(disk)
        return isinstance(job, StreamJob) and job.tally.flushes > 0

    def promised(self, disk: str) -> bool:
        """True if a flush or a FUA write has made something durable on a disk since its load began."""
        job = self._jobs.get(disk)
        return isinstance(job, StreamJob) and job.tally.promised

    def next_round(self) -> None:
        """End the writing, read back, and start writing again over the stored data: for several cuts in a row.

        Raises RigError when a disk does not start again.
        """
        self.stop()
        self.verify()
        self._start()
