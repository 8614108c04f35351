"""The known sequences play, and what the kernels of their time made of them is found."""

from __future__ import annotations

import pytest
from file_books import HOLE, FileBook, directory, file, opinion, tree

from plugpull.integrity.known_sequences import KNOWN_SEQUENCES, LITTLE, MUCH, KnownSequence
from plugpull.integrity.oracle.files.found import FoundEntry
from plugpull.integrity.oracle.files.operations import BLOCK
from plugpull.integrity.oracle.files.promises import PROMISES, CutEffect, FilesystemClass
from plugpull.integrity.oracle.files.replay import Replay
from plugpull.integrity.oracle.files.wrong import FileDamage

BLOCKS = MUCH // BLOCK
JOURNALED: tuple[FilesystemClass, ...] = ("ext4", "xfs", "btrfs", "f2fs")
KNOWN = {one.name: one for one in KNOWN_SEQUENCES}


def played(sequence: KnownSequence) -> tuple[FileBook, dict[str, int]]:
    """The ledger of a writer that plays it, and the number of the object that each path has first."""
    book, numbers = FileBook(), dict[str, int]()
    for step in sequence.steps:
        do, path = step["do"], step.get("path", "")
        if do in ("create", "mkdir"):
            numbers.setdefault(f"{do} {path}", getattr(book, do)(path))
        elif do == "write":
            numbers["write"] = book.write(path, blocks=step["length"] // BLOCK)
        elif do == "truncate":
            book.truncate(path, step["size"] // BLOCK)
        elif do in ("link", "rename"):
            getattr(book, do)(path, step["to"])
        elif do == "sync":
            book.sync()
        else:
            getattr(book, do)(path)
    return book, numbers


@pytest.mark.parametrize("sequence", KNOWN_SEQUENCES, ids=str)
def test_each_can_be_played_and_numbers_what_it_makes(sequence: KnownSequence) -> None:
    book, _ = played(sequence)
    assert Replay(book.made, PROMISES["btrfs"], CutEffect()).problems == []
    plan = sequence.plan("btrfs", 1000, seed=1).data
    assert isinstance(plan, list)
    made = [step["file"] for step in plan if "file" in step]
    assert made == list(range(1000, 1000 + len(made)))
    assert len(made) == sum(step["do"] in ("create", "mkdir") for step in sequence.steps)
    assert all("file" not in step for step in sequence.steps), "a second round would play with the numbers of the first"


def healthy(name: str, made: dict[str, int]) -> list[FoundEntry]:
    """What a filesystem has to show after the cut."""
    wrote = (made["write"],) * BLOCKS if "write" in made else ()
    if name == "linked-after-truncation":
        return [file("foo", made["create foo"], links=2), file("bar", made["create foo"], links=2)]
    if name == "linked-into-new-directory":
        foo = made["create foo"]
        return [
            file("foo", foo, *wrote, links=2),
            directory("dir", made["mkdir dir"]),
            file("dir/bar", foo, *wrote, links=2),
        ]
    if name == "file-in-place-of-moved-directory":
        return [
            directory("dir2", made["mkdir dir2"], links=3),
            directory("dir2/dir1", made["mkdir dir1"]),
            file("dir2/foo", made["create dir1"]),
        ]
    if name == "renamed-beside-new-directory":
        new = [directory("dir", made["mkdir dir"]), file("dir/foo", made["create dir/foo"])]
        return [file("file2", made["create file1"], *wrote), *new]
    foo = made["create foo"]
    if name == "written-after-a-sync":
        return [file("foo", foo, *(made["write"],) * (LITTLE // BLOCK))]
    return [
        directory("dir1", made["mkdir dir1"]),
        directory("dir2", made["mkdir dir2"]),
        file("foo", foo, links=2),
        file("dir2/link", foo, links=2),
    ]


@pytest.mark.parametrize("fstype", JOURNALED)
@pytest.mark.parametrize("sequence", KNOWN_SEQUENCES, ids=str)
def test_a_filesystem_that_keeps_it_all_passes(sequence: KnownSequence, fstype: FilesystemClass) -> None:
    book, made = played(sequence)
    good = opinion(book, tree(*healthy(sequence.name, made)), fstype)
    assert good.intact, good


LOST = {
    "linked-into-new-directory": ("dir", "dir/bar"),
    "renamed-beside-new-directory": ("dir", "dir/foo"),
    "file-in-place-of-removed-directory": ("dir1",),
}
"""The names that were missing where the bug was, by the comments of the tests in fstests."""


@pytest.mark.parametrize("name", LOST)
def test_names_that_were_lost_are_found(name: str) -> None:
    book, made = played(KNOWN[name])
    left = [one for one in healthy(name, made) if one.path not in LOST[name]]
    wrong = opinion(book, tree(*left), "btrfs").wrong
    assert (FileDamage.LOST, LOST[name][0]) in [(one.kind, one.path) for one in wrong]


def test_a_truncated_file_that_is_long_again_is_found() -> None:
    book, made = played(KNOWN["linked-after-truncation"])
    foo, holes = made["create foo"], (HOLE,) * BLOCKS
    wrong = opinion(book, tree(file("foo", foo, *holes, links=2), file("bar", foo, *holes, links=2)), "btrfs").wrong
    assert FileDamage.WRONG_SIZE in {one.kind for one in wrong}


def test_what_was_there_before_the_last_write_is_found() -> None:
    book, made = played(KNOWN["written-after-a-sync"])
    old = (made["write"] - 2,) * (LITTLE // BLOCK)
    wrong = opinion(book, tree(file("foo", made["create foo"], *old)), "f2fs").wrong
    assert [(one.kind, one.path) for one in wrong] == [(FileDamage.OLD_VERSION, "foo")]


def test_a_filesystem_that_cannot_be_mounted_is_found() -> None:
    book, _ = played(KNOWN["file-in-place-of-moved-directory"])
    wrong = opinion(book, tree(mount_errno=5), "btrfs").wrong
    assert [one.kind for one in wrong] == [FileDamage.UNMOUNTABLE]
