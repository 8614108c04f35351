"""The oracle's rules for files, each with a filesystem that keeps it and one that breaks it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import get_args

import msgspec
import pytest
from file_books import HOLE, RUN, B, FileBook, directory, file, stamp_of, symlink, tree

from plugpull.integrity.oracle.files.found import FoundEntry, FoundTree, Stretch, Unremovable, decode_found_tree
from plugpull.integrity.oracle.files.found import encode_found_tree as encoded
from plugpull.integrity.oracle.files.ledger import CUT_OFF, decode_file_ledger
from plugpull.integrity.oracle.files.promises import PROMISES, CutEffect, FilesystemClass
from plugpull.integrity.oracle.files.rules import FileOpinion, judge
from plugpull.integrity.oracle.files.wrong import FileDamage, FileWrong

JOURNALED: tuple[FilesystemClass, ...] = ("ext4", "xfs", "btrfs", "f2fs")
FAT: tuple[FilesystemClass, ...] = ("vfat", "exfat", "ntfs3")
EVERY = (*JOURNALED, *FAT)
CABLE = CutEffect(powered=True)


def opinion(
    book: FileBook, found: FoundTree, name: FilesystemClass = "ext4", cut: CutEffect | None = None
) -> FileOpinion:
    return judge(book.made, found, PROMISES[name], cut)


def only(made: FileOpinion) -> FileWrong:
    (wrong,) = made.wrong
    assert wrong.sentence()
    return wrong


def damage(
    book: FileBook, *entries: FoundEntry, name: FilesystemClass = "ext4", cut: CutEffect | None = None
) -> set[FileDamage]:
    return {wrong.kind for wrong in opinion(book, tree(*entries), name, cut).wrong}


def synced(name: str = "a", *, blocks: int = 1) -> tuple[FileBook, int, int]:
    """A file with data, synced with its directory. Returns the book, the file and the write."""
    book = FileBook()
    made = book.create(name)
    wrote = book.write(name, blocks=blocks)
    book.fsync(name)
    book.fsyncdir()
    return book, made, wrote


# --- what was kept ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_what_was_fsynced_is_there(name: FilesystemClass) -> None:
    book, made, wrote = synced()
    good = opinion(book, tree(file("a", made, wrote)), name)
    assert good.intact, good
    assert (good.names, good.blocks, good.kept) == (1, 1, 1)


@pytest.mark.parametrize("name", EVERY)
def test_a_file_that_was_fsynced_and_is_not_there_is_lost(name: FilesystemClass) -> None:
    book, _, _ = synced()
    wrong = only(opinion(book, tree(), name))
    assert (wrong.kind, wrong.path) == (FileDamage.LOST, "a")
    by_file = PROMISES[name].names_new
    assert wrong.kept_by is book.made.operations[2 if by_file else 3]
    kept = "fsync of a, operation 3, returned at 0.007 s" if by_file else "fsyncdir of the top directory, operation 4"
    assert kept in wrong.sentence()


@pytest.mark.parametrize("name", EVERY)
def test_what_was_never_synced_may_be_there_or_not(name: FilesystemClass) -> None:
    book = FileBook()
    made = book.create("a")
    wrote = book.write("a", blocks=2)
    for found in (tree(), tree(file("a", made)), tree(file("a", made, HOLE, wrote)), tree(file("a", made, wrote))):
        assert not opinion(book, found, name).wrong


@pytest.mark.parametrize(("name", "kept"), [("ext4", True), ("xfs", True), ("btrfs", True), ("f2fs", False)])
def test_fsync_of_a_new_file_keeps_its_name_where_that_is_promised(name: FilesystemClass, kept: bool) -> None:
    book = FileBook()
    book.mkdir("d")
    book.create("d/a")
    book.fsync("d/a")
    made = opinion(book, tree(), name)
    assert [(wrong.kind, wrong.path) for wrong in made.wrong] == ([(FileDamage.LOST, "d")] if kept else [])


def test_fsync_of_a_new_file_keeps_the_directory_only_while_it_is_in_it() -> None:
    book = FileBook()
    into = book.mkdir("e")
    book.fsyncdir()
    book.mkdir("d")
    made = book.create("d/a")
    book.rename("d/a", "e/a")
    book.fsync("e/a")
    there = directory("e", into)
    assert damage(book, there, file("e/a", made)) == set()
    assert damage(book, there) == {FileDamage.NEITHER_NAME}


@pytest.mark.parametrize("name", JOURNALED)
def test_fdatasync_keeps_data_and_size_but_not_the_name(name: FilesystemClass) -> None:
    book = FileBook()
    made = book.create("a")
    wrote = book.write("a")
    book.fdatasync("a")
    assert damage(book, name=name) == set()
    assert damage(book, file("a", made, wrote), name=name) == set()
    assert damage(book, file("a", made), name=name) == {FileDamage.WRONG_SIZE}


def test_msync_keeps_its_blocks_and_no_others() -> None:
    book, made, first = synced(blocks=2)
    second = book.write("a", blocks=2)
    mapped = book.mmap("a", 1)
    for blocks in ((second, mapped), (first, mapped)):
        assert damage(book, file("a", made, *blocks)) == set()
    assert damage(book, file("a", made, second, second)) == {FileDamage.OLD_VERSION}
    book.fsync("a")
    assert damage(book, file("a", made, first, mapped)) == {FileDamage.OLD_VERSION}


@pytest.mark.parametrize("sync", ["sync", "syncfs"])
@pytest.mark.parametrize("name", JOURNALED)
def test_sync_keeps_everything(sync: str, name: FilesystemClass) -> None:
    book = FileBook()
    inside = book.mkdir("d")
    made = book.create("d/a")
    wrote = book.write("d/a")
    link = book.symlink("d/s")
    getattr(book, sync)()
    links = 2
    whole = (directory("d", inside, links), file("d/a", made, wrote), symlink("d/s", link))
    assert opinion(book, tree(*whole), name).intact
    assert damage(book, name=name) == {FileDamage.LOST}
    assert damage(book, *whole[:2], name=name) == {FileDamage.LOST}
    assert damage(book, *whole[:2], symlink("d/s", link, "elsewhere"), name=name) == {FileDamage.FOREIGN}


@pytest.mark.parametrize(("name", "kept"), [("ext4", True), ("vfat", False), ("exfat", False)])
def test_sync_of_the_fat_family_is_kept_by_a_disk_that_keeps_its_power(name: FilesystemClass, kept: bool) -> None:
    book = FileBook()
    book.create("a")
    book.write("a")
    book.sync()
    assert damage(book, name=name, cut=CABLE) == {FileDamage.LOST}
    assert bool(damage(book, name=name)) is kept


def test_sync_and_syncfs_after_the_cut_promise_nothing() -> None:
    for sync in ("sync", "syncfs"):
        book = FileBook()
        book.create("a")
        getattr(book, sync)()
        assert damage(book, cut=CutEffect(at=0.001, powered=True)) == set()
        assert damage(book, cut=CutEffect(at=1.0, powered=True)) == {FileDamage.LOST}


@pytest.mark.parametrize(("name", "kept"), [("ext4", True), ("xfs", True), ("btrfs", True), ("f2fs", False)])
def test_an_fsync_that_succeeds_after_the_cut_lied(name: FilesystemClass, kept: bool) -> None:
    book, made, old = synced()
    book.write("a")
    book.fsync("a")
    assert bool(damage(book, file("a", made, old), name=name, cut=CutEffect(at=0.0091, powered=True))) is kept
    assert damage(book, file("a", made, old), name=name, cut=CutEffect(at=1.0)) == {FileDamage.OLD_VERSION}


def test_without_flushes_only_a_disk_that_keeps_its_power_keeps_anything() -> None:
    book, _, _ = synced()
    assert damage(book, cut=CutEffect(flushes=False)) == set()
    assert damage(book, cut=CutEffect(flushes=False, powered=True)) == {FileDamage.LOST}


# --- data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_every_kind_of_wrong_data_is_named(name: FilesystemClass) -> None:
    book, made, old = synced(blocks=2)
    new = book.write("a", blocks=2)
    book.fsync("a")
    foreign = Stretch(content="stamped", first=0, blocks=1, run=RUN, file=77, number=new, origin=0)
    earlier = Stretch(content="stamped", first=0, blocks=1, run=RUN - 1, file=made, number=new, origin=0)
    moved = Stretch(content="stamped", first=0, blocks=1, run=RUN, file=made, number=new, origin=5)
    never = Stretch(content="stamped", first=0, blocks=1, run=RUN, file=made, number=1, origin=0)
    failed = Stretch(content="unreadable", first=0, blocks=1, errno=errno.EIO)
    due: dict[FileDamage, int | bytes | Stretch] = {
        FileDamage.OLD_VERSION: old,
        FileDamage.LOST: HOLE,
        FileDamage.CORRUPT: b"\x5a" * B,
        FileDamage.UNREADABLE: failed,
    }
    assert opinion(book, tree(file("a", made, new, new)), name).intact
    for kind, value in due.items():
        wrong = only(opinion(book, tree(file("a", made, new, value)), name))
        assert (wrong.kind, wrong.block, wrong.blocks) == (kind, 1, 1)
        assert wrong.expected == f"the data of operation {new}"
    for stray, expected in ((foreign, "FOREIGN"), (earlier, "FOREIGN"), (moved, "CORRUPT"), (never, "CORRUPT")):
        assert only(opinion(book, tree(file("a", made, stray, new)), name)).kind is FileDamage[expected]


@pytest.mark.parametrize("name", EVERY)
def test_a_size_that_was_kept_is_kept(name: FilesystemClass) -> None:
    book, made, wrote = synced(blocks=3)
    assert damage(book, file("a", made, wrote, wrote), name=name) == {FileDamage.WRONG_SIZE}
    assert damage(book, file("a", made, wrote, wrote, wrote, HOLE), name=name) == {FileDamage.WRONG_SIZE}


@pytest.mark.parametrize("name", JOURNALED)
def test_a_truncation_that_was_kept_is_kept(name: FilesystemClass) -> None:
    """btrfs: "fix zero size inode with non-zero size after log replay", fstests generic/788."""
    book = FileBook()
    made = book.create("a")
    wrote = book.write("a", blocks=128)
    book.sync()
    book.truncate("a", 0)
    book.fsync("a")
    book.link("a", "b")
    book.fsyncdir()
    names = [file(path, made, *[wrote] * 128, links=2) for path in ("a", "b")]
    assert opinion(book, tree(file("a", made, links=2), file("b", made, links=2)), name).intact
    assert damage(book, *names, name=name) == {FileDamage.WRONG_SIZE}


def test_between_two_sizes_every_size_is_legal_and_holes_are() -> None:
    book, made, wrote = synced()
    later = book.append("a", blocks=3)
    for blocks in ((wrote,), (wrote, later), (wrote, HOLE, later), (wrote, later, later, later)):
        assert damage(book, file("a", made, *blocks)) == set()
    assert damage(book, file("a", made)) == {FileDamage.WRONG_SIZE}
    assert damage(book, file("a", made, HOLE, later)) == {FileDamage.LOST}


def test_what_was_cut_off_and_written_again_may_be_old_new_or_zeros() -> None:
    book, made, old = synced(blocks=2)
    book.truncate("a", 0)
    new = book.write("a", 1)
    for blocks in ((old, old), (), (HOLE, new), (HOLE, HOLE), (old, new)):
        assert damage(book, file("a", made, *blocks)) == set()
    book.fsync("a")
    assert damage(book, file("a", made, HOLE, new)) == set()
    assert damage(book, file("a", made, old, new)) == {FileDamage.OLD_VERSION}


def test_after_a_failed_fsync_a_later_success_promises_only_what_was_written_since() -> None:
    book, made, old = synced(blocks=2)
    doubtful = book.write("a", 0)
    book.fsync("a", errno=errno.EIO)
    later = book.write("a", 1)
    book.fsync("a")
    for first in (old, doubtful):
        assert damage(book, file("a", made, first, later)) == set()
        assert damage(book, file("a", made, first, old)) == {FileDamage.OLD_VERSION}
    assert damage(book, file("a", made, HOLE, later)) == {FileDamage.LOST}


def test_a_write_that_failed_or_never_returned_may_be_there_or_not() -> None:
    book, made, old = synced()
    failed = book.write("a", errno=errno.EIO)
    book.fsync("a")
    cut = book.write("a", returns=False)
    for value in (old, failed, cut):
        assert damage(book, file("a", made, value)) == set()


def test_a_mix_of_versions_that_may_be_there_is_legal_and_any_other_is_not() -> None:
    book, made, old = synced()
    new = book.write("a")
    one, two = stamp_of(book, old, made, 0), stamp_of(book, new, made, 0)
    assert damage(book, file("a", made, one[:256] + two[256:])) == set()
    assert damage(book, file("a", made, one[:256] + bytes(256))) == {FileDamage.CORRUPT}
    book.fsync("a")
    assert damage(book, file("a", made, one[:256] + two[256:])) == {FileDamage.CORRUPT}


def test_f2fs_may_garble_what_an_fsync_under_way_overwrites_if_the_disk_loses_power() -> None:
    book, made, old = synced(blocks=2)
    book.write("a", 0)
    book.fsync("a", returns=False)
    garbled = file("a", made, b"\x5a" * B, old)
    assert damage(book, garbled, name="f2fs") == set()
    assert damage(book, garbled, name="f2fs", cut=CABLE) == {FileDamage.CORRUPT}
    assert damage(book, garbled, name="ext4") == {FileDamage.CORRUPT}
    assert damage(book, file("a", made, old, b"\x5a" * B), name="f2fs") == {FileDamage.CORRUPT}


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", JOURNALED)
def test_a_rename_leaves_the_old_name_or_the_new_one(name: FilesystemClass) -> None:
    book, made, wrote = synced()
    book.rename("a", "b")
    old, new = file("a", made, wrote), file("b", made, wrote)
    assert opinion(book, tree(old), name).intact
    assert opinion(book, tree(new), name).intact
    assert only(opinion(book, tree(), name)).kind is FileDamage.NEITHER_NAME
    assert damage(book, old, new, name=name) >= {FileDamage.BOTH_NAMES}
    book.fsyncdir()
    assert only(opinion(book, tree(old), name)).kind is FileDamage.OLD_VERSION
    assert only(opinion(book, tree(), name)).kind is FileDamage.LOST
    assert FileDamage.BOTH_NAMES in damage(book, old, new, name=name)


@pytest.mark.parametrize("name", JOURNALED)
def test_a_rename_over_another_file_leaves_one_of_them(name: FilesystemClass) -> None:
    book = FileBook()
    a, b = book.create("a"), book.create("b")
    one, two = book.write("a"), book.write("b")
    book.sync()
    book.rename("a", "b")
    before, after = (file("a", a, one), file("b", b, two)), (file("b", a, one),)
    assert opinion(book, tree(*before), name).intact
    assert opinion(book, tree(*after), name).intact
    assert damage(book, name=name) == {FileDamage.NEITHER_NAME}
    assert damage(book, file("b", b, two), name=name) == {FileDamage.NEITHER_NAME}
    book.fsyncdir()
    assert opinion(book, tree(*after), name).intact
    assert damage(book, *before, name=name) == {FileDamage.OLD_VERSION}


def test_a_rename_between_directories_is_kept_by_an_fsync_of_either() -> None:
    for path in ("d", "e"):
        book = FileBook()
        d, e = book.mkdir("d"), book.mkdir("e")
        made = book.create("d/a")
        book.sync()
        book.rename("d/a", "e/a")
        book.fsyncdir(path)
        both = (directory("d", d), directory("e", e))
        assert damage(book, *both, file("e/a", made)) == set()
        assert damage(book, *both, file("d/a", made)) == {FileDamage.OLD_VERSION}
        assert damage(book, *both) == {FileDamage.LOST}


@pytest.mark.parametrize("name", JOURNALED)
def test_what_was_removed_for_good_stays_removed(name: FilesystemClass) -> None:
    book, made, wrote = synced()
    book.unlink("a")
    assert damage(book, file("a", made, wrote), name=name) == set()
    assert opinion(book, tree(), name).intact
    book.fsyncdir()
    assert damage(book, file("a", made, wrote), name=name) == {FileDamage.RESURRECTED}
    assert opinion(book, tree(), name).intact


def test_a_new_file_with_the_name_of_a_removed_one_is_not_taken_for_it() -> None:
    book, old, wrote = synced()
    book.unlink("a")
    new = book.create("a")
    later = book.write("a")
    book.fsync("a")
    assert damage(book, file("a", new, later)) == set()
    assert damage(book, file("a", old, wrote)) == {FileDamage.OLD_VERSION}
    stale = Stretch(content="stamped", first=0, blocks=1, run=RUN, file=old, number=wrote, origin=0)
    assert damage(book, file("a", new, stale)) == {FileDamage.FOREIGN}


@pytest.mark.parametrize(("name", "kept"), [("ext4", True), ("xfs", True), ("btrfs", True), ("f2fs", False)])
def test_a_moved_file_does_not_disappear_when_its_old_name_is_used_again(name: FilesystemClass, kept: bool) -> None:
    """fstests generic/342, which f2fs passes only with fsync_mode=strict."""
    book, old, wrote = synced()
    book.rename("a", "b")
    new = book.create("a")
    book.fsync("a")
    lost = opinion(book, tree(file("a", new)), name)
    assert [wrong.kind for wrong in lost.wrong] == ([FileDamage.NEITHER_NAME] if kept else [])
    assert damage(book, file("a", new), file("b", old, wrote), name=name) == set()


def test_a_name_never_shows_something_else() -> None:
    book = FileBook()
    a, b = book.create("a"), book.create("b")
    one, two = book.write("a"), book.write("b")
    book.sync()
    assert damage(book, file("a", a, one), file("b", b, two)) == set()
    assert FileDamage.FOREIGN in damage(book, file("a", b, two), file("b", a, one))
    assert FileDamage.FOREIGN in damage(book, directory("a", 99), file("b", b, two))
    assert damage(book, file("a", a, one), file("b", b, two), file("c", 9)) == {FileDamage.UNKNOWN_NAME}


def test_hard_links_are_counted() -> None:
    book, made, wrote = synced()
    book.link("a", "b")
    one, two = file("a", made, wrote), file("a", made, wrote, links=2)
    assert damage(book, one) == set()
    assert damage(book, two) == {FileDamage.LINK_COUNT}
    assert damage(book, file("b", made, wrote)) == {FileDamage.LOST}
    assert damage(book, two, file("b", made, wrote, links=2)) == set()
    book.fsyncdir()
    assert damage(book, one) == {FileDamage.LOST}
    book.unlink("a")
    assert damage(book, file("b", made, wrote)) == set()
    assert damage(book) == {FileDamage.LOST}


@pytest.mark.parametrize(("name", "counted"), [("ext4", True), ("xfs", True), ("f2fs", True), ("btrfs", False)])
def test_links_of_directories_are_counted_where_they_are_meant_to_be(name: FilesystemClass, counted: bool) -> None:
    book = FileBook()
    d, e = book.mkdir("d"), book.mkdir("d/e")
    book.sync()
    good, bad = directory("d", d, 3), directory("d", d, 2)
    inside = directory("d/e", e)
    assert damage(book, good, inside, name=name) == set()
    assert bool(damage(book, bad, inside, name=name)) is counted


def test_names_in_a_directory_that_need_not_be_there_need_not_be() -> None:
    book = FileBook()
    d = book.mkdir("d")
    made = book.create("d/a")
    book.fsyncdir("d")
    assert damage(book) == set()
    assert damage(book, directory("d", d)) == {FileDamage.LOST}
    assert damage(book, directory("d", d), file("d/a", made)) == set()


def test_a_directory_is_renamed_with_all_that_is_in_it() -> None:
    book = FileBook()
    d = book.mkdir("d")
    made = book.create("d/a")
    book.sync()
    book.rename("d", "e")
    for path in ("d", "e"):
        assert damage(book, directory(path, d), file(f"{path}/a", made)) == set()
    assert damage(book, directory("e", d)) == {FileDamage.LOST}
    assert damage(book) == {FileDamage.NEITHER_NAME}
    both = (directory("d", d), file("d/a", made), directory("e", d))
    assert damage(book, *both) >= {FileDamage.BOTH_NAMES}


def test_a_directory_made_again_with_the_inode_of_the_one_before_is_not_mistaken() -> None:
    book = FileBook()
    old = book.mkdir("d")
    made = book.create("d/a")
    book.sync()
    book.unlink("d/a")
    book.rmdir("d")
    book.mkdir("d", inode=100 + old)
    assert damage(book, directory("d", old), file("d/a", made)) == set()
    book.fsyncdir()
    assert damage(book, directory("d", old)) == set()
    assert damage(book) == {FileDamage.LOST}


def test_a_file_with_the_inode_of_a_removed_one_is_not_taken_for_it() -> None:
    book, old, wrote = synced()
    book.unlink("a")
    new = book.create("b", inode=100 + old)
    later = book.write("b")
    book.fsyncdir()
    whole = file("b", new, later, inode=100 + old)
    book.fsync("b")
    assert damage(book, whole) == set()
    stale = file("b", new, later, inode=100 + old).content[0]
    stale = msgspec.structs.replace(stale, file=old, number=wrote)
    assert damage(book, file("b", new, stale, inode=100 + old)) == {FileDamage.FOREIGN}
    assert damage(book, whole, file("a", old, wrote)) == {FileDamage.RESURRECTED, FileDamage.LINK_COUNT}


def test_renaming_one_name_of_a_file_to_its_other_name_changes_nothing() -> None:
    book, made, wrote = synced()
    book.link("a", "b")
    book.rename("a", "b")
    book.fsyncdir()
    names = [file(path, made, wrote, links=2) for path in ("a", "b")]
    assert damage(book, *names) == set()
    assert damage(book, file("b", made, wrote)) == {FileDamage.LOST}


def test_a_name_whose_removal_was_not_kept_may_still_be_there_after_a_later_link_was() -> None:
    book = FileBook()
    d, e = book.mkdir("d"), book.mkdir("e")
    made = book.create("d/a")
    book.link("d/a", "e/b")
    book.sync()
    book.unlink("d/a")
    book.link("e/b", "e/c")
    book.fsyncdir("e")
    both = (directory("d", d), directory("e", e))
    names = [file(path, made, links=3) for path in ("d/a", "e/b", "e/c")]
    assert damage(book, *both, *names) == set()
    assert damage(book, *both, *[file(path, made, links=2) for path in ("e/b", "e/c")]) == set()
    assert damage(book, *both, *[file(path, made, links=2) for path in ("d/a", "e/b")]) == {FileDamage.LOST}


def test_a_file_is_not_lost_with_the_directory_that_it_was_moved_out_of() -> None:
    book = FileBook()
    d = book.mkdir("d")
    made = book.create("d/a")
    book.sync()
    book.rename("d/a", "b")
    book.rmdir("d")
    assert damage(book, file("b", made)) == set()
    assert damage(book, directory("d", d), file("d/a", made)) == set()
    assert damage(book) == {FileDamage.NEITHER_NAME}


def test_after_a_failed_fsync_of_a_directory_a_later_success_promises_only_later_names() -> None:
    book, made, wrote = synced()
    book.rename("a", "b")
    book.fsyncdir(errno=errno.EIO)
    other = book.create("c")
    book.fsyncdir()
    for path in ("a", "b"):
        assert damage(book, file(path, made, wrote), file("c", other)) == set()
        assert damage(book, file(path, made, wrote)) == {FileDamage.LOST}


def test_without_inode_numbers_files_are_recognised_by_their_stamps() -> None:
    book = FileBook(inodes=False)
    a, b = book.create("a"), book.create("b")
    one, two = book.write("a"), book.write("b")
    book.sync()
    second = file("b", b, two, inode=0)
    assert damage(book, file("a", a, one, inode=0), second) == set()
    wrong = only(opinion(book, tree(file("a", b, two, inode=0), second)))
    assert (wrong.kind, wrong.path, wrong.blocks) == (FileDamage.FOREIGN, "a", 0)


def test_an_operation_on_names_that_failed_changed_nothing_if_it_was_refused() -> None:
    book, made, wrote = synced()
    book.rename("a", "b", errno=errno.ENOSPC)
    assert damage(book, file("a", made, wrote)) == set()
    assert damage(book, file("b", made, wrote)) >= {FileDamage.UNKNOWN_NAME}
    book.rename("a", "b", errno=errno.EIO)
    for path in ("a", "b"):
        assert damage(book, file(path, made, wrote)) == set()
    assert damage(book) == {FileDamage.NEITHER_NAME}


def test_after_an_error_of_io_on_names_nothing_more_is_promised() -> None:
    book, made, wrote = synced()
    book.create("b", errno=errno.EROFS)
    later = book.write("a")
    book.fsync("a")
    for value in (wrote, later):
        assert damage(book, file("a", made, value)) == set()


# --- FAT, exFAT, ntfs3 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAT)
def test_without_a_journal_what_was_touched_since_may_be_anything(name: FilesystemClass) -> None:
    book, made, wrote = synced()
    kept = book.create("kept")
    data = book.write("kept")
    book.fsync("kept")
    book.fsyncdir()
    book.rename("a", "b")
    whole = file("kept", kept, data)
    for entries in ((), (file("a", made, wrote), file("b", made, wrote)), (file("b", made, b"\x00\x01" * 256),)):
        assert damage(book, whole, *entries, name=name) == set()
        assert damage(book, *entries, name=name) == {FileDamage.LOST}


def test_on_fat_a_renamed_file_has_to_be_fsynced_again() -> None:
    book, made, wrote = synced()
    book.rename("a", "b")
    book.fsyncdir()
    assert damage(book, name="vfat") == set()
    book.fsync("b")
    assert damage(book, name="vfat") == {FileDamage.LOST}
    assert opinion(book, tree(file("b", made, wrote)), "vfat").intact


def test_on_fat_all_directories_above_have_to_be_fsynced() -> None:
    book = FileBook()
    book.mkdir("d")
    book.create("d/a")
    book.fsync("d/a")
    book.fsyncdir("d")
    unjudged = opinion(book, tree(), "vfat")
    assert not unjudged.intact
    assert unjudged.problems == ["nothing was kept and left untouched before the cut, so nothing was judged"]
    book.fsyncdir()
    assert damage(book, name="vfat") == {FileDamage.LOST}


# --- the filesystem as a whole ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_a_filesystem_mounts_after_a_cut(name: FilesystemClass) -> None:
    book, _, _ = synced()
    made = opinion(book, tree(mount_errno=errno.EUCLEAN), name)
    refuses = name == "ntfs3"
    assert [wrong.kind for wrong in made.wrong] == ([] if refuses else [FileDamage.UNMOUNTABLE])
    assert bool(made.problems) is refuses


@pytest.mark.parametrize("error", [errno.ENODEV, errno.EBUSY, errno.EEXIST, None])
def test_a_mount_that_the_bench_prevented_is_not_a_finding(error: int | None) -> None:
    book, _, _ = synced()
    made = opinion(book, tree(mount_errno=error))
    assert (made.wrong, bool(made.problems), made.intact) == ([], True, False)


def test_a_directory_that_cannot_be_removed_is_named() -> None:
    book, made, wrote = synced()
    left = (Unremovable(path="d", errno=errno.ENOTEMPTY),)
    wrong = only(opinion(book, tree(file("a", made, wrote), removal_tried=True, unremovable=left)))
    assert (wrong.kind, wrong.path) == (FileDamage.UNREMOVABLE, "d")
    assert opinion(book, tree(file("a", made, wrote), removal_tried=True)).intact


def test_what_cannot_be_read_is_named() -> None:
    book = FileBook()
    d, made = book.mkdir("d"), book.create("a")
    book.sync()
    assert only(opinion(book, tree(directory("d", d, errno=errno.EIO), file("a", made)))).kind is FileDamage.UNREADABLE
    assert damage(book, directory("d", d), file("a", made, errno=errno.EIO)) == {FileDamage.UNREADABLE}
    assert only(opinion(book, tree(errno=errno.EIO))).kind is FileDamage.UNREADABLE


# --- missing evidence -------------------------------------------------------------------------------------------------


def test_a_ledger_or_a_scan_with_something_missing_is_never_intact() -> None:
    book, made, wrote = synced()
    whole = tree(file("a", made, wrote))
    assert not opinion(book, msgspec.structs.replace(whole, complete=False)).intact
    short = file("a", made, wrote)
    short = msgspec.structs.replace(short, size=2 * B)
    assert opinion(book, tree(short)).problems == ["scan: a was not read to its end"]
    book.made.problems.append(CUT_OFF)
    assert not opinion(book, whole).intact
    assert not opinion(FileBook(), tree()).intact


def test_what_an_unknown_operation_can_have_done_is_not_wrong() -> None:
    book, made, wrote = synced()
    beyond = book.next + 3
    assert damage(book, file("a", made, beyond)) == {FileDamage.CORRUPT}
    book.made.problems.append(CUT_OFF)
    for entries in ((), (file("a", made, beyond, beyond),), (file("b", made, wrote),), (directory("c", 9),)):
        made_of_it = opinion(book, tree(*entries))
        assert (made_of_it.wrong, made_of_it.intact) == ([], False)
    assert damage(book, file("a", made, wrote, links=2)) == {FileDamage.LINK_COUNT}
    assert damage(book, file("a", made, errno=errno.EIO)) == {FileDamage.UNREADABLE}


def test_an_impossible_ledger_is_a_problem() -> None:
    mistakes: tuple[Callable[[FileBook], int], ...] = (
        lambda book: book.unlink("b"),
        lambda book: book.create("a"),
        lambda book: book.rmdir("a"),
        lambda book: book.write("b"),
        lambda book: book.mmap("a", 7),
        lambda book: book.fsyncdir("nowhere"),
    )
    for wrong in mistakes:
        book, _, _ = synced()
        wrong(book)
        verdict = opinion(book, tree())
        assert "is impossible" in verdict.problems[0]
        assert not verdict.wrong


# --- through the bytes ------------------------------------------------------------------------------------------------


def test_a_ledger_survives_the_way_from_the_dut() -> None:
    book, _, _ = synced()
    book.mkdir("d")
    book.rename("a", "d/a")
    book.unlink("d/a", returns=False)
    made = decode_file_ledger(b"".join(book.lines()))
    assert (made.operations, made.problems, made.run) == (book.made.operations, [], RUN)


@pytest.mark.parametrize("lost", range(1, 9))
def test_a_ledger_with_a_line_missing_has_a_problem(lost: int) -> None:
    book, _, _ = synced()
    lines = book.lines()
    assert decode_file_ledger(b"".join(lines[:lost] + lines[lost + 1 :])).problems
    assert decode_file_ledger(b"".join(lines[:lost])).problems
    assert decode_file_ledger(b"".join(lines)[: -len(lines[-1]) - 3]).problems
    assert decode_file_ledger(b"nonsense\n" + b"".join(lines)).problems


def test_a_scan_survives_the_way_and_nonsense_is_incomplete() -> None:
    _, made, wrote = synced()
    found = tree(file("a", made, wrote, b"\x01" * B), directory("d", 4), symlink("s", 5))
    assert decode_found_tree(encoded(found)) == found
    assert not decode_found_tree(b"{").complete


def test_every_filesystem_has_promises() -> None:
    assert set(PROMISES) == set(get_args(FilesystemClass))
    assert all(promises.name == name for name, promises in PROMISES.items())
