"""The oracle for files against a filesystem that is played through (``file_model.py``).

Whatever the model leaves after a cut is legal, and a loss that is planted into it is found. ``PLUGPULL_FUZZ=20000``
plays that many plans for each filesystem, which takes some minutes.
"""

from __future__ import annotations

import os
from random import Random
from typing import NamedTuple, get_args

import pytest
from file_books import FileBook
from file_plants import PLANTS
from file_plays import ACTIONS, Action, Played, play, scan
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugpull.integrity.oracle.files.found import FoundTree
from plugpull.integrity.oracle.files.ledger import decode_file_ledger
from plugpull.integrity.oracle.files.promises import PROMISES, FilesystemClass
from plugpull.integrity.oracle.files.rules import judge
from plugpull.integrity.oracle.files.wrong import FileDamage

EXAMPLES = int(os.environ.get("PLUGPULL_FUZZ", "300"))
PLANTED = 100 if EXAMPLES >= 1000 else 10
"""Losses of each kind that are planted."""
FOUND = 0.95
"""The part of them that has to be found, and named right."""
CLASSES: tuple[FilesystemClass, ...] = get_args(FilesystemClass)
JOURNALED = CLASSES[:4]
WITHOUT_JOURNAL = ("lost file", "old block", "foreign block", "corrupt block", "wrong size", "unmountable")
NOTHING_KEPT = "nothing was kept and left untouched before the cut, so nothing was judged"
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

actions = st.tuples(st.sampled_from(ACTIONS), st.integers(0, 63), st.integers(0, 63))
plans = st.lists(actions, max_size=30)


@pytest.mark.parametrize("fstype", CLASSES)
def test_what_a_filesystem_can_show_is_legal(fstype: FilesystemClass) -> None:
    @thorough
    @given(plans, st.integers(0, 2**32), st.booleans(), st.sampled_from([True, True, True, False]))
    def legal(plan: list[Action], seed: int, powered: bool, flushes: bool) -> None:
        played = play(fstype, plan, seed, powered=powered, flushes=flushes)
        made = judge(played.book.made, scan(played), PROMISES[fstype], played.cut)
        assert [wrong.sentence() for wrong in made.wrong] == []
        assert set(made.problems) <= {NOTHING_KEPT}

    legal()


def drawn(random: Random) -> list[Action]:
    """A plan, made without hypothesis: it does not look for the simplest one."""
    some = [random.choice(ACTIONS) for _ in range(random.randrange(1, 40))]
    ending = random.choice(((), ("settle",), ("create", "write", "settle"), ("settle", "unlink", "fsyncdir")))
    return [(what, random.randrange(64), random.randrange(64)) for what in (*some, *ending)]


class Case(NamedTuple):
    """A planted loss, and what it may be called."""

    played: Played
    found: FoundTree
    kinds: set[FileDamage]


def planted_for(fstype: FilesystemClass) -> set[str]:
    """Kinds of losses that a filesystem promises not to have."""
    kinds = set(PLANTS) if fstype in JOURNALED else set(WITHOUT_JOURNAL)
    return kinds - {"unmountable"} if fstype == "ntfs3" else kinds


def cases(fstype: FilesystemClass, wanted: int) -> dict[str, list[Case]]:
    """So many losses of each kind, at most one of a kind in a plan."""
    made: dict[str, list[Case]] = {plant: [] for plant in sorted(planted_for(fstype))}
    seed = 0
    while min(map(len, made.values())) < wanted:
        seed += 1
        random = Random(seed)
        played = play(fstype, drawn(random), seed, powered=random.random() < 0.4)
        found = scan(played)
        for plant, known in made.items():
            planted = PLANTS[plant](played, found, random) if len(known) < wanted else None
            if planted is not None:
                known.append(Case(played, *planted))
    return made


@pytest.mark.parametrize("fstype", CLASSES)
def test_planted_losses_are_found(fstype: FilesystemClass) -> None:
    for plant, tried in cases(fstype, PLANTED).items():
        found = 0
        for one in tried:
            made = judge(one.played.book.made, one.found, PROMISES[fstype], one.played.cut)
            found += bool({wrong.kind for wrong in made.wrong} & one.kinds)
        assert found >= FOUND * len(tried), plant


# --- through the bytes ------------------------------------------------------------------------------------------------


@thorough
@given(plans, st.integers(0, 2**32), st.data())
def test_a_ledger_that_lost_a_line_never_accuses(plan: list[Action], seed: int, data: st.DataObject) -> None:
    """Cut off, or with a gap: it has a problem, and what is missing may have changed anything."""
    played = play("ext4", plan, seed)
    lines = played.book.lines()
    at = data.draw(st.integers(0, len(lines) - 1))
    kept = lines[:at] + (lines[at + 1 :] if data.draw(st.booleans()) else [])
    short = decode_file_ledger(b"".join(kept))
    assert short.problems
    made = judge(short, scan(played), PROMISES["ext4"], played.cut)
    assert not made.wrong
    assert not made.intact


@thorough
@given(st.binary(max_size=300), st.integers(0, 40))
def test_arbitrary_bytes_are_refused_without_a_crash(noise: bytes, at: int) -> None:
    book = FileBook()
    book.create("a")
    book.write("a")
    whole = b"".join(book.lines())
    ledger = decode_file_ledger(whole[:at] + noise + whole[at:])
    assert not judge(ledger, FoundTree(), PROMISES["ext4"]).wrong
