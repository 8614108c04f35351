"""The oracle's rules for names, links and directories, each with a filesystem that keeps it and one that breaks it."""

from __future__ import annotations

import errno

import msgspec
import pytest
from file_books import (
    JOURNALED,
    RUN,
    FileBook,
    damage,
    directory,
    file,
    only,
    opinion,
    synced,
    tree,
)

from plugpull.integrity.oracle.files.found import Stretch
from plugpull.integrity.oracle.files.promises import FilesystemClass
from plugpull.integrity.oracle.files.wrong import FileDamage


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


def test_a_link_in_a_directory_that_the_ledger_does_not_have_is_counted() -> None:
    """Its beginning may be missing of a ledger that ended early."""
    book, made, wrote = synced()
    two, inside = file("a", made, wrote, links=2), file("d/a", made, wrote, links=2)
    assert damage(book, two, directory("d", 999), inside) == {FileDamage.UNKNOWN_NAME}
    assert damage(book, two, directory("d", 999)) == {FileDamage.UNKNOWN_NAME, FileDamage.LINK_COUNT}
    # One that cannot be listed may have any names.
    assert damage(book, two, directory("d", 999, errno=errno.EIO)) == {
        FileDamage.UNKNOWN_NAME,
        FileDamage.UNREADABLE,
    }


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
