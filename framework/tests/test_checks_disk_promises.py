"""The check ``nothing_lost``: logical blocks and write caches decide what a disk has promised."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ledgers import Book, stamped
from sessions_on_record import judged, on_record, session, whole
from stories import VICTIM, Bench, healthy

from plugpull.checks import nothing_lost
from plugpull.history import events as ev


@pytest.mark.parametrize("from_where", ["event", "kernel log", "rig file", "ledger"])
def test_a_mix_inside_a_logical_block_is_torn_wherever_its_size_is_known_from(from_where: str) -> None:
    bench = healthy()
    book = Book()
    old = book.write(0, 8)
    book.flush()
    new = book.write(0, 8)
    on_record(bench, book, stamped(new, 0, 3), stamped(old, 3, 5), logical=4096 if from_where == "ledger" else 0)
    story = bench.story()
    assert len(nothing_lost().judge(story).findings) == (from_where == "ledger")
    if from_where == "event":
        bench.replace(ev.ReadBackBegun, logical=4096)
    elif from_where == "kernel log":
        kname = next(event.kname for event in bench.events if isinstance(event, ev.DiskAttached))
        bench.add(ev.KernelMessage(at=10.39, text=f"sd 1:0:0:0: [{kname}] 8192 4096-byte logical blocks: (33.6 MB)"))
    story = bench.story()
    if from_where == "rig file":
        story = replace(story, rig={"disk": [{"name": VICTIM, "serial": f"S-{VICTIM}", "logical_block": 4096}]})
    (finding,) = nothing_lost().judge(story).findings
    assert "8 torn" in finding.summary
    assert "from sector 3 on write 1" in finding.summary


@pytest.mark.parametrize(("new_sectors", "torn"), [(3, True), (0, False), (8, False)])
def test_a_rig_file_that_declares_larger_blocks_than_the_disk_has_makes_a_mix_unknown(
    new_sectors: int, torn: bool
) -> None:
    bench = healthy()
    book = Book()
    old = book.write(0, 8)
    book.flush()
    new = book.write(0, 8)
    runs = [(new, 0, new_sectors), (old, new_sectors, 8 - new_sectors)]
    on_record(bench, book, *(stamped(*run) for run in runs if run[2]), logical=512)
    story = replace(bench.story(), rig={"disk": [{"name": VICTIM, "serial": f"S-{VICTIM}", "logical_block": 4096}]})
    judgement = nothing_lost().judge(story)
    assert judgement.findings == ()
    said = f"{VICTIM} holds old and new data within 4096 bytes, the logical block size in the rig file"
    assert any(said in why for why in judgement.unknowns) == torn


def cache_line(bench: Bench, text: str) -> None:
    kname = next(event.kname for event in bench.events if isinstance(event, ev.DiskAttached))
    bench.add(ev.KernelMessage(at=10.39, text=f"sd 1:0:0:0: [{kname}] {text}"))


def test_a_write_through_disk_owes_what_it_completed_even_to_a_power_cut() -> None:
    for said, lost in (("Write cache: disabled, read cache: enabled", 1), ("Write cache: enabled, read cache", 0)):
        bench = healthy()
        book, runs = session()
        book.write(5)
        on_record(bench, book, *runs)
        bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
        cache_line(bench, f"{said}, doesn't support DPO or FUA")
        assert len(judged(bench).findings) == lost
    bench = healthy()
    whole(bench)
    cache_line(bench, "Write cache: disabled, read cache: enabled, doesn't support DPO or FUA")
    assert judged(bench).worst == f"nothing lost that was completed by {VICTIM}, said to be write-through (8 sectors)"


@pytest.mark.parametrize(
    ("supports", "says"),
    [
        ("supports DPO and", "nothing lost that was flushed or written with FUA (8 sectors)"),
        (
            "doesn't support DPO or",
            "nothing lost that was flushed or written with FUA, which the kernel sends as flushes (8 ",
        ),
    ],
)
def test_what_kind_of_promise_was_tested_is_said(supports: str, says: str) -> None:
    bench = healthy()
    whole(bench)
    bench.replace(ev.LedgerBegun, fua=25)
    cache_line(bench, f"Write cache: enabled, read cache: enabled, {supports} FUA")
    assert says in judged(bench).worst


def test_a_disk_that_said_nothing_of_its_cache_promised_nothing() -> None:
    """The kernel assumes that it writes through, and sends no flush."""
    bench = healthy()
    book, runs = session()
    book.write(5)
    on_record(bench, book, *runs)
    bench.replace(ev.CutArmed, mechanism="mains", point=f"{VICTIM}.power")
    cache_line(bench, "Assuming drive cache: write through")
    judgement = judged(bench)
    assert judgement.findings == ()
    assert f"though the kernel assumed {VICTIM} to be write-through and sent no flush" in judgement.worst
