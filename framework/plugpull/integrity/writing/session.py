"""Sessions of stamped writing, and read-backs, on the disks of a scenario."""

from __future__ import annotations

import base64
import hashlib
import itertools
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field

from plugpull.dut.conversation.link import Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import UsageError
from plugpull.history import events as ev
from plugpull.integrity.oracle import ledger
from plugpull.integrity.oracle.stamp import SECTOR, device_number
from plugpull.integrity.patterns import Extents, Writing
from plugpull.integrity.writing.build import writer_binary
from plugpull.load.fio_report import FioReport
from plugpull.load.runner import Job
from plugpull.load.running import moved_bytes
from plugpull.targets.on_bench import claim_of
from plugpull.targets.target import Target

ACKNOWLEDGE_EVERY = 32 << 10
READ_BLOCK = 256
"""Sectors per read."""
READ_DEPTH = 8
RAW = 256
"""The maximum number of damaged sectors per read-back whose bytes are kept as evidence."""
END_GRACE = 20.0
"""Seconds for each signal that ends a session: writes in flight and the flush of a cache take time."""
STILL = 120.0
"""Seconds without a byte after which a read-back is ended. A request of a disk times out after 15 s in a run
(``dut/agent/timers.py``), and is tried again a few times."""
_numbers = itertools.count(1)


@dataclass
class Tally:
    """Counts a ledger's records as they pass, for progress and reports; it judges nothing.

    ``failed`` is the (first sector, sectors) of the first write that failed, ``logical`` the bytes of a logical block.
    ``promised``: a flush after the first one, or a write with FUA, has succeeded.
    """

    written: int = 0
    writes: int = 0
    errno: int = 0
    failed: tuple[int, int] = (0, 0)
    reason: int | None = None
    filled: bool = False
    logical: int = 0
    promised: bool = False
    flushes: int = 0
    """Flushes under way, without the one that ends the fill."""
    _rest: bytes = b""
    _flying: dict[int, tuple[int, int]] = field(default_factory=dict)
    _fua: set[int] = field(default_factory=set)

    def take(self, data: bytes) -> None:
        data = self._rest + data
        at = 0
        while at < len(data):
            size = ledger.SIZES.get(data[at])  # type: ignore[call-overload]
            if size is None or at + size > len(data):
                break
            self._count(data[at], data[at : at + size])
            at += size
        self._rest = data[at:] if at < len(data) and ledger.SIZES.get(data[at]) else b""  # type: ignore[call-overload]

    def _count(self, kind: int, record: bytes) -> None:
        if kind == ledger.LedgerKind.BEGUN:
            (self.logical,) = ledger.LOGICAL.unpack_from(record, ledger.LOGICAL_AT)
        elif kind == ledger.LedgerKind.ISSUED:
            _, flags, _, sectors, number, first, _ = ledger.ISSUED.unpack(record)
            self._flying[number] = (first, sectors)
            if flags & ledger.FUA:
                self._fua.add(number)
        elif kind == ledger.LedgerKind.COMPLETED:
            _, _, error, number, _, written = ledger.SHORT.unpack(record)
            self.written += written
            self.writes += 1
            place = self._flying.pop(number, (0, 0))
            self.promised |= number in self._fua and not error
            if error and not self.errno:
                self.errno, self.failed = error, place
        elif kind == ledger.LedgerKind.FLUSH_SUBMITTED:
            self.flushes += self.filled
        elif kind == ledger.LedgerKind.FLUSH_COMPLETED:
            error = ledger.SHORT.unpack(record)[2]
            self.flushes = max(0, self.flushes - 1)
            self.errno = self.errno or error
            self.promised |= self.filled and not error
            self.filled = True
        elif kind == ledger.LedgerKind.ENDED:
            self.reason = ledger.ENDED.unpack(record)[1]


@dataclass
class StreamJob(Job):
    """A job whose output is a stream of records. ``received`` bytes of it are in the history."""

    received: int = 0
    acknowledged: int = 0
    session: int = 0
    tally: Tally = field(default_factory=Tally)
    parts: list[tuple[int, bytes]] = field(default_factory=list)


class StampRunner:
    """Starts and ends the writer on the DUT, and records its output as it arrives."""

    def __init__(self, context: ScenarioContext, machine: str = "") -> None:
        self._context = context
        self._machine = machine
        self._digest = ""

    # --- starting -----------------------------------------------------------------------------------------------

    def write(
        self,
        target: Target,
        extents: Extents,
        how: Writing,
        *,
        run: int,
        session: int,
        seed: int,
        fill: int = 0,
        only_fill: bool = False,
    ) -> StreamJob:
        """Start a session on a disk.

        With ``fill``, the extents are first written once, that many sectors per write; with ``only_fill``, nothing
        else is written. Raises GuardRefused when the scratch guard refuses the disk, UsageError for a disk that is not
        scratch, RigError when the writer cannot be compiled or sent.
        """
        device = device_number(target.identity)
        arguments = ["write", *_common(extents, run, device), "--session", str(session), "--seed", str(seed)]
        arguments += [*how.arguments(), "--fill", str(fill), *(("--blocks", "1") if only_fill else ())]
        job, bound = self._start(target, arguments, extents, session, "stamp")
        self._context.recorder.record(
            ev.LedgerBegun(
                at=self._context.now(),
                disk=target.name,
                job=job.name,
                run=run,
                device=device,
                session=session,
                extents=extents,
                **asdict(how),
                fill=bool(fill),
                kname=job.kname,
                bound=bound,
            )
        )
        return job

    def read(
        self,
        target: Target,
        extents: Extents,
        *,
        run: int,
        session: int,
        logical: int = SECTOR,
        again: bool = False,
    ) -> StreamJob:
        """Start to read a disk back after a session. ``again``: a second reading of some sectors.

        ``logical`` is the bytes of a logical block, for the history. Raises as ``write`` does.
        """
        device = device_number(target.identity)
        arguments = reader_arguments(extents, run, device, session)
        job, _ = self._start(target, arguments, extents, session, "readback")
        self._context.recorder.record(
            ev.ReadBackBegun(
                at=self._context.now(),
                disk=target.name,
                job=job.name,
                session=session,
                extents=extents,
                logical=logical,
                again=again,
            )
        )
        return job

    def _start(
        self, target: Target, arguments: list[str], extents: Extents, session: int, kind: str
    ) -> tuple[StreamJob, int]:
        if target.in_file:
            raise UsageError(
                f"{target} is a filesystem, and stamps are written to block devices",
                hint="use rig.load, which writes to a file with fio",
            )
        digest = self.sent()
        claim = claim_of(self._context, target)
        span = sum(count for _, count in extents) * 512
        job = StreamJob(f"{kind}{next(_numbers)}-{target.name}", target.name, claim.kname, span, session=session)
        listener = self._context.listener
        listener.expect(job.name, lambda message: self._ended(job, message))
        listener.expect_stream(job.name, lambda message: self._said(job, message))
        answer = self._context.bench.link.call(
            "run", 60.0, job=job.name, digest=digest, argv=[*arguments, "--fd", "{fd}"], **claim.arguments
        )
        return job, int(answer["bound"])

    def sent(self) -> str:
        """Send the writer to the DUT if needed, and return its digest."""
        if not self._digest:
            link = self._context.bench.link
            program = writer_binary(self._machine or str(link.call("hello", 30.0)["machine"]))
            digest = hashlib.sha256(program).hexdigest()
            if not link.call("program", 30.0, digest=digest):
                data = base64.b64encode(zlib.compress(program, 6)).decode("ascii")
                link.call("program", 60.0, digest=digest, data=data)
            self._digest = digest
        return self._digest

    # --- receiving: called in the thread that reads the link ------------------------------------------------------

    def _said(self, job: StreamJob, message: Message) -> None:
        offset, text = int(message["offset"]), str(message["data"])
        part = ev.LedgerPart if job.name.startswith("stamp") else ev.ReadBackPart
        self._context.recorder.record(part(at=message["at"], disk=job.disk, job=job.name, offset=offset, data=text))
        data = base64.b64decode(text)
        job.received = offset + len(data)
        job.parts.append((offset, data))
        if part is ev.LedgerPart:
            job.tally.take(data)
        if job.received - job.acknowledged >= ACKNOWLEDGE_EVERY:
            job.acknowledged = job.received
            self._context.bench.link.post("ack", job=job.name, upto=job.received)

    @staticmethod
    def _ended(job: StreamJob, message: Message) -> None:
        job.status, job.asked, job.ended_at = message["status"], message["asked"], message["at"]
        words = str(message["output"]).strip()
        job.report = FioReport(errno=job.tally.errno, written_bytes=job.tally.written, message=words)
        job.ended.set()

    # --- ending -------------------------------------------------------------------------------------------------

    def stop(self, jobs: Iterable[Job]) -> dict[str, Message]:
        """End jobs. Returns, by name, what each job that could not be ended is stuck in."""
        names = [job.name for job in jobs]
        if not names:
            return {}
        answers = self._context.bench.link.call("jobs.stop", 4 * END_GRACE, jobs=names, grace=END_GRACE)
        return {name: answer["process"] for name, answer in answers.items() if answer["stuck"]}

    def finish(self, jobs: Iterable[StreamJob], timeout: float) -> None:
        """Wait for read-backs to end and record their ends. Those that take longer than ``timeout`` are ended, and
        all that still run when none of their disks has moved anything for ``STILL`` seconds."""
        jobs = list(jobs)
        still = self._wait(jobs, time.monotonic() + timeout)
        stuck = self.stop([job for job in jobs if not job.ended.is_set()])
        late = f"stood still for {STILL:g} s" if still else f"did not finish within {timeout:g} s"
        for job in jobs:
            self._context.recorder.record(
                ev.ReadBackEnded(
                    at=job.ended_at or self._context.now(),
                    disk=job.disk,
                    job=job.name,
                    received=job.received,
                    status=job.status,
                    stuck=job.name in stuck,
                    why=job.report.message if job.status is not None else f"reading back {late}",
                )
            )

    def _wait(self, jobs: Sequence[StreamJob], deadline: float) -> bool:
        """Wait for read-backs. True if the disks of all that still run stand still."""
        moved: dict[str, int] = {}
        since = dict.fromkeys((job.kname for job in jobs), time.monotonic())

        def look(event: ev.Event) -> bool:
            if isinstance(event, ev.Sampled):
                for kname in since:
                    if (now := moved_bytes(event, kname)) != moved.get(kname):
                        moved[kname], since[kname] = now, time.monotonic()
            return all(job.ended.is_set() for job in jobs)

        while (running := [job for job in jobs if not job.ended.is_set()]) and time.monotonic() < deadline:
            self._context.wait_for(look, 0.2)
            if time.monotonic() - max(since[job.kname] for job in running) >= STILL:
                return True
        return False


def reader_arguments(extents: Extents, run: int, device: int, session: int) -> list[str]:
    """Arguments of the program that reads stretches of a disk and compares them with their stamps."""
    arguments = ["read", *_common(extents, run, device), "--block", str(READ_BLOCK), "--depth", str(READ_DEPTH)]
    return [*arguments, "--raw", str(RAW), "--session", str(session)]


def _common(extents: Extents, run: int, device: int) -> list[str]:
    listed = ",".join(f"{first}:{count}" for first, count in extents)
    return ["--run", f"{run:x}", "--device", f"{device:x}", "--extents", listed]
