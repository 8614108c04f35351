"""Puts stamped sessions and their read-backs into made-up stories, and judges them by ``nothing_lost``."""

from __future__ import annotations

import base64

from ledgers import RUN, Book, found_bytes, ledger_bytes, stamped
from stories import CUT, RESTORED, VICTIM, Bench

from plugpull.checks import Judgement, nothing_lost
from plugpull.history import events as ev
from plugpull.integrity.oracle.readback import SectorRun

EXTENTS = ((0, 8),)


def on_record(
    bench: Bench,
    book: Book,
    *runs: SectorRun,
    disk: str = VICTIM,
    fill: bool = False,
    chunk: int = 40,
    error: str = "",
    later: float = 0.0,
    start: float = 0.0,
    logical: int = 0,
) -> None:
    """Put a session and its read-back into the story: begun before the cut, read back after it, and all of that so
    many seconds ``later``. ``start`` is when the ledger says that it began, 0 if it does not say it."""
    session = book.session
    job, begin = f"stamp{session}-{disk}", 11.0 + session + later
    ledger, back = ledger_bytes(book.made, start=start, logical=logical), found_bytes(runs)
    bench.add(ledger_begun(book, begin, disk, job, fill=fill))
    for at in range(0, len(ledger), chunk):
        data = base64.b64encode(ledger[at : at + chunk]).decode()
        bench.add(ev.LedgerPart(at=begin + 0.1, disk=disk, job=job, offset=at, data=data))
    bench.add(ev.LedgerEnded(at=CUT + 1 + later, disk=disk, job=job, asked=False, received=len(ledger), status=0))
    reading = f"readback{session}-{disk}"
    read_at = RESTORED + 3 + later
    bench.add(ev.ReadBackBegun(at=read_at, disk=disk, job=reading, session=session, extents=EXTENTS, error=error))
    if not error:
        text = base64.b64encode(back).decode()
        bench.add(ev.ReadBackPart(at=RESTORED + 3.1 + later, disk=disk, job=reading, offset=0, data=text))
        bench.add(ev.ReadBackEnded(at=RESTORED + 3.2 + later, disk=disk, job=reading, received=len(back), status=0))


def ledger_begun(book: Book, at: float, disk: str, job: str, *, fill: bool) -> ev.LedgerBegun:
    return ev.LedgerBegun(
        at=at,
        disk=disk,
        job=job,
        run=RUN,
        device=book.made.device,
        session=book.session,
        extents=EXTENTS,
        block=1,
        depth=4,
        order="random",
        fill=fill,
        bound=1000,
    )


def session(number: int = 1) -> tuple[Book, list[SectorRun]]:
    """Everything written, flushed, and there."""
    book = Book(session=number)
    for sector in range(8):
        book.write(sector)
    book.flush()
    return book, [stamped(write) for write in book.made.writes]


def whole(bench: Bench, *, error: str = "") -> None:
    book, runs = session()
    on_record(bench, book, *runs, error=error)


def judged(bench: Bench) -> Judgement:
    return bench.judge(nothing_lost())


def unknown(bench: Bench) -> str:
    """The reasons why it is not known; there is no finding."""
    judgement = judged(bench)
    assert judgement.findings == ()
    assert judgement.unknowns
    return "; ".join(judgement.unknowns)
