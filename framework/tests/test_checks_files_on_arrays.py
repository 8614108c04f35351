"""Writers of files on an array may be given no error while its level covers the missing members."""

from __future__ import annotations

import errno as error_numbers

import pytest
from array_stories import ARRAY, mirror
from file_books import FileBook, synced
from files_on_record import lines_of, pieces
from stories import GONE, Bench, healthy

from plugpull.checks import array_survived
from plugpull.history import events as ev


def bench_with(book: FileBook, start: float) -> Bench:
    """A mirror that loses a member while files on it are written, from ``start`` on."""
    bench, ledger, job = healthy(), lines_of(book, start), f"files1-{ARRAY}"
    mirror(bench)
    bench.add(
        ev.FileRoundBegun(
            at=start - 0.1, disk=ARRAY, job=job, run=1, round=1, directory="round1", fstype="ext4", uuid="u",
            disks=("disk1", "disk2"),
        ),
        *(ev.FileLedgerPart(at=start, disk=ARRAY, job=job, offset=at, data=text) for at, text in pieces(ledger, 300)),
    )  # fmt: skip
    return bench


def findings(bench: Bench) -> list[str]:
    return [finding.summary for finding in array_survived(ARRAY).judge(bench.story()).findings]


def test_a_writer_without_an_error() -> None:
    book, *_ = synced()
    assert findings(bench_with(book, GONE + 0.5)) == []


def test_an_error_within_the_redundancy_is_a_finding() -> None:
    book, *_ = synced()
    book.fsync("a", errno=error_numbers.EIO)
    (said,) = findings(bench_with(book, GONE + 0.5))
    assert said == f"fsync of a file on {ARRAY} failed with errno 5 though only disk1 was missing"


@pytest.mark.parametrize("errno", [error_numbers.ENOSPC, error_numbers.EEXIST])
def test_an_error_of_the_filesystem_alone_is_not_the_arrays(errno: int) -> None:
    book, *_ = synced()
    book.create("b", errno=errno)
    assert findings(bench_with(book, GONE + 0.5)) == []
