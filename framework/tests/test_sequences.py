"""Every short sequence of operations is made once, and each of them can be done."""

from __future__ import annotations

from itertools import islice, product

import pytest
from file_books import B, FileBook

import plugpull.integrity.sequences
from plugpull.integrity.oracle.files import operations as op
from plugpull.integrity.oracle.files.promises import PROMISES, CutEffect
from plugpull.integrity.oracle.files.replay import Replay
from plugpull.integrity.sequences import KINDS, NO_LINKS, FileSequence, FileStep, FinalSync, Kind, count, sequences

SWAPS: tuple[dict[str, str], ...] = (
    {},
    {"A": "B", "B": "A"},
    {"x": "y", "y": "x"},
    {"A": "B", "B": "A", "x": "y", "y": "x"},
)


def recorded(sequence: FileSequence) -> FileBook:
    """The ledger of a writer that does it: the setup, a sync, the steps, and the last sync."""
    book = FileBook()
    for path in sequence.directories:
        book.mkdir(path)
    for path in sequence.files:
        book.create(path)
        book.write(path, blocks=2)
    book.sync()
    for step in sequence.steps:
        do(book, step)
    sync = sequence.sync
    getattr(book, sync.kind)(*(() if sync.kind in ("sync", "syncfs") else (sync.path,)))
    return book


def do(book: FileBook, step: FileStep) -> None:
    if step.kind in ("rename", "replace", "rename-directory"):
        book.rename(step.path, step.to)
    elif step.kind == "link":
        book.link(step.path, step.to)
    elif step.kind == "append":
        replay = Replay(book.made, PROMISES["ext4"], CutEffect())
        size = replay.contents[replay.names.at(step.path)].size
        book.do(op.AppendBlocks, path=step.path, offset=size, length=B)
    elif step.kind == "truncate":
        book.truncate(step.path, 1)
    else:
        getattr(book, step.kind)(step.path)


def swapped(path: str, names: dict[str, str]) -> str:
    return "/".join(names.get(part, part) for part in path.split("/"))


def key(sequence: FileSequence, names: dict[str, str]) -> tuple[object, ...]:
    steps = tuple((step.kind, swapped(step.path, names), swapped(step.to, names)) for step in sequence.steps)
    return steps, sequence.sync.kind, swapped(sequence.sync.path, names)


@pytest.mark.parametrize("length", [1, 2])
def test_no_two_sequences_are_the_same_up_to_names(length: int) -> None:
    made = list(sequences(length))
    smallest = {min(repr(key(one, names)) for names in SWAPS) for one in made}
    assert len(smallest) == len(made) == count(length)
    assert len({one.name for one in made}) == len(made)


@pytest.mark.parametrize(("length", "each"), [(1, 1), (2, 7)])
def test_every_sequence_can_be_done(length: int, each: int) -> None:
    for sequence in islice(sequences(length), 0, None, each):
        book = recorded(sequence)
        problems = Replay(book.made, PROMISES["ext4"], CutEffect()).problems
        assert problems == [], sequence.name


def test_every_kind_is_followed_by_every_sync_that_it_can_be() -> None:
    kinds = {(one.steps[0].kind, one.sync.kind) for one in sequences(1)}
    assert {kind for kind, _ in kinds} == set(KINDS)
    everywhere = {(kind, sync) for kind, sync in product(KINDS, ("sync", "syncfs"))}
    assert everywhere <= kinds
    assert {kind for kind, sync in kinds if sync == "fsyncdir"} == set(KINDS) - {"write", "append", "truncate", "mmap"}
    assert {"create", "write", "append", "truncate", "mmap", "link", "rename", "replace"} == {
        kind for kind, sync in kinds if sync == "fsync"
    }


def test_there_are_as_many_as_the_documentation_says() -> None:
    said = " ".join((plugpull.integrity.sequences.__doc__ or "").split())
    one, two = ((count(length), count(length, NO_LINKS)) for length in (1, 2))
    assert f"{one[0]} sequences of one operation, {two[0]:,} of two" in said
    assert f"without links {one[1]}, {two[1]:,} and" in said


def test_what_a_sequence_needs_is_set_up() -> None:
    made = {one.name: one for one in sequences(2)}
    known = made["rename A/x A/y, create A/x, fsync A/x"]
    assert (known.directories, known.files) == (("A",), ("A/x",))
    known = made["replace A/x B/x, write B/x, fsyncdir A"]
    assert (known.directories, known.files) == (("A", "B"), ("A/x", "B/x"))
    known = made["rename-directory A B, write B/x, fsync B/x"]
    assert (known.directories, known.files) == (("A",), ("A/x",))
    known = made["mkdir A, create A/x, fsync A/x"]
    assert (known.directories, known.files) == ((), ())


def test_what_cannot_be_done_is_left_out() -> None:
    names = {one.name for one in sequences(2)}
    for impossible in ("create A/x, create A/x, sync", "unlink A/x, write A/x, sync", "mkdir A, write A/x, sync"):
        assert impossible not in names
    assert "symlink A/x, write A/x, sync" not in names
    assert "create A/x, rmdir A, sync" not in names
    assert "create A/x, mmap A/x, sync" not in names
    assert not any(name.startswith("create B/") for name in names)
    assert "unlink A/x, create A/x, fsync A/x" in names


def test_a_filesystem_without_links_has_fewer() -> None:
    kinds = {step.kind for one in sequences(2, NO_LINKS) for step in one.steps}
    assert kinds == NO_LINKS
    assert count(2, NO_LINKS) < count(2)


def test_three_operations_of_a_few_kinds() -> None:
    few: tuple[Kind, ...] = ("truncate", "link", "unlink")
    made = list(sequences(3, few))
    assert len(made) == count(3, few) > 500
    assert any(one.name == "truncate A/x, link A/x A/y, unlink A/x, fsync A/y" for one in made)
    assert all(one.sync != FinalSync("fsync", "") for one in made)
