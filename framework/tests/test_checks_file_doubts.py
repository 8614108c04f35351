"""Contradictions of a round of files are no PASS, and a filesystem that the kernel calls damaged is a finding."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from file_books import HOLE, FileBook, file, synced, tree
from files_on_record import SCANNED, bench_with_files, judged, on_record, remove, scan, unknown, whole, write
from msgspec.structs import replace
from stories import CUT, VICTIM, Bench

from plugpull.checks import files_kept, unmountable
from plugpull.checks.files.file_doubts import round_doubts
from plugpull.checks.files.file_rounds import file_rounds
from plugpull.checks.files.filesystem_check import Checked, checker_says
from plugpull.history import events as ev
from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree
from plugpull.integrity.oracle.files.ledger import decode_file_ledger


def found_twice(first: FoundTree, second: FoundTree, fstype: str = "ext4") -> Bench:
    bench = bench_with_files()
    book, _, _ = synced()
    write(bench, book, fstype, 1, 0.0)
    scan(bench, first, 1, 0.0)
    bench.add(
        ev.FilesystemChecked(
            at=SCANNED + 0.6, disk=VICTIM, fstype=fstype, command="e2fsck -f -n", status=0, seconds=0.2
        )
    )
    remove(bench, second, 1, 0.0)
    return bench


def entry() -> FoundEntry:
    book, made, wrote = synced()
    assert book
    return file("a", made, wrote)


def both(*entries: FoundEntry, removed: bool = True) -> FoundTree:
    return tree(*entries, removal_tried=removed)


CHANGES: dict[str, dict[str, Any]] = {
    "kind": {"kind": "directory"},
    "inode number": {"inode": 4711},
    "link count": {"links": 3},
    "size": {"size": 12345},
    "readability": {"errno": errno.EIO},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_file_that_is_another_at_its_removal_is_a_doubt(what: str) -> None:
    one = entry()
    bench = found_twice(both(one), both(replace(one, **CHANGES[what])))
    assert f"a had another {what} when the files were removed than the scan found" in unknown(bench)


def test_a_scan_of_another_round_is_a_doubt() -> None:
    one = entry()
    bench = found_twice(both(one), both(one))
    assert judged(bench).unknowns == ()
    bench.replace(ev.FileScanBegun, round=2)
    assert "round 1 of files: its scan is said to be of round 2" in unknown(bench)


def test_a_writer_that_failed_without_an_operation_that_did_is_a_doubt() -> None:
    one = entry()
    bench = found_twice(both(one), both(one))
    bench.replace(ev.FileRoundEnded, status=1)
    assert "its writer ended with an error, and none of its operations failed" in unknown(bench)


def test_files_that_come_and_go_between_the_scans_are_a_doubt() -> None:
    one, ghost = entry(), replace(entry(), path="ghost")
    assert "ghost was there when the files were removed" in unknown(found_twice(both(one), both(one, ghost)))
    assert "a was found by the scan, and was not there any more" in unknown(found_twice(both(one), both()))
    assert "that its files were removed is not on record" in unknown(found_twice(both(one), both(one, removed=False)))


def test_what_is_wrong_is_named_although_the_scans_differ() -> None:
    one = entry()
    wrong = replace(one, content=file("a", 1, HOLE).content)
    bench = found_twice(both(wrong), both(replace(one, inode=4711)))
    (only,) = judged(bench).findings
    assert "lost after fsync" in only.summary


def test_a_filesystem_without_inode_numbers_makes_up_others() -> None:
    one = entry()
    bench = found_twice(both(one), both(replace(one, inode=4711)), "vfat")
    assert not any("inode" in why for why in judged(bench).unknowns)


# --- operations, mounts and the kernel --------------------------------------------------------------------------------


def test_an_operation_that_fails_before_the_cut_is_a_doubt() -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    book.create("b", errno=errno.ENOSPC)
    on_record(bench, book, file("a", made, wrote))
    assert "create, operation 5, failed with ENOSPC although nothing was cut" in unknown(bench)


def test_an_operation_may_fail_once_the_disk_is_cut() -> None:
    bench = bench_with_files()
    book = FileBook()
    made = book.create("a")
    wrote = book.write("a")
    book.fsync("a")
    book.fsyncdir()
    for _ in range(1000):  # two milliseconds each
        book.fsync("a")
    book.create("b", errno=errno.ENOSPC)
    on_record(bench, book, file("a", made, wrote))
    assert not any("ENOSPC" in why for why in judged(bench).unknowns)


def test_a_mount_that_failed_before_it_succeeded_is_a_doubt() -> None:
    bench = whole()
    why = "Structure needs cleaning"
    failed = ev.Acted(at=SCANNED - 0.6, action="mount", disk=VICTIM, ok=False, seconds=0.05, detail=why)
    bench.add(failed)
    assert f"its mount failed before it succeeded: {why}" in unknown(bench)
    bench.drop(ev.Acted, keep=lambda event: event is not failed)
    bench.add(replace(failed, at=CUT + 0.4))
    judgement = judged(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ()), "its disk was gone"


LINES = (
    "JBD2: recovery failed",
    "JBD2: Invalid checksum recovering data block 1203 in log",
    "EXT4-fs (sdb): warning: mounting fs with errors, running e2fsck is recommended",
    "BTRFS error (device sdb): bdev /dev/sdb errs: wr 0, rd 0, flush 0, corrupt 1, gen 0",
    "F2FS-fs (sdb): Cannot recover all fsync data errno=-2",
)


@pytest.mark.parametrize("text", LINES)
def test_a_filesystem_that_the_kernel_calls_damaged_is_a_finding(text: str) -> None:
    bench = whole()
    bench.add(ev.KernelMessage(at=SCANNED - 0.3, text=text, level=3))
    (only,) = judged(bench).findings
    assert only.summary == f"the kernel found the ext4 on {VICTIM} damaged when it mounted it again: {text}"


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (CUT + 0.2, "BTRFS error (device sdb): bdev /dev/sdb errs: wr 3, rd 0, flush 1, corrupt 0, gen 0"),
        (SCANNED - 0.3, "BTRFS info (device sdb): bdev /dev/sdb errs: wr 3, rd 0, flush 1, corrupt 0, gen 0"),
        (CUT + 0.2, "JBD2: recovery failed"),
    ],
)
def test_what_the_loss_of_the_disk_causes_is_no_damage(at: float, text: str) -> None:
    bench = whole()
    bench.add(ev.KernelMessage(at=at, text=text, level=3))
    assert judged(bench).findings == ()


@pytest.mark.parametrize(("took", "found"), [(2.0, 0), (70.0, 1)])
def test_a_mount_must_end_in_time(took: float, found: int) -> None:
    bench = whole()
    bench.replace(ev.Acted, lambda event: (event.action, event.at) == ("mount", SCANNED - 0.2), seconds=took)
    said = [one.summary for one in judged(bench).findings if "mounting the ext4" in one.summary]
    assert len(said) == found


@pytest.mark.parametrize(("took", "found"), [(2.0, 0), (40.0, 1)])
def test_a_healthy_filesystem_must_be_unmounted_in_time(took: float, found: int) -> None:
    bench = whole()
    late = ev.Acted(at=SCANNED + 45.0, action="umount", disk=VICTIM, ok=True, seconds=took)
    bench.add(ev.Acted(at=SCANNED + 2.0, action="mount", disk=VICTIM, ok=True, seconds=0.1), late)
    judgement = bench.judge(unmountable(VICTIM))
    assert len([one for one in judgement.findings if "(limit 30 s)" in one.summary]) == found


# --- checkers that contradict themselves ------------------------------------------------------------------------------

HEALTHY = (
    ("ext4", "Pass 5: Checking group summary information\nclean, 11/16384 files"),
    ("btrfs", "found 147456 bytes used, no error found\ntotal csum bytes: 0"),
    ("f2fs", "[FSCK] fixing SIT types\n[FSCK] other corrupted bugs                           [Ok..]"),
)
ODD = (
    ("ext4", "Inode 13, i_blocks is 8, should be 16.  Fix? no"),
    ("ext4", "a: ********** WARNING: Filesystem still has errors **********"),
    ("btrfs", "ERROR: errors found in fs roots\nfound 147456 bytes used, error(s) found"),
    ("f2fs", "[ASSERT] (sanity_check_nid: 500)  --> nid[0x5] is not valid"),
    ("f2fs", "[FSCK] other corrupted bugs                           [Fail]"),
    ("xfs", "would have reset inode 131 nlinks from 1 to 2"),
)


@pytest.mark.parametrize(("fstype", "output"), HEALTHY)
def test_a_checker_that_finds_nothing(fstype: str, output: str) -> None:
    check = ev.FilesystemChecked(disk=VICTIM, fstype=fstype, command="fsck", status=0, seconds=0.1, output=output)
    assert checker_says(check) is Checked.CLEAN


@pytest.mark.parametrize(("fstype", "output"), ODD)
def test_a_checker_that_finds_errors_and_ends_with_0_gives_no_verdict(fstype: str, output: str) -> None:
    check = ev.FilesystemChecked(disk=VICTIM, fstype=fstype, command="fsck", status=0, seconds=0.1, output=output)
    assert checker_says(check) is Checked.UNKNOWN


@pytest.mark.parametrize(("status", "doubted"), [(0, True), (1, False)])
def test_a_writer_whose_operation_failed_does_not_end_well(status: int, doubted: bool) -> None:
    book, _, _ = synced()
    book.fsync("a", errno=errno.EIO)
    bench = bench_with_files()
    write(bench, book, "ext4", 1, 0.0)
    bench.replace(ev.FileRoundEnded, status=status)
    (one,) = file_rounds(bench.story())
    said = list(round_doubts(bench.story(), one, decode_file_ledger(one.ledger), ()))
    assert any("its writer ended without an error" in doubt for doubt in said) is doubted


@pytest.mark.parametrize(("fstype", "found"), [("ext4", 1), ("vfat", 0)])
def test_the_checker_of_another_filesystem_says_nothing_of_this_one(fstype: str, found: int) -> None:
    bench = found_twice(both(entry()), both(entry()))
    bench.replace(ev.FilesystemChecked, fstype=fstype, status=4 if fstype == "ext4" else 1)
    findings = bench.judge(files_kept(VICTIM)).findings
    assert sum("has errors after" in one.summary for one in findings) == found
