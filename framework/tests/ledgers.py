"""Makes up ledgers, read-backs and the disks they belong to, for the tests of the oracle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from plugpull.integrity.oracle import ledger as led
from plugpull.integrity.oracle import readback as rb
from plugpull.integrity.oracle.ledger import Flush, Ledger, Reason, Write
from plugpull.integrity.oracle.readback import ContentKind, Found, SectorRun
from plugpull.integrity.oracle.stamp import Stamp

RUN, DEVICE = 0xABCDEF0123456789, 0x42


@dataclass
class Book:
    """Keeps a ledger as a writer would, step by step; a step is a millisecond."""

    session: int = 1
    made: Ledger = field(default_factory=lambda: Ledger(session=1, run=RUN, device=DEVICE, reason=Reason.ASKED))
    _step: int = 0

    def __post_init__(self) -> None:
        self.made.session = self.session

    def _next(self) -> tuple[int, float]:
        self._step += 1
        return self._step, self._step / 1000

    def issue(self, sector: int, sectors: int = 1, *, fua: bool = False) -> Write:
        at, time = self._next()
        number = self.session << 32 | len(self.made.writes) + 1
        write = Write(number, sector, sectors, at, time, fua)
        self.made.writes.append(write)
        return write

    def complete(self, write: Write, error: int = 0) -> None:
        write.completed, write.completed_at = self._next()
        write.error = error

    def write(self, sector: int, sectors: int = 1, *, fua: bool = False, error: int = 0) -> Write:
        """Issued and completed."""
        made = self.issue(sector, sectors, fua=fua)
        self.complete(made, error)
        return made

    def submit_flush(self) -> Flush:
        at, time = self._next()
        flush = Flush(len(self.made.flushes) + 1, at, time)
        self.made.flushes.append(flush)
        return flush

    def complete_flush(self, flush: Flush, error: int = 0) -> None:
        flush.completed, flush.completed_at = self._next()
        flush.error = error

    def flush(self, error: int = 0) -> Flush:
        flush = self.submit_flush()
        self.complete_flush(flush, error)
        return flush


def stamped(write: Write, sector: int | None = None, sectors: int | None = None) -> SectorRun:
    """All that a write put on the disk, or some of it."""
    return SectorRun(
        ContentKind.STAMPED, write.sector if sector is None else sector, sectors or write.sectors, write.number
    )


def zeros(first: int, sectors: int = 1) -> SectorRun:
    return SectorRun(ContentKind.ZEROED, first, sectors)


def damaged(first: int, raw: bytes) -> SectorRun:
    return SectorRun(ContentKind.DAMAGED, first, 1, raw=raw)


def stamp(write: Write, sector: int) -> bytes:
    return Stamp(RUN, DEVICE, sector, write.number, sector - write.sector, write.sectors).encode()


def found(*runs: SectorRun) -> Found:
    return Found(sorted(runs, key=lambda run: run.first), complete=True)


# --- the same as bytes -----------------------------------------------------------------------------------------------


def ledger_bytes(book: Ledger, *, start: float = 0.0, logical: int = 0) -> bytes:
    """The ledger as the writer sends it; ``start`` in DUT seconds."""
    steps: list[tuple[int, bytes]] = []
    for write in book.writes:
        low, micros = write.number & 0xFFFFFFFF, round(write.issued_at * 1e6)
        flags = (led.FUA if write.fua else 0) | (led.FILL if write.fill else 0)
        steps.append(
            (write.issued, led.ISSUED.pack(led.LedgerKind.ISSUED, flags, 0, write.sectors, low, write.sector, micros))
        )
        if write.completed is not None and write.completed_at is not None:
            size = 0 if write.error else write.sectors * 512
            micros = round(write.completed_at * 1e6)
            steps.append((write.completed, led.SHORT.pack(led.LedgerKind.COMPLETED, 0, write.error, low, micros, size)))
    for flush in book.flushes:
        micros = round(flush.submitted_at * 1e6)
        steps.append((flush.submitted, led.SHORT.pack(led.LedgerKind.FLUSH_SUBMITTED, 0, 0, flush.number, micros, 0)))
        if flush.completed is not None and flush.completed_at is not None:
            micros = round(flush.completed_at * 1e6)
            done = led.SHORT.pack(led.LedgerKind.FLUSH_COMPLETED, 0, flush.error, flush.number, micros, 0)
            steps.append((flush.completed, done))
    ns = int(start * 1e9)
    begun = led.BEGUN.pack(led.LedgerKind.BEGUN, led.VERSION, 0, book.session, book.run, book.device, ns, 64, 1, 4)
    begun = begun[: led.LOGICAL_AT] + led.LOGICAL.pack(logical) + begun[led.LOGICAL_AT + 4 :]
    totals = (
        len(book.writes),
        sum(write.completed is not None for write in book.writes),
        len(book.flushes),
        sum(flush.completed is not None for flush in book.flushes),
    )
    ended = led.ENDED.pack(led.LedgerKind.ENDED, Reason.ASKED, 0, *totals, 0)
    return begun + b"".join(record for _, record in sorted(steps)) + ended


def found_bytes(runs: Iterable[SectorRun]) -> bytes:
    """A read-back as the reader sends it."""
    data, counted = b"", 0
    for run in runs:
        data += rb.RUN.pack(run.kind, 0, run.errno, run.sectors, run.first, run.number)
        if run.kind is ContentKind.ELSEWHERE:
            data += rb.PLACE.pack(run.run, run.device, run.origin)
        data += run.raw
        counted += run.sectors
    return data + rb.RUN.pack(ContentKind.READ, 0, 0, 0, counted, counted)
