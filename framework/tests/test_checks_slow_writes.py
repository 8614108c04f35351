"""One stamped write of a disk that was not cut may not hang, whatever else the disk completes meanwhile."""

from __future__ import annotations

import base64

import pytest
from ledgers import Book, ledger_bytes
from stories import SURVIVORS, VICTIM, Bench
from test_checks_stale_samples import BEGUN, SECTORS, stamped

from plugpull.checks import answered
from plugpull.history import events as ev

DISK = SURVIVORS[0]


def held_up(took: float, disk: str = DISK) -> Bench:
    """One write of the disk takes so many seconds, and others are completed."""
    bench, book = stamped(disk), Book()
    held = book.issue(0, SECTORS)
    for number in range(1, 9):
        book._step += round(took * 1000 / 8)
        book.write(number * SECTORS, SECTORS)
    book.complete(held)
    data = ledger_bytes(book.made, start=BEGUN)
    bench.replace(ev.LedgerPart, lambda event: event.disk == disk, data=base64.b64encode(data).decode())
    bench.replace(ev.LedgerEnded, lambda event: event.disk == disk, received=len(data))
    return bench


def findings(bench: Bench) -> list[str]:
    return [one.summary for one in bench.judge(answered()).findings]


@pytest.mark.parametrize(("took", "said"), [(2.0, []), (4.0, [f"a write of {DISK} took 4.0"])])
def test_a_write_that_takes_long_is_a_finding(took: float, said: list[str]) -> None:
    assert [one[:25] for one in findings(held_up(took))] == said


def test_a_write_to_a_disk_that_was_cut_may_take_long() -> None:
    assert findings(held_up(4.0, VICTIM)) == []


def test_a_write_to_a_disk_that_stood_still_on_request_may_take_long() -> None:
    bench = held_up(4.0)
    bench.add(ev.DiskStalled(at=12.0, disk=DISK, until=16.0, spans=((12.0, 15.5),), timeout=2, given_up=1))
    assert findings(bench) == []
