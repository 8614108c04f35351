"""The oracle's rules for what is in files, each with a filesystem that keeps it and one that breaks it."""

from __future__ import annotations

import errno

import pytest
from file_books import (
    CABLE,
    EVERY,
    HOLE,
    JOURNALED,
    RUN,
    B,
    FileBook,
    damage,
    directory,
    file,
    only,
    opinion,
    stamp_of,
    symlink,
    synced,
    tree,
)

from plugpull.integrity.oracle.files.found import Stretch
from plugpull.integrity.oracle.files.promises import PROMISES, CutEffect, FilesystemClass
from plugpull.integrity.oracle.files.wrong import FileDamage

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
