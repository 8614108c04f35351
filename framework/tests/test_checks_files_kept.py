"""The check ``files_kept``: what it makes of rounds of files on record, whole and broken."""

from __future__ import annotations

import errno

import msgspec
import pytest
from file_books import FileBook, directory, file, synced
from files_on_record import BEGUN, CACHE, SCANNED, bench_with_files, judged, on_record, pieces, unknown, whole
from stories import CUT, VICTIM, Bench

from plugpull.checks import decode_check, encode_check, files_kept, kernel_clean
from plugpull.checks.data.data_sound import DataSound
from plugpull.history import events as ev
from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree, encode_found_tree
from plugpull.integrity.oracle.files.wrong import FileDamage
from plugpull.judging.judge import judge_story


def test_what_was_synced_is_there() -> None:
    judgement = judged(whole())
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert judgement.worst == "every promised file is there: ext4 clean (1 names compared, 1 were promised)"
    (measured,) = judgement.measurements
    assert (measured.name, measured.subject, measured.value, measured.n) == ("wrong files", VICTIM, 0.0, 1)
    assert measured.parameters == {"names compared": 1.0, "blocks compared": 3.0, "kept": 1.0}


def test_the_sentence_says_that_files_were_written() -> None:
    bench = bench_with_files(power=False)
    book, made, wrote = synced()
    on_record(bench, book, file("a", made, wrote))
    bench.checks = (files_kept(VICTIM),)
    sentence = judge_story(bench.story()).sentence
    assert sentence.startswith("PASS: disk1.cable cut (data) while writing and writing files")


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


@pytest.mark.parametrize(
    ("text", "after", "said"),
    [
        ("Aborting journal on device sdb-8.", -0.0005, True),
        ("Aborting journal on device sdb-8.", 0.0005, False),
        ("Aborting journal on device sdc-8.", -0.0005, False),
        ("EXT4-fs (sdb): mounted filesystem", -0.0005, False),
    ],
    ids=["before", "after", "another journal", "another line"],
)
def test_a_sync_that_returned_after_the_journal_was_aborted_is_named(text: str, after: float, *, said: bool) -> None:
    bench = bench_with_files()
    book, entries = damaged(FileDamage.OLD_VERSION)
    on_record(bench, book, *entries)
    last = book.made.operations[-1].returned
    assert last is not None
    bench.add(ev.KernelMessage(at=BEGUN + 0.5 + last + after, text=text))
    clause = "; the sync that promised it returned 0.001 s after the kernel had aborted the journal"
    assert found_out(bench).endswith(clause) is said


def test_what_an_earlier_sync_promised_is_not_excused_by_a_later_one() -> None:
    bench = bench_with_files()
    book, *_ = synced()
    book.create("b")
    book.fsync("b")
    book.fsyncdir()
    on_record(bench, book)
    last = book.made.operations[-1].submitted
    bench.add(ev.KernelMessage(at=BEGUN + 0.5 + last, text="Aborting journal on device sdb-8."))
    assert "(2 lost after fsync)" in found_out(bench)
    assert "aborted" not in found_out(bench)


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


def test_a_filesystem_that_did_not_mount_is_not_called_recovered_when_its_checker_finds_errors() -> None:
    bench = bench_with_files()
    book, *_ = synced()
    on_record(bench, book, mount_errno=errno.EUCLEAN)
    check = ev.FilesystemChecked(disk=VICTIM, fstype="ext4", command="e2fsck -f -n", status=4, seconds=0.1)
    bench.add(msgspec.structs.replace(check, at=SCANNED + 0.6, output="Bad magic number\n"))
    said = [finding.summary for finding in judged(bench).findings]
    assert any("and could not be mounted (Structure needs cleaning" in one for one in said), said
    assert not any("kernel recovered it" in one for one in said)
    assert any("1 unmountable" in one for one in said), "it need not be unmounted for the check"


def test_a_checker_that_finds_errors_accuses_a_filesystem_with_a_journal() -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    on_record(bench, book, file("a", made, wrote), status=4, output="Block bitmap differences: -(513--516)\n")
    (finding,) = judged(bench).findings
    assert "has errors after the cut" in finding.summary
    assert "although the kernel recovered it" in finding.summary
    assert "e2fsck -f -n ended with status 4" in finding.summary
    assert any("Block bitmap differences" in line for line in finding.evidence)


@pytest.mark.parametrize(("fstype", "status"), [("vfat", 1), ("exfat", 4)])
def test_a_fat_may_be_unclean_after_a_cut(fstype: str, status: int) -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    on_record(bench, book, file("a", made, wrote, inode=0), fstype=fstype, status=status, output="Dirty bit is set.\n")
    judgement = judged(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert f"{fstype} not clean" in judgement.worst


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
    on_record(bench, book, file("a", made, wrote), later=CUT - 13.0)
    bench.replace(ev.FileRoundPlanned, at=12.6)
    bench.replace(ev.FileRoundBegun, at=12.7)
    bench.replace(ev.FileRoundEnded, at=CUT + 1.0)
    judgement = judged(bench)
    assert (judgement.findings, judgement.unknowns) == ((), ())
    assert "writers were given EIO from fsync" in judgement.worst


@pytest.mark.parametrize("overlay", [False, True])
def test_a_repair_before_the_removal_must_be_said(overlay: bool) -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    on_record(bench, book, file("a", made, wrote))
    check = next(one for one in bench.story().events if isinstance(one, ev.FilesystemChecked))
    bench.add(msgspec.structs.replace(check, at=(check.at or 0.0) + 0.01, repaired=True, overlay=overlay))
    doubts = "; ".join(judged(bench).unknowns)
    assert ("its filesystem was repaired before its files were removed" in doubts) == (not overlay)


def test_an_error_of_the_device_before_the_cut_is_a_finding() -> None:
    bench = bench_with_files()
    book, made, wrote = synced()
    book.fsync("a", errno=errno.EIO)
    on_record(bench, book, file("a", made, wrote))
    (finding,) = judged(bench).findings
    assert finding.summary == "fsync of a file on disk1 failed with errno 5 although nothing was cut"


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
