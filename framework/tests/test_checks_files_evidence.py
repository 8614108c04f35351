"""The check ``files_kept`` without some of its evidence: not known, and nobody accused."""

from __future__ import annotations

import pytest
from file_books import FileBook, file, synced
from files_on_record import SCANNED, bench_with_files, lines_of, on_record, pieces, unknown, whole
from stories import CUT, VICTIM, healthy

from plugpull.checks import files_kept, returned
from plugpull.history import events as ev

EVERYTHING = (
    ev.FileRoundPlanned,
    ev.FileRoundBegun,
    ev.FileLedgerPart,
    ev.FileRoundEnded,
    ev.FileScanBegun,
    ev.FileScanPart,
    ev.FileScanEnded,
    ev.FilesystemChecked,
)


@pytest.mark.parametrize("kind", EVERYTHING, ids=lambda kind: kind.__name__)
def test_without_any_of_its_records_it_is_not_known(kind: type[ev.Event]) -> None:
    bench = whole()
    bench.drop(kind)
    assert unknown(bench)


@pytest.mark.parametrize("kind", [ev.FileLedgerPart, ev.FileScanPart], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("which", [0, 1, -1])
def test_without_one_piece_it_is_not_known(kind: type[ev.Event], which: int) -> None:
    bench = whole()
    gone = [event for event in bench.events if isinstance(event, kind)][which]
    bench.drop(kind, keep=lambda event: event is not gone)
    assert "are on record" in unknown(bench)


def test_a_disk_whose_mount_is_not_on_record_is_not_accused_of_its_new_name() -> None:
    """The filesystem held the old name until it was unmounted."""
    bench = whole()
    bench.replace(ev.DiskAttached, lambda event: (event.at or 0.0) > CUT, kname="sdf")
    bench.drop(ev.LoadBegun)
    bench.replace(ev.Acted, lambda event: (event.action, event.at) == ("umount", CUT + 1), at=19.0)
    assert bench.judge(returned(VICTIM)).findings == ()
    bench.drop(ev.Acted)
    assert bench.judge(returned(VICTIM)).findings == ()
    bench.drop(ev.FileRoundBegun)
    assert "nothing held its name" in bench.judge(returned(VICTIM)).findings[0].summary


@pytest.mark.parametrize(
    ("action", "at", "words"),
    [("umount", SCANNED + 0.3, "unmounted before its check"), ("mount", SCANNED + 0.8, "mounted before the removal")],
)
def test_without_a_step_after_the_scan_it_is_not_known(action: str, at: float, words: str) -> None:
    bench = whole()
    bench.drop(ev.Acted, keep=lambda event: (event.action, event.at) != (action, at))
    assert words in unknown(bench)


def test_without_the_end_of_all_rounds_it_is_not_known() -> None:
    bench = whole()
    bench.drop(ev.FilesOver)
    assert "of the files on disk1 was over is not on record" in unknown(bench)


def test_all_records_of_a_round_but_its_end_are_missed() -> None:
    bench = whole()
    for kind in EVERYTHING:
        bench.drop(kind)
    assert "1 rounds of files were written on disk1, and round 1 is not on record" in unknown(bench)


def test_without_the_removal_it_is_not_known() -> None:
    bench = whole()
    for kind in (ev.FileScanBegun, ev.FileScanPart, ev.FileScanEnded):
        bench.drop(kind, keep=lambda event: "scan101" not in event.job)
    assert "that its files were removed is not on record" in unknown(bench)


def test_without_a_mount_after_the_cut_the_scan_shows_what_was_in_memory() -> None:
    bench = whole()
    bench.drop(ev.Acted, keep=lambda event: event.action != "mount" or (event.at or 0.0) < CUT)
    assert "unmounted and mounted again" in unknown(bench)


def test_without_the_kernels_belief_nothing_is_promised() -> None:
    """Then nothing would be demanded, and a lost file would pass."""
    bench = whole()
    bench.drop(ev.KernelMessage, keep=lambda event: "Write cache" not in event.text)
    assert "what the kernel believed" in unknown(bench)


def test_no_files_at_all() -> None:
    assert unknown(healthy()) == "no files were written"
    judgement = healthy().judge(files_kept(VICTIM))
    assert judgement.unknowns == (f"no files were written on {VICTIM}",)


def test_a_writer_that_could_not_begin_is_not_known() -> None:
    bench = bench_with_files()
    on_record(bench, FileBook())
    assert "its writer did nothing" in unknown(bench)


def test_a_ledger_of_another_time_is_not_used() -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    on_record(bench, book, file("a", made, wrote))
    bench.drop(ev.FileLedgerPart)
    data = lines_of(book, 200.0)
    for at, text in pieces(data, 300):
        bench.add(ev.FileLedgerPart(at=13.0, disk=VICTIM, job=f"files1-{VICTIM}", offset=at, data=text))
    bench.replace(ev.FileRoundEnded, received=len(data))
    assert "after its writer had ended" in unknown(bench)


@pytest.mark.parametrize("status", [8, 16, 128, None])
def test_a_checker_without_a_verdict_leaves_it_open(status: int | None) -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    on_record(bench, book, file("a", made, wrote), status=status, output="it cannot be run")
    assert "gave no verdict: it cannot be run" in unknown(bench)


def test_words_that_contradict_the_status_of_a_checker_are_quoted() -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    output = "[FSCK] Unreachable nat entries   [Fail] [0x2]\n[FSCK] other corrupted bugs   [Ok..]\nDone: 0.1 secs\n"
    on_record(bench, book, file("a", made, wrote), status=0, output=output)
    assert "gave no verdict: [FSCK] Unreachable nat entries   [Fail] [0x2]" in unknown(bench)


def test_a_disk_that_did_not_come_back_leaves_it_open() -> None:
    bench = bench_with_files()
    book, *_ = synced()
    on_record(bench, book, mount_errno=None)
    assert "could not be mounted" in unknown(bench)
