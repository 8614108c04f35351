"""What the report says of stamped data: the table, the first and the worst wrong sector, expected against found."""

from __future__ import annotations

import msgspec
import report_stories as made
from test_report_html import Page

from plugpull.integrity.oracle.stamp import Stamp
from plugpull.judging.results import BadSectors, DiskIntegrity, Integrity
from plugpull.report.hexdump import SHOWN, ascii_of, rows
from plugpull.report.html import render_html

PROMISED = Stamp(run=7, device=9, sector=4096, number=(1 << 32) + 812, index=0, count=8)
OLDER = Stamp(run=7, device=9, sector=4096, number=(1 << 32) + 40, index=0, count=8)
LOST = BadSectors(
    kind="durable lost",
    first=4096,
    sectors=8,
    expected="write 812, completed at 12.31 s and flushed at 12.40 s",
    found="write 40",
    expected_hex=PROMISED.encode().hex(),
    found_hex=OLDER.encode().hex(),
    evidence=("later writes are there: the flush did not keep them in order",),
)
DISK = DiskIntegrity(
    disk="disk1",
    rounds=20,
    rounds_lost=1,
    sectors_checked=81920,
    counts={"durable lost": 8},
    unflushed=312,
    writes=5120,
    flushes=80,
    first=LOST,
    worst=LOST,
)


def page(*disks: DiskIntegrity, **other: object) -> Page:
    integrity = Integrity(sectors_checked=81920, disks=disks, **other)  # type: ignore[arg-type]
    scenario = msgspec.structs.replace(made.failing(), integrity=integrity)
    return Page(render_html(made.results_of(scenario), {}))


def test_a_lost_sector_is_shown_with_its_bytes() -> None:
    shown = page(DISK, cuts=20, cuts_lost=1, loss_bound=0.2161)
    assert "First wrong sector on disk1: durable lost, 8 sectors from 4096" in shown.words
    assert "Worst" not in shown.words.split("Data", 1)[1].split("Traceback")[0].replace("Worst case", "")
    assert "write 812, completed at 12.31 s" in shown.words
    assert "plugpull" in shown.words
    assert shown.all("mark"), "no byte is marked as different"
    assert "1 of 20 cuts lost or damaged something" in shown.words
    assert "below 21.61 %" in shown.words


def test_healthy_data_is_told_in_one_line() -> None:
    shown = page(DiskIntegrity(disk="disk1", sectors_checked=4096, writes=10, flushes=2), cuts=200, loss_bound=0.0149)
    assert "0 of 200 cuts lost or damaged something" in shown.words
    assert "wrong sector" not in shown.words
    assert not shown.all("table", "hex")


def test_only_rows_that_differ_are_shown() -> None:
    shown = rows(PROMISED.encode().hex(), OLDER.encode().hex())
    assert shown[-1].omitted == 32 - SHOWN - 1  # bytes 16..32 are the device and the sector, which are the same
    assert [row.offset for row in shown[:3]] == [0, 32, 48]
    assert not any(byte.differs for byte in shown[0].expected)
    assert ascii_of(shown[0].expected).startswith("plugpull")


def test_one_side_that_is_not_known_is_left_empty() -> None:
    (row, *_) = rows("", bytes(512).hex())
    assert (row.expected, len(row.found)) == ((), 16)
    assert not any(byte.differs for byte in row.found)
