"""Stamped writes on several disks at once, judged by the oracle afterwards."""

from __future__ import annotations

import errno
from collections.abc import Iterable

from plugpull.dut.link import Message, Refused
from plugpull.dut.stage import Stage
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.integrity.decode import decode_found, decode_ledger
from plugpull.integrity.oracle import judge
from plugpull.integrity.patterns import Stamped, extents_for
from plugpull.integrity.readback import Run
from plugpull.integrity.session import Extents, StampRunner, StreamJob
from plugpull.integrity.stamp import SECTOR, device_number
from plugpull.load.runner import Job
from plugpull.load.running import RunningJobs

FILL = 512
"""Sectors of one write when everything is written once before the load."""
BASELINE_SECONDS = 5.0
"""Small writes and flushes are bound by the DUT's CPUs, and their rate varies by 17 to 46 % from second to second."""
FILLED_WITHIN = 300.0
READ_WITHIN = 600.0
"""Seconds; a disk that does not read back at all is ended then, and what it holds is not known."""


LOOKED_AT_AGAIN = 32
"""Stretches that are read a second time at most."""


class DiskFailed(AssertionError):
    """A disk failed while nothing was done to it: its fault, and a finding."""

    @property
    def what(self) -> str:
        return str(self)


class StampedLoad(RunningJobs):
    """Stamped writes on several disks. Everything is written once before the load begins, and read back after it."""

    baseline_seconds = BASELINE_SECONDS

    def __init__(self, stage: Stage, disks: Iterable[str], pattern: Stamped) -> None:
        super().__init__(stage, disks)
        self.pattern = pattern
        self._runner = StampRunner(stage)
        self._run = stage.random.getrandbits(64)
        self._session = 0
        self._sessions: dict[str, int] = {}
        self._found: dict[str, tuple[int, tuple[Run, ...]]] = {}
        self._extents: dict[str, Extents] = {d: extents_for(stage.disk(d), pattern) for d in self._disks}

    def _begin(self) -> None:
        self._start(fill=FILL if self.pattern.fill else 0)

    def _start(self, *, fill: int = 0) -> None:
        stage = self._stage
        self._session += 1
        self._over = False
        self._jobs = {}
        stage.phase("fill" if fill else "load", f"{self.pattern.name} on {len(self._disks)} disks")
        present = [d for d in self._disks if self._session == 1 or stage.bench.register.attached(d) is not None]
        stage.recorder.record(
            ev.StampingPlanned(at=stage.now(), run=self._run, session=self._session, disks=tuple(present))
        )
        for disk in present:
            self._jobs[disk] = self._start_one(disk, fill)
            self._sessions[disk] = self._session
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
        todo = [disk for disk in self._disks if self._sessions.get(disk) != self._found.get(disk, (0, ()))[0]]
        begun = {disk: job for disk in todo if (job := self._read_one(disk, self._extents[disk])) is not None}
        self._runner.finish(begun.values(), READ_WITHIN)
        suspect = {disk: extents for disk, job in begun.items() if (extents := self._look(disk, job))}
        if not suspect:
            return
        self._stage.phase("verify", f"reading a second time what looks wrong on {', '.join(suspect)}")
        again = [self._read_one(disk, extents, again=True) for disk, extents in suspect.items()]
        self._runner.finish([job for job in again if job is not None], READ_WITHIN)

    def _read_one(self, disk: str, extents: Extents, *, again: bool = False) -> StreamJob | None:
        """Begin to read a disk back; None, and on record why, when it is away or is not the disk that it was."""
        stage = self._stage
        session = self._sessions.get(disk, self._session)
        why = f"{disk} is not attached"
        if stage.bench.register.attached(disk) is not None:
            try:
                return self._runner.read(
                    disk,
                    extents,
                    run=self._run,
                    device=device_number(stage.disk(disk).serial),
                    session=session,
                    logical=self._logical(disk),
                    again=again,
                )
            except Refused as refusal:
                why = refusal.what
        stage.recorder.record(
            ev.ReadBackBegun(
                at=stage.now(), disk=disk, job="", session=session, extents=extents, error=why, again=again
            )
        )
        return None

    def _logical(self, disk: str) -> int:
        """Bytes of a logical block, as the writer found it."""
        job = self._jobs.get(disk)
        return (job.tally.logical if isinstance(job, StreamJob) else 0) or SECTOR

    def _look(self, disk: str, read: StreamJob) -> Extents:
        """What looks wrong, and so is worth a second reading. It does not judge: the check does, from the record."""
        job = self._jobs.get(disk)
        if not isinstance(job, StreamJob):
            return ()
        found = decode_found(read.parts)
        session, runs = self._found.get(disk, (0, ()))
        self._found[disk] = (read.session, tuple(found.runs))
        before = runs if session and session + 1 == read.session else None
        made = judge(
            decode_ledger(job.parts),
            found,
            self._extents[disk],
            before,
            logical_block=self._logical(disk),
            completed=True,
            blank=read.session == 1 and not self.pattern.fill,
        )
        return _few([(wrong.first, wrong.sectors) for wrong in made.wrong], self._logical(disk) // SECTOR)

    def _end(self, *, verify: bool) -> None:
        super()._end(verify=verify)
        if verify and self._session and not self._stage.watch.lost:
            self._stage.recorder.record(
                ev.StampingOver(
                    at=self._stage.now(), run=self._run, disks=tuple(self._sessions), sessions=dict(self._sessions)
                )
            )

    def next_round(self) -> None:
        """End the writing, read back, and begin to write anew over what is there: for one cut after the other.

        Raises RigError when a disk does not start again.
        """
        self.stop()
        self.verify()
        self._start()


def _few(stretches: list[tuple[int, int]], logical: int) -> Extents:
    """Whole logical blocks, rising and apart from each other, and not too many."""
    made: list[tuple[int, int]] = []
    for first, count in sorted(stretches):
        begin, end = first - first % logical, -(-(first + count) // logical) * logical
        if made and begin <= made[-1][0] + made[-1][1]:
            made[-1] = (made[-1][0], max(end, made[-1][0] + made[-1][1]) - made[-1][0])
        else:
            made.append((begin, end - begin))
    return tuple(made[:LOOKED_AT_AGAIN])
