"""Starts the file writer and the scanner in a mounted filesystem of the DUT, and records their output."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from plugpull.dut.conversation.link import Message
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.integrity.writing.files.bundle import file_program
from plugpull.load.runner import Job
from plugpull.targets.filesystem import Filesystem
from plugpull.targets.on_bench import claim_of

ACKNOWLEDGE_EVERY = 32 << 10
END_GRACE = 20.0
"""Seconds for each signal that ends a writer: the operation under way may wait for the disk's error handling."""
SCANNED_WITHIN = 300.0
"""Seconds. A scan that takes longer is ended, and what the filesystem shows counts as unknown."""
SYNCS = frozenset({"fsync", "fdatasync", "fsyncdir", "sync", "syncfs"})
_numbers = itertools.count(1)


@dataclass
class FileTally:
    """Counts a ledger's lines as they pass, for progress; it judges nothing. ``syncs`` succeeded, and ``errno`` is the
    first error."""

    operations: int = 0
    syncs: int = 0
    errno: int = 0
    over: bool = False
    _rest: bytes = b""
    _last: str = ""

    def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for text in lines:
            try:
                line = json.loads(text)
                self._count(str(line["do"]), int(line.get("errno", 0)))
            except (ValueError, KeyError, TypeError):
                continue  # the check reports it

    def _count(self, what: str, errno: int) -> None:
        if what == "returned":
            self.operations += 1
            self.errno = self.errno or errno
            self.syncs += self._last in SYNCS and not errno
        elif what == "end":
            self.over = True
        else:
            self._last = what


@dataclass
class FileJob(Job):
    """A writer or a scanner. ``received`` bytes of its output are in the history; ``why`` is what it said on standard
    error."""

    scan: bool = False
    received: int = 0
    acknowledged: int = 0
    why: str = ""
    tally: FileTally = field(default_factory=FileTally)


class FileRunner:
    """Starts and ends the program on the DUT, and records its output as it arrives."""

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._digest = ""

    def write(
        self, volume: Filesystem, directory: str, plan: object, *, run: int, number: int, pattern: str
    ) -> FileJob:
        """Start a round: the writer makes ``directory`` and plays ``plan`` there. Raises GuardRefused when the guard
        refuses the filesystem."""
        arguments = ["write", "--root", "{root}", "--directory", directory, "--run", f"{run:x}", "--plan", "{plan}"]
        job, bound = self._start(volume, arguments, json.dumps(plan), scan=False)
        self._context.recorder.record(
            ev.FileRoundBegun(
                at=self._context.now(),
                disk=volume.name,
                job=job.name,
                run=run,
                round=number,
                directory=directory,
                fstype=volume.fstype,
                uuid=volume.identity,
                pattern=pattern,
                disks=volume.disks,
                kname=job.kname,
                bound=bound,
            )
        )
        return job

    def scan(
        self, volume: Filesystem, directory: str, *, number: int, removing: bool = False, repaired: bool = False
    ) -> FileJob:
        """Start to scan the directory of a round. ``removing``: remove everything in it afterwards, and read the files
        only if the filesystem was ``repaired``."""
        arguments = [
            "scan",
            "--root",
            "{root}",
            "--directory",
            directory,
            *_modes(removing, repaired),
        ]
        job, _ = self._start(volume, arguments, "", scan=True)
        self._context.recorder.record(
            ev.FileScanBegun(
                at=self._context.now(),
                disk=volume.name,
                job=job.name,
                round=number,
                directory=directory,
                removing=removing,
                repaired=repaired,
            )
        )
        return job

    def _start(self, volume: Filesystem, arguments: list[str], plan: str, *, scan: bool) -> tuple[FileJob, int]:
        digest = self._sent()
        claim = claim_of(self._context, volume)
        kind = "scan" if scan else "files"
        job = FileJob(f"{kind}{next(_numbers)}-{volume.name}", volume.name, claim.kname, 0, scan=scan)
        listener = self._context.listener
        listener.expect(job.name, lambda message: self._ended(job, message))
        listener.expect_stream(job.name, lambda message: self._said(job, message))
        answer = self._context.bench.link.call(
            "files", 60.0, job=job.name, digest=digest, argv=arguments, plan=plan, **claim.arguments
        )
        return job, int(answer["bound"])

    def _sent(self) -> str:
        """Send the program to the DUT if needed, and return its digest."""
        if not self._digest:
            link, program = self._context.bench.link, file_program()
            digest = hashlib.sha256(program).hexdigest()
            if not link.call("program", 30.0, digest=digest):
                data = base64.b64encode(zlib.compress(program, 6)).decode("ascii")
                link.call("program", 60.0, digest=digest, data=data)
            self._digest = digest
        return self._digest

    # --- receiving: called in the thread that reads the link ------------------------------------------------------

    def _said(self, job: FileJob, message: Message) -> None:
        offset, text = int(message["offset"]), str(message["data"])
        part = ev.FileScanPart if job.scan else ev.FileLedgerPart
        self._context.recorder.record(part(at=message["at"], disk=job.disk, job=job.name, offset=offset, data=text))
        data = base64.b64decode(text)
        job.received = offset + len(data)
        if not job.scan:
            job.tally.take(data)
        if job.received - job.acknowledged >= ACKNOWLEDGE_EVERY:
            job.acknowledged = job.received
            self._context.bench.link.post("ack", job=job.name, upto=job.received)

    @staticmethod
    def _ended(job: FileJob, message: Message) -> None:
        job.status, job.asked, job.ended_at = message["status"], message["asked"], message["at"]
        job.why = str(message["output"]).strip()[-500:]
        job.ended.set()

    # --- ending -------------------------------------------------------------------------------------------------

    def stop(self, jobs: Iterable[FileJob]) -> dict[str, Message]:
        """End jobs. Returns, by name, what each job that could not be ended is stuck in."""
        names = [job.name for job in jobs if not job.ended.is_set()]
        if not names:
            return {}
        answers = self._context.bench.link.call("jobs.stop", 4 * END_GRACE, jobs=names, grace=END_GRACE)
        return {name: answer["process"] for name, answer in answers.items() if answer["stuck"]}

    def finish(self, job: FileJob, timeout: float = SCANNED_WITHIN) -> None:
        """Wait for a scan to end, and record its end. One that takes longer than ``timeout`` is ended, and so is one
        whose scenario is interrupted: it would keep its filesystem from being unmounted."""
        deadline = time.monotonic() + timeout
        try:
            while not job.ended.is_set() and time.monotonic() < deadline:
                self._context.wait_for(lambda event: job.ended.is_set(), 0.2)
        except BaseException:
            with suppress(RigError):  # what interrupted it is said, not what came of it
                self.stop([job])
            raise
        stuck = self.stop([job])
        self._context.recorder.record(
            ev.FileScanEnded(
                at=job.ended_at or self._context.now(),
                disk=job.disk,
                job=job.name,
                received=job.received,
                status=job.status,
                stuck=job.name in stuck,
                why=job.why if job.status is not None else f"scanning did not finish within {timeout:g} s",
            )
        )


def _modes(removing: bool, repaired: bool) -> tuple[str, ...]:
    if not removing:
        return ()
    return ("--remove",) if repaired else ("--names", "--remove")
