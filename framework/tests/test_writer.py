"""The writer, run by hand on a file: what it writes, what it records of that, and what it finds when it reads back."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from writers import PATIENCE, Writer, found_of, records_of

from plugpull.errors import RigError
from plugpull.integrity.oracle import ledger, readback
from plugpull.integrity.oracle.ledger import LedgerKind, Reason
from plugpull.integrity.oracle.readback import ContentKind, SectorRun
from plugpull.integrity.oracle.stamp import SECTOR, Stamp, decode
from plugpull.integrity.writing.build import GIVEN, writer_binary

SECTORS = 16384
RUN, DEVICE = 0xFEEDFACE12345678, 0x0123456789ABCDEF
ALL = ("--run", f"{RUN:x}", "--device", f"{DEVICE:x}")
SESSION = (*ALL, "--session", "3", "--extents", f"0:{SECTORS}")
READ = (*ALL, "--extents", f"0:{SECTORS}", "--block", "256", "--depth", "4")


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    return Writer(tmp_path_factory.mktemp("writer"))


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(SECTORS * SECTOR)
    return path


def sector(disk: Path, number: int) -> bytes:
    with disk.open("rb") as file:
        file.seek(number * SECTOR)
        return file.read(SECTOR)


def put(disk: Path, number: int, data: bytes) -> None:
    with disk.open("r+b") as file:
        file.seek(number * SECTOR)
        file.write(data)


def issues(data: bytes) -> list[tuple[int, int, int, int]]:
    """(number, first sector, sectors, flags) of each write, in order."""
    unpacked = [
        ledger.ISSUED.unpack(record) for kind, record in records_of(data, ledger.SIZES) if kind == LedgerKind.ISSUED
    ]
    return [(number, first, sectors, flags) for _, flags, _, sectors, number, first, _ in unpacked]


def check_flushes(kinds: list[int], *, every: int, depth: int, alone: tuple[int, int]) -> None:
    """A flush is submitted when ``every`` writes are completed since the one before and that one has returned, however
    slow it is; completions that are read together may come between. The fill and the whole are flushed by themselves,
    after so many writes (``alone``)."""
    since, late, done, flushing = 0, 0, 0, False
    for kind in kinds:
        if kind == LedgerKind.COMPLETED:
            since, done = since + 1, done + 1
            late += since > every and not flushing and done > alone[0]
            assert late <= depth, "a flush was due"
        elif kind == LedgerKind.FLUSH_SUBMITTED:
            assert since >= every or done in alone
            since, late, flushing = 0, 0, True
        elif kind == LedgerKind.FLUSH_COMPLETED:
            flushing = False


@pytest.mark.parametrize("order", ["sequential", "random", "hot"])
def test_every_write_is_told_before_and_after_and_is_on_the_disk(writer: Writer, disk: Path, order: str) -> None:
    status, out, err = writer.run(
        disk, "write", *SESSION, "--block", "8", "--depth", "16", "--order", order, "--flush-writes", "32",
        "--fua", "10", "--fill", "1024", "--blocks", "3000",
    )  # fmt: skip
    assert (status, err) == (0, "")
    records = records_of(out, ledger.SIZES)
    assert records[0][0] == LedgerKind.BEGUN
    counts = Counter(kind for kind, _ in records)
    assert counts[LedgerKind.ISSUED] == counts[LedgerKind.COMPLETED] == 3000
    assert counts[LedgerKind.FLUSH_SUBMITTED] == counts[LedgerKind.FLUSH_COMPLETED]
    check_flushes([kind for kind, _ in records], every=32, depth=16, alone=(SECTORS // 1024, 3000))
    _, reason, error, issued, completed, flushes, flushed, _ = ledger.ENDED.unpack(records[-1][1])
    assert (reason, error, issued, completed, flushes) == (Reason.DONE, 0, 3000, 3000, flushed)
    newest: dict[int, tuple[int, int, int]] = {}
    for number, first, sectors, _ in issues(out):
        newest.update({first + index: (number, index, sectors) for index in range(sectors)})
    assert len(newest) == SECTORS, "the fill left something out"
    for place in range(0, SECTORS, 37):
        number, index, count = newest[place]
        assert decode(sector(disk, place)) == Stamp(RUN, DEVICE, place, 3 << 32 | number, index, count)


def test_orders_are_what_they_are_called(writer: Writer, disk: Path) -> None:
    def blocks(order: str) -> list[int]:
        _, out, _ = writer.run(
            disk, "write", *SESSION, "--block", "8", "--depth", "4", "--order", order, "--blocks", "2000"
        )
        return [first // 8 for _, first, _, _ in issues(out)]

    total = SECTORS // 8
    assert blocks("sequential") == [number % total for number in range(2000)]
    spread = blocks("random")
    assert len(set(spread)) > 1000
    assert spread != sorted(spread)
    hot = sum(block < total // 10 for block in blocks("hot"))
    assert 0.85 < hot / 2000 < 0.97


@pytest.mark.parametrize("order", ["sequential", "random", "hot"])
def test_what_rests_is_written_by_the_fill_only(writer: Writer, disk: Path, order: str) -> None:
    _, out, _ = writer.run(
        disk, "write", *SESSION, "--block", "8", "--depth", "4", "--order", order, "--fill", "64", "--blocks", "3000",
        "--rest", str(SECTORS - 256),
    )  # fmt: skip
    filled = {first for _, first, _, fill in issues(out) if fill}
    written = {first for _, first, _, fill in issues(out) if not fill}
    assert max(filled) == SECTORS - 64
    assert written == set(range(0, 256, 8))


def test_nothing_is_written_where_something_is_in_flight(writer: Writer, disk: Path) -> None:
    _, out, _ = writer.run(
        disk, "write", *ALL, "--session", "1", "--extents", "0:64", "--block", "8", "--depth", "8", "--order", "random",
        "--blocks", "2000",
    )  # fmt: skip
    flying: dict[int, int] = {}
    for kind, record in records_of(out, ledger.SIZES):
        if kind == LedgerKind.ISSUED:
            _, _, _, _, number, first, _ = ledger.ISSUED.unpack(record)
            assert first not in flying.values()
            flying[number] = first
        elif kind == LedgerKind.COMPLETED:
            del flying[ledger.SHORT.unpack(record)[3]]


def test_what_was_there_before_is_made_durable_first(writer: Writer, disk: Path) -> None:
    _, out, _ = writer.run(disk, "write", *SESSION, "--block", "8", "--depth", "4", "--blocks", "10")
    kinds = [kind for kind, _ in records_of(out, ledger.SIZES)]
    assert kinds[:4] == [LedgerKind.BEGUN, LedgerKind.FLUSH_SUBMITTED, LedgerKind.FLUSH_COMPLETED, LedgerKind.ISSUED]
    assert kinds[-3:] == [LedgerKind.FLUSH_SUBMITTED, LedgerKind.FLUSH_COMPLETED, LedgerKind.ENDED]


def test_asked_to_end_it_completes_what_is_in_flight_and_flushes(writer: Writer, disk: Path) -> None:
    with writer.start(disk, ["write", *SESSION, "--block", "8", "--depth", "8", "--flush-ms", "20"]) as process:
        assert process.stdout is not None
        begun = b""
        while len(begun) < 20_000:
            begun += os.read(process.stdout.fileno(), 20_000)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE)
    records = records_of(begun + rest, ledger.SIZES)
    _, reason, error, issued, completed, flushes, flushed, _ = ledger.ENDED.unpack(records[-1][1])
    assert (process.returncode, reason, error) == (0, Reason.ASKED, 0)
    assert (issued, flushes) == (completed, flushed)
    assert records[-2][0] == LedgerKind.FLUSH_COMPLETED


def test_when_nobody_reads_the_ledger_nothing_more_is_written(writer: Writer, disk: Path) -> None:
    """What can be missing of the ledger is bounded by what fits between the writer and its reader."""
    with writer.start(disk, ["write", *SESSION, "--block", "8", "--depth", "8"]) as process:
        settled, before = 0, -1
        deadline = time.monotonic() + PATIENCE
        while settled < 5 and time.monotonic() < deadline:
            fields = Path(f"/proc/{process.pid}/io").read_text().split()
            written = int(fields[fields.index("write_bytes:") + 1]) + int(fields[fields.index("syscw:") + 1])
            settled, before = (settled + 1 if written == before else 0), written
            time.sleep(0.1)  # there is no event for a process that stops working
        assert settled == 5, "it went on although nobody read what it said"
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE)
    assert 60_000 < len(out) < 70_000


def test_a_disk_that_fails_ends_the_session_with_its_error(writer: Writer, disk: Path) -> None:
    with disk.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, SECTORS * SECTOR)
    refused = ["--extents", f"0:{SECTORS},{1 << 52}:8"]  # beyond what a file can be: EINVAL or EFBIG
    status, out, _ = writer.run(
        disk, "write", *ALL, "--session", "1", *refused, "--block", "8", "--depth", "4", "--order", "sequential"
    )
    records = records_of(out, ledger.SIZES)
    _, reason, error, issued, completed, *_ = ledger.ENDED.unpack(records[-1][1])
    assert (status, reason) == (1, Reason.ERROR)
    assert error > 0
    assert issued == completed


def test_everything_that_can_be_found_is_told_apart(writer: Writer, disk: Path) -> None:
    writer.run(disk, "write", *SESSION, "--block", "8", "--depth", "4", "--blocks", str(SECTORS // 8))
    put(disk, 100, bytes(SECTOR * 2))
    put(disk, 200, sector(disk, 300) + sector(disk, 301))
    put(disk, 400, Stamp(RUN, 77, 400, 5, 0, 1).encode())
    put(disk, 500, Stamp(99, DEVICE, 500, 5, 0, 1).encode())
    mixed = sector(disk, 600)[:256] + Stamp(RUN, DEVICE, 600, 1, 0, 8).encode()[256:]
    put(disk, 600, mixed)
    flipped = bytearray(sector(disk, 700))
    flipped[130] ^= 4
    put(disk, 700, bytes(flipped))
    put(disk, 800, b"\xff" * SECTOR * 3)
    status, out, _ = writer.run(disk, "read", *READ, "--raw", "4")
    assert status == 0
    odd = {run.first: run for run in found_of(out) if run.kind != ContentKind.STAMPED}
    here = 3 << 32 | 300 // 8 + 1
    assert odd == {
        100: SectorRun(ContentKind.ZEROED, 100, 2),
        200: SectorRun(ContentKind.ELSEWHERE, 200, 2, here, run=RUN, device=DEVICE, origin=300),
        400: SectorRun(ContentKind.ELSEWHERE, 400, 1, 5, run=RUN, device=77, origin=400),
        500: SectorRun(ContentKind.ELSEWHERE, 500, 1, 5, run=99, device=DEVICE, origin=500),
        600: SectorRun(ContentKind.DAMAGED, 600, 1, raw=mixed),
        700: SectorRun(ContentKind.DAMAGED, 700, 1, raw=bytes(flipped)),
        800: SectorRun(ContentKind.DAMAGED, 800, 1, raw=b"\xff" * SECTOR),
        801: SectorRun(ContentKind.DAMAGED, 801, 1, raw=b"\xff" * SECTOR),
        802: SectorRun(ContentKind.MORE_DAMAGED, 802, 1),
    }
    assert sum(run.sectors for run in found_of(out)) == SECTORS


def test_a_disk_that_became_smaller_is_read_as_far_as_it_goes(writer: Writer, disk: Path) -> None:
    os.truncate(disk, 1000 * SECTOR)
    status, out, _ = writer.run(disk, "read", *READ)
    records = records_of(out, readback.SIZES)
    _, _, errno, _, read, total = readback.RUN.unpack(records[-1][1])
    assert (status, read, total) == (1, 1000, 1000)
    assert os.strerror(errno) == "No space left on device"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["write", "--extents", "0:7", "--block", "8"], "whole blocks"),
        (["write", "--extents", "0:64", "--block", "8", "--rest", "64"], "less than the extents"),
        (["write", "--extents", "0:64", "--block", "8", "--rest", "4"], "--rest must be a multiple"),
        (["write", "--extents", "0:8", "--depth", "999"], "256 at most"),
        (["write", "--extents", "0-8"], "not an extent"),
        (["read", "--extents", "x:8"], "not a number"),
        (["erase", "--extents", "0:8"], "usage"),
        (["read", "--what", "1"], "unknown option"),
    ],
)
def test_wrong_options_are_refused(writer: Writer, disk: Path, arguments: list[str], says: str) -> None:
    status, out, err = writer.run(disk, *arguments)
    assert (status, out) == (2, b"")
    assert says in err


def test_a_writer_that_was_compiled_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tmp_path / "writer"
    monkeypatch.setenv(GIVEN, str(given))
    with pytest.raises(RigError, match=f"named by {GIVEN}: No such file"):
        writer_binary()
    given.write_bytes(b"ELF")
    assert writer_binary() == b"ELF"
