"""Ledgers and read-backs of a recorded run, decoded and encoded again."""

from __future__ import annotations

import base64
from functools import cached_property

from benchmarks.edits.events import of
from benchmarks.edits.tape import Tape
from plugpull.integrity.oracle.decode import decode_found, decode_ledger
from plugpull.integrity.oracle.ledger import Ledger, Write
from plugpull.integrity.oracle.readback import PLACE, RUN, ContentKind, SectorRun


class Session:
    """One disk's writing session and what was read back after it."""

    def __init__(self, tape: Tape, disk: str, nth: int = -1) -> None:
        self.tape, self.disk, self.nth = tape, disk, nth
        self.begun = tape.all(of("ledger.begin", disk=disk))[nth]
        self.read = tape.all(of("readback.begin", disk=disk, session=self.begun["session"]))[-1]
        self.ledger: Ledger = decode_ledger(parts_of(tape, "ledger.part", self.begun["job"]))
        self.found = decode_found(parts_of(tape, "readback.part", self.read["job"])).runs

    def durable(self) -> list[Write]:
        """Writes that a flush made durable and that nothing was written over, the newest first."""
        last = max(
            (flush.submitted for flush in self.ledger.flushes if flush.completed is not None and not flush.error),
            default=0,
        )
        kept = [w for w in self.ledger.writes if w.completed is not None and not w.error and w.completed < last]
        return [write for write in reversed(kept) if self._alone(write)]

    def unflushed(self) -> list[Write]:
        """Writes that completed, that no flush followed, and that are there, the newest first."""
        last = max(
            (flush.submitted for flush in self.ledger.flushes if flush.completed is not None and not flush.error),
            default=0,
        )
        kept = [w for w in self.ledger.writes if w.completed is not None and not w.error and w.completed > last]
        return [write for write in reversed(kept) if self._alone(write)]

    def _alone(self, write: Write) -> bool:
        there = any(run.first <= write.sector and run.end >= write.end for run in self._stamped.get(write.number, ()))
        return there and all(self._last[sector] == write.issued for sector in range(write.sector, write.end))

    @cached_property
    def _last(self) -> dict[int, int]:
        """When each sector was last written."""
        writes = sorted(self.ledger.writes, key=lambda write: write.issued)
        return {sector: write.issued for write in writes for sector in range(write.sector, write.end)}

    @cached_property
    def _stamped(self) -> dict[int, list[SectorRun]]:
        """What was read back of each write."""
        found: dict[int, list[SectorRun]] = {}
        for run in self.found:
            if run.kind is ContentKind.STAMPED:
                found.setdefault(run.number, []).append(run)
        return found

    def older(self, write: Write) -> int:
        """The number of the write that it was written over, in this session or the one before."""
        ours = [
            w for w in self.ledger.writes if w.issued < write.issued and w.sector <= write.sector and w.end >= write.end
        ]
        if ours:
            return ours[-1].number
        before = Session(self.tape, self.disk, self.nth - 1).found
        return next(run.number for run in before if run.first <= write.sector and run.end > write.sector)

    def replace(self, first: int, sectors: int, runs: list[SectorRun]) -> Tape:
        """The read-back found these runs in place of what it found there."""
        kept: list[SectorRun] = []
        for run in self.found:
            for begin, end in ((run.first, min(run.end, first)), (max(run.first, first + sectors), run.end)):
                if begin < end:
                    kept.append(
                        SectorRun(
                            run.kind,
                            begin,
                            end - begin,
                            run.number,
                            run.errno,
                            run.run,
                            run.device,
                            run.origin + begin - run.first,
                            run.raw,
                        )
                    )
        return with_stream(
            self.tape, "readback", self.read["job"], encode_found(sorted([*kept, *runs], key=lambda run: run.first))
        )


def parts_of(tape: Tape, kind: str, job: str) -> list[tuple[int, bytes]]:
    return [(part["offset"], base64.b64decode(part["data"])) for part in tape.all(of(kind, job=job))]


def encode_found(runs: list[SectorRun]) -> bytes:
    data = b""
    for run in runs:
        data += RUN.pack(run.kind, 0, run.errno, run.sectors, run.first, run.number)
        if run.kind is ContentKind.ELSEWHERE:
            data += PLACE.pack(run.run, run.device, run.origin)
        elif run.kind is ContentKind.DAMAGED:
            data += run.raw
    total = sum(run.sectors for run in runs)
    return data + RUN.pack(ContentKind.READ, 0, 0, 0, total, total)


def with_stream(tape: Tape, name: str, job: str, data: bytes) -> Tape:
    """The stream of a job, in one piece."""
    parts = tape.all(of(f"{name}.part", job=job))
    first = parts[0] | {"offset": 0, "data": base64.b64encode(data).decode()}
    tape = Tape(
        tuple(
            first if event is parts[0] else event
            for event in tape.events
            if event is parts[0] or not any(event is part for part in parts)
        )
    )
    return tape.change(of(f"{name}.end", job=job), received=len(data))


def round_of(tape: Tape, disk: str, nth: int) -> list[str]:
    """Jobs of one disk's round: its stamping and its read-back."""
    begun = tape.all(of("ledger.begin", disk=disk))[nth]
    read = tape.all(of("readback.begin", disk=disk, session=begun["session"]))[-1]
    return [begun["job"], read["job"]]
