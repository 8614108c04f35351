"""Stamped writes on several disks at once, judged by the oracle afterwards."""

from __future__ import annotations

import errno
from collections.abc import Iterable

from plugpull.dut.link import Message, Refused
from plugpull.dut.stage import Stage
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.integrity.patterns import Stamped, extents_for
from plugpull.integrity.session import Extents, StampRunner, StreamJob
from plugpull.integrity.stamp import SECTOR, device_number
from plugpull.load.runner import Job
from plugpull.load.running import RunningJobs

FILL = 512
"""Sectors of one write when everything is written once before the load."""
FILLED_WITHIN = 300.0
READ_WITHIN = 600.0
"""Seconds; a disk that does not read back at all is ended then, and what it holds is not known."""


class DiskFailed(AssertionError):
    """A disk failed while nothing was done to it: its fault, and a finding."""

    @property
    def what(self) -> str:
        return str(self)


class StampedLoad(RunningJobs):
    """Stamped writes on several disks. Everything is written once before the load begins, and read back after it."""

    def __init__(self, stage: Stage, disks: Iterable[str], pattern: Stamped) -> None:
        super().__init__(stage, disks)
        self.pattern = pattern
        self._runner = StampRunner(stage)
        self._run = stage.random.getrandbits(64)
        self._session = 0
        self._extents: dict[str, Extents] = {d: extents_for(stage.disk(d), pattern) for d in self._disks}

    def _begin(self) -> None:
        self._start(fill=FILL)

    def _start(self, *, fill: int = 0) -> None:
        stage = self._stage
        self._session += 1
        self._over = False
        self._jobs = {}
        stage.phase("fill" if fill else "load", f"{self.pattern.name} on {len(self._disks)} disks")
        for disk in self._disks:
            if stage.bench.register.attached(disk) is not None or fill:
                self._jobs[disk] = self._start_one(disk, fill)
        for job in self._jobs.values():
            self._wait_ready(job)
        self._mark = stage.recorder.mark()
        stage.phase("load", f"{self.pattern.name} on {len(self._disks)} disks")
        for job in self._jobs.values():
            stage.recorder.record(
                ev.LoadBegun(
                    at=stage.now(),
                    disk=job.disk,
                    job=job.name,
                    mode="write",
                    block=self.pattern.writing.block * SECTOR,
                    depth=self.pattern.writing.depth,
                    span=job.span,
                    kname=job.kname,
                )
            )

    def _start_one(self, disk: str, fill: int) -> StreamJob:
        block = self.pattern.writing.block
        return self._runner.write(
            disk,
            self._extents[disk],
            self.pattern.writing,
            run=self._run,
            device=device_number(self._stage.disk(disk).serial),
            session=self._session,
            seed=self._stage.random.getrandbits(32),
            fill=max(block, fill // block * block) if fill else 0,
        )

    def _wait_ready(self, job: Job) -> None:
        """Until what was there before is durable: filled, or flushed. Raises RigError when it does not get there."""
        assert isinstance(job, StreamJob)

        def ready(event: ev.Event) -> bool:
            return job.tally.filled or job.ended.is_set()

        self._stage.wait_for(ready, FILLED_WITHIN, since=0)
        if job.tally.filled:
            return
        if job.tally.errno and self._stage.bench.register.attached(job.disk) is not None:
            raise DiskFailed(self._failure(job))
        why = job.report.message or (f"errno {job.tally.errno}" if job.tally.errno else "it did not get done in time")
        raise RigError(f"{job.disk} could not be filled before the test: {why}")

    def _failure(self, job: StreamJob) -> str:
        first, sectors = job.tally.failed
        size = self._stage.disk(job.disk).size // SECTOR
        last = ", the last of the disk: READ CAPACITY tells of more than there is" if first + sectors == size else ""
        error = errno.errorcode.get(job.tally.errno, str(job.tally.errno))
        return f"{job.disk} failed to write {sectors} sectors from {first} ({error}) though nothing was cut{last}"

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
            self._stage.recorder.record(
                ev.LedgerEnded(
                    at=job.ended_at or self._stage.now(),
                    disk=job.disk,
                    job=job.name,
                    asked=job.asked,
                    received=job.received,
                    status=job.status,
                    stuck=not job.ended.is_set(),
                    why=job.report.message,
                )
            )

    def verify(self) -> None:
        """Read back every disk that is attached; what it may hold is judged later, by ``nothing_lost``."""
        self._stage.phase("verify", "reading back")
        begun = [job for disk in self._disks if (job := self._read_one(disk)) is not None]
        self._runner.finish(begun, READ_WITHIN)

    def _read_one(self, disk: str) -> StreamJob | None:
        """Begin to read a disk back; None, and on record why, when it is away or is not the disk that it was."""
        stage, extents = self._stage, self._extents[disk]
        why = f"{disk} is not attached"
        if stage.bench.register.attached(disk) is not None:
            device = device_number(stage.disk(disk).serial)
            try:
                return self._runner.read(disk, extents, run=self._run, device=device, session=self._session)
            except Refused as refusal:
                why = refusal.what
        stage.recorder.record(
            ev.ReadBackBegun(at=stage.now(), disk=disk, job="", session=self._session, extents=extents, error=why)
        )
        return None

    def next_round(self) -> None:
        """End the writing, read back, and begin to write anew over what is there: for one cut after the other.

        Raises RigError when a disk does not start again.
        """
        self.stop()
        self.verify()
        self._start()
