"""The oracle on FAT, on a whole filesystem, and on a ledger or a scan with something missing."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import get_args

import msgspec
import pytest
from file_books import (
    EVERY,
    FAT,
    RUN,
    B,
    FileBook,
    damage,
    directory,
    file,
    only,
    opinion,
    symlink,
    synced,
    tree,
)

from plugpull.integrity.oracle.files.found import Unremovable, decode_found_tree
from plugpull.integrity.oracle.files.found import encode_found_tree as encoded
from plugpull.integrity.oracle.files.ledger import CUT_OFF, decode_file_ledger
from plugpull.integrity.oracle.files.promises import PROMISES, FilesystemClass
from plugpull.integrity.oracle.files.wrong import FileDamage

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
    assert only(opinion(book, tree(errno=errno.ENOENT))).kind is FileDamage.LOST


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
