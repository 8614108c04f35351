"""The check ``files_kept``: what it makes of rounds of files on record, whole and broken."""

from __future__ import annotations

import errno

import msgspec
import pytest
from file_books import FileBook, directory, file, synced
from files_on_record import CACHE, SCANNED, bench_with_files, judged, lines_of, on_record, pieces, unknown, whole
from stories import CUT, VICTIM, Bench, healthy

from plugpull.checks import decode_check, encode_check, files_kept, kernel_clean, returned
from plugpull.checks.data_sound import DataSound
from plugpull.history import events as ev
from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree, encode_found_tree
from plugpull.integrity.oracle.files.wrong import FileDamage


def test_what_was_synced_is_there() -> None:
    judgement = judged(whole())
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "every promised file is there: ext4 clean (1 names compared, 1 were promised)"
    (measured,) = judgement.measurements
    assert (measured.name, measured.subject, measured.value, measured.n) == ("wrong files", VICTIM, 0.0, 1)
    assert measured.parameters == {"names compared": 1.0, "blocks compared": 3.0, "kept": 1.0}


def test_the_check_survives_a_history() -> None:
    for check in (files_kept(), files_kept(VICTIM)):
        assert decode_check(encode_check(check)) == check


def test_a_recovery_that_the_kernel_logged_is_named() -> None:
    bench = whole()
    bench.add(ev.KernelMessage(at=SCANNED - 0.3, text="EXT4-fs (sdb): recovery complete"))
    assert "ext4 recovered" in judged(bench).worst


# --- what is wrong ----------------------------------------------------------------------------------------------------


def found_out(bench: Bench, *, of: int = 1) -> str:
    judgement = judged(bench)
    assert len(judgement.findings) == of, judgement.unknowns
    assert judgement.worst == ""
    finding = judgement.findings[0]
    assert (finding.check, finding.subject) == ("files_kept", VICTIM)
    assert f"the ext4 on {VICTIM} is wrong after the cut of {VICTIM}.power (which took its power)" in finding.summary
    return finding.summary


def replaced() -> tuple[FileBook, int, int, int]:
    """A file with an old and a new version, both synced: (book, file, old, new)."""
    book, made, old = synced()
    new = book.write("a")
    book.fsync("a")
    return book, made, old, new


def renamed() -> tuple[FileBook, int, int]:
    book, made, wrote = synced()
    book.rename("a", "b")
    return book, made, wrote


def damaged(kind: FileDamage) -> tuple[FileBook, tuple[FoundEntry, ...]]:
    """A ledger, and what it does not allow."""
    book, made, old, new = replaced()
    match kind:
        case FileDamage.LOST:
            return book, ()
        case FileDamage.OLD_VERSION:
            return book, (file("a", made, old),)
        case FileDamage.FOREIGN:
            return book, (file("a", made + 50, new, inode=100 + made),)
        case FileDamage.CORRUPT:
            return book, (file("a", made, b"\x5a" * 512),)
        case FileDamage.WRONG_SIZE:
            return book, (file("a", made, new, new),)
        case FileDamage.LINK_COUNT:
            return book, (file("a", made, new, links=2),)
        case FileDamage.UNREADABLE:
            return book, (file("a", made, errno=errno.EIO),)
        case FileDamage.UNKNOWN_NAME:
            return book, (file("a", made, new), directory("new", 77))
        case FileDamage.RESURRECTED:
            book.unlink("a")
            book.fsyncdir()
            return book, (file("a", made, new),)
    book, made, wrote = renamed()
    if kind is FileDamage.NEITHER_NAME:
        return book, ()
    shown = file("b", made, wrote, links=1), file("a", made, wrote, links=1)
    return book, shown


@pytest.mark.parametrize(
    "kind", [kind for kind in FileDamage if kind not in (FileDamage.UNMOUNTABLE, FileDamage.UNREMOVABLE)]
)
def test_each_kind_of_damage_is_named(kind: FileDamage) -> None:
    bench = bench_with_files()
    book, entries = damaged(kind)
    on_record(bench, book, *entries)
    said = found_out(bench)
    assert str(kind) in said


def test_a_directory_that_cannot_be_removed_is_named() -> None:
    bench = bench_with_files()
    book = FileBook()
    made = book.mkdir("d")
    book.fsyncdir()
    found = msgspec.convert(
        {
            "entries": [msgspec.to_builtins(directory("d", made))],
            "removal_tried": True,
            "unremovable": [{"path": "d", "errno": errno.ENOTEMPTY}],
        },
        FoundTree,
    )
    on_record(bench, book, found=found)
    assert "unremovable directory" in found_out(bench)


def test_a_filesystem_that_cannot_be_mounted_is_a_finding() -> None:
    bench = bench_with_files()
    book, *_ = synced()
    on_record(bench, book, mount_errno=errno.EUCLEAN)
    assert "unmountable" in found_out(bench)


def test_a_disk_that_lost_the_filesystem_is_a_finding() -> None:
    bench = bench_with_files()
    book, *_ = synced()
    on_record(bench, book, mount_errno=None, lost=True)
    assert "a disk without one found" in found_out(bench)


def test_a_checker_that_finds_errors_accuses_a_filesystem_with_a_journal() -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    on_record(bench, book, file("a", made, wrote), status=4, output="Block bitmap differences: -(513--516)\n")
    (finding,) = judged(bench).findings
    assert "has errors after the cut" in finding.summary
    assert "e2fsck -f -n ended with status 4" in finding.summary
    assert any("Block bitmap differences" in line for line in finding.evidence)


def test_a_fat_may_be_unclean_after_a_cut() -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    on_record(bench, book, file("a", made, wrote, inode=0), fstype="vfat", status=1, output="Dirty bit is set.\n")
    judgement = judged(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "vfat not clean" in judgement.worst


def repaired(*entries: FoundEntry) -> Bench:
    """A FAT that was whole after the cut, and shows these entries after its repair."""
    bench = bench_with_files()
    book, made, wrote = synced()
    on_record(bench, book, file("a", made, wrote, inode=0), fstype="vfat", status=1)
    bench.drop(ev.FileScanPart, keep=lambda event: "scan101" not in event.job)
    bench.drop(ev.FileScanEnded, keep=lambda event: "scan101" not in event.job)
    bench.replace(ev.FileScanBegun, lambda event: event.removing, repaired=True)
    data, job = encode_found_tree(FoundTree(entries=entries, removal_tried=True)), f"scan101-{VICTIM}"
    fixed = ev.FilesystemChecked(
        at=SCANNED + 0.7, disk=VICTIM, fstype="vfat", command="fsck.vfat -a -w", status=1, seconds=0.1, repaired=True
    )
    bench.add(
        fixed,
        *(
            ev.FileScanPart(at=SCANNED + 1.1, disk=VICTIM, job=job, offset=at, data=text)
            for at, text in pieces(data, 200)
        ),
        ev.FileScanEnded(at=SCANNED + 1.2, disk=VICTIM, job=job, received=len(data), status=0),
    )
    return bench


def test_a_fat_that_a_repair_left_whole_is_repaired() -> None:
    _, made, wrote = synced()
    judgement = judged(repaired(file("a", made, wrote, inode=0)))
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "vfat repaired" in judgement.worst


def test_a_repair_that_loses_a_promised_file_is_a_finding() -> None:
    (finding,) = judged(repaired()).findings
    assert "and a repair, before which its promised files were there" in finding.summary
    assert "lost after fsync" in finding.summary


def test_without_the_record_of_the_repair_it_is_not_known() -> None:
    _, made, wrote = synced()
    bench = repaired(file("a", made, wrote, inode=0))
    bench.drop(ev.FilesystemChecked, keep=lambda event: not event.repaired)
    assert "the repair of its filesystem is not on record" in unknown(bench)


@pytest.mark.parametrize("asked", [True, False])
def test_a_lost_file_is_a_finding_though_nobody_asked(asked: bool) -> None:
    bench = bench_with_files()
    book, *_ = synced()
    on_record(bench, book)
    bench.checks = (files_kept(VICTIM),) if asked else (kernel_clean(),)
    findings = bench.judge(DataSound()).findings
    assert [finding.check for finding in findings] == ([] if asked else ["files_kept"])


# --- what may be gone -------------------------------------------------------------------------------------------------


def test_what_was_not_synced_before_the_cut_may_be_gone() -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    book.create("b")
    book.write("b")
    on_record(bench, book, file("a", made, wrote))
    judgement = judged(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_the_error_that_the_writer_was_given_is_named() -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    book.fsync("a", errno=errno.EIO)
    on_record(bench, book, file("a", made, wrote))
    judgement = judged(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "writers were given EIO from fsync" in judgement.worst


def test_a_sync_that_returned_after_the_cut_may_promise_nothing() -> None:
    """sync and syncfs report success after a filesystem was shut down."""
    bench = bench_with_files()
    book = FileBook()
    book.create("a")
    book.syncfs()
    on_record(bench, book, later=CUT - 13.0)
    bench.replace(ev.FileRoundPlanned, at=12.6)
    bench.replace(ev.FileRoundBegun, at=12.7)
    bench.replace(ev.FileRoundEnded, at=CUT + 1.0)
    judgement = judged(bench)
    assert judgement.findings == ()


def test_a_disk_whose_flushes_are_never_sent_promises_nothing() -> None:
    bench = bench_with_files()
    book, *_ = synced()
    on_record(bench, book)
    assert len(judged(bench).findings) == 1
    assumed = "sd 1:0:0:0: [sdb] Assuming drive cache: write through"
    bench.replace(ev.KernelMessage, lambda event: "Write cache" in event.text, text=assumed)
    assert judged(bench).findings == ()


@pytest.mark.parametrize("members", [("disk1", "disk2"), ("disk2", "disk3")])
def test_a_filesystem_on_several_disks_is_cut_with_any_of_them(members: tuple[str, ...]) -> None:
    """A file that was never synced may be gone after a cut of a member, and not without one."""
    bench = bench_with_files()
    for letter, at in zip("cd", (10.45, 10.55), strict=True):
        bench.add(ev.KernelMessage(at=at, text=f"sd 2:0:0:0: {CACHE.replace('sdb', f'sd{letter}')}"))
    book = FileBook()
    book.create("a")
    on_record(bench, book)
    bench.replace(ev.FileRoundBegun, disks=members)
    assert bool(judged(bench).findings) is ("disk1" not in members)


# --- missing evidence -------------------------------------------------------------------------------------------------


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


def test_a_disk_that_did_not_come_back_leaves_it_open() -> None:
    bench = bench_with_files()
    book, *_ = synced()
    on_record(bench, book, mount_errno=None)
    assert "could not be mounted" in unknown(bench)
