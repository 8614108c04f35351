"""The oracle for files with one thing changed in its rules is caught: by a rule's test, or by the model.

Each mutation replaces a piece of source. If the piece is not there any more, the test says so: write the mutation for
the new text.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, product
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

import file_books
import pytest
import test_file_oracle
import test_file_oracle_evidence
import test_file_oracle_names
from file_books import FileBook
from file_plays import play, scan
from test_file_oracle_model import CLASSES, NOTHING_KEPT, Case, cases, drawn

from plugpull.integrity.oracle.files.found import FoundTree
from plugpull.integrity.oracle.files.promises import PROMISES

ROOM = "plugpull.integrity.oracle.files"
COPY = "mutated_files"
MODULES = ("contents", "names", "replay", "tree", "content_rules", "name_rules", "rules")
"""Those that decide, in the order in which they import each other."""
Judge = Callable[..., Any]
LEGAL, PLANTED = 40, 3


class Mutation(NamedTuple):
    module: str
    old: str
    new: str


MUTATIONS = (
    # what a sync keeps
    Mutation("replay", "if self._broken or not operation.succeeded or not", "if not operation.succeeded or not"),
    Mutation("replay", "not (cut.flushes or cut.powered)", "not cut.flushes"),
    Mutation("replay", "cut.before(operation.returned) and (promises.sync_flushes", "(promises.sync_flushes"),
    Mutation("replay", "and (promises.sync_flushes or cut.powered)", "and promises.sync_flushes"),
    Mutation("replay", "and (promises.sync_flushes or cut.powered)", "and True"),
    Mutation("replay", "return promises.late_fsync or cut.before(operation.returned)", "return True"),
    Mutation("replay", "return promises.late_fsync or", "return"),
    Mutation("replay", "contents.doubt()", "pass"),
    Mutation("replay", "contents.garbled = True", "pass"),
    Mutation("replay", "if not self._promises.old_or_new and not self._cut.powered:", "if not self._cut.powered:"),
    Mutation("replay", "if self._promises.names_new:", "if True:"),
    Mutation("replay", "if self._promises.names_new:", "if False:"),
    Mutation("replay", "or slot[0] == directory or self._promises.atomic:", "or slot[0] == directory:"),
    Mutation("replay", "if not one.doubtful and len(one.kept)", "if len(one.kept)"),
    Mutation("contents", "self.fresh = self.fresh - written", "self.fresh = set()"),
    Mutation("contents", "        self.fresh.add(block)", "        pass"),
    Mutation("replay", "if slot[0] == TOP or self.names.now.get(slot) != holds:", "if slot[0] == TOP:"),
    Mutation("replay", "if slot[0] == TOP or self.names.now.get(slot) != holds:", "if True:"),
    Mutation("replay", "if contents.fsynced < max(", "if False and contents.fsynced < max("),
    Mutation("replay", "for one in (slot, *above)):", "for one in (slot,)):"),
    Mutation(
        "replay",
        "self._sync_blocks(operation, contents, range(first,",
        "self._sync_blocks(operation, contents, range(0,",
    ),
    # content
    Mutation("contents", "if version.doubtful:\n            continue", "if False:\n            continue"),
    Mutation("contents", "return versions[at:]", "return versions[-1:]"),
    Mutation("contents", "return versions[at:]", "return versions"),
    Mutation("contents", "return min(possible) <= size <= max(possible)", "return size in possible"),
    Mutation("contents", "return min(possible) <= size <= max(possible)", "return True"),
    Mutation("contents", "self._put(block, ZERO, operation)", "pass"),
    Mutation("content_rules", "return None if ZERO in allowed else FileDamage.LOST", "return None"),
    Mutation("content_rules", "return FileDamage.FOREIGN", "return None"),
    Mutation("content_rules", "if stretch.origin + block - stretch.first != block:", "if False:"),
    Mutation(
        "content_rules", "FileDamage.OLD_VERSION if stretch.number in contents.ever(block) else", "None if True else"
    ),
    Mutation("content_rules", "if len(raw) != BLOCK or len(known) < 2:", "if True:"),
    Mutation("rules", "if ledger.problems or replay.problems:", "if replay.problems:"),
    Mutation("rules", "if ledger.problems or replay.problems:", "if ledger.problems:"),
    # names
    Mutation("names", "if slot in change.kept:\n                allowed.clear()", "pass"),
    Mutation("names", "allowed: set[int | None] = {None}", "allowed: set[int | None] = set()"),
    Mutation("names", "if not done and operation.returned is not None and operation.errno in REFUSED:", "if not done:"),
    Mutation("names", "return max(0, low), high", "return 0, high"),
    Mutation("names", "return max(0, low), high", "return max(0, low), high + 1"),
    Mutation("names", "return max(0, low), high", "return max(0, low), max(1, high - 1)"),
    Mutation("names", "- sum(number in change.dropped for change in later)", ""),
    Mutation("names", "+ dropped_before", ""),
    Mutation("names", "+ sum(number in change.gained for change in later)", ""),
    Mutation("names", "if not keeps_moved:", "if keeps_moved:"),
    Mutation("names", "if victim == number:\n            return None", "if False:\n            return None"),
    Mutation(
        "name_rules",
        "if None not in allowed:\n                self._missing",
        "if False:\n                self._missing",
    ),
    Mutation("name_rules", "elif not placed.candidates & allowed:", "elif False:"),
    Mutation("name_rules", "if len(certain) > high >= 1:", "if False:"),
    Mutation("name_rules", "if len(showing) >= low or self._may_be_elsewhere(number):", "if len(showing) >= low:"),
    Mutation("name_rules", "if len(showing) >= low or self._may_be_elsewhere(number):", "if True:"),
    Mutation("name_rules", "and not self._was_kept(slot[0])", ""),
    Mutation("name_rules", "if entry.links != due:", "if False:"),
    Mutation("name_rules", "if self._promises.directory_links else entry.links", "if True else entry.links"),
    Mutation(
        "name_rules", "gone = kept is not None and kept.holds[slot] is None and kept.moved is None", "gone = False"
    ),
    Mutation("tree", "or entry.inode == thing.inode", "or True"),
    Mutation("tree", "fitting &= stamped  #", "pass  #"),
    # the whole
    Mutation("rules", "elif error in OF_THE_BENCH or not promises.mounts:", "elif error in OF_THE_BENCH:"),
    Mutation("rules", "elif error in OF_THE_BENCH or not promises.mounts:", "elif not promises.mounts:"),
    Mutation("rules", "for one in self._found.unremovable:", "for one in ():"),
    Mutation("rules", "if not found.complete:", "if False:"),
    Mutation("rules", "best = min(results, key=lambda result: len(result.wrong))", "best = results[0]"),
    Mutation("rules", "if promises.atomic:", "if True:"),
    Mutation("rules", "if promises.atomic:", "if False:"),
)


def mutated(mutation: Mutation | None, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """``judge`` of a copy of the oracle with one piece of its source replaced."""
    package = ModuleType(COPY)
    package.__path__ = []
    monkeypatch.setitem(sys.modules, COPY, package)
    for name in MODULES:
        original = importlib.import_module(f"{ROOM}.{name}")
        source = Path(str(original.__file__)).read_text(encoding="utf-8")
        if mutation is not None and mutation.module == name:
            assert source.count(mutation.old) == 1, f"{name} has no such text once: {mutation.old}"
            source = source.replace(mutation.old, mutation.new)
        for other in MODULES:
            source = source.replace(f"from {ROOM}.{other} import", f"from {COPY}.{other} import")
        made = ModuleType(f"{COPY}.{name}")
        monkeypatch.setitem(sys.modules, made.__name__, made)
        exec(compile(source, f"{COPY}/{name}.py", "exec"), made.__dict__)
    judge: Judge = sys.modules[f"{COPY}.rules"].judge
    return judge


# --- what catches them ------------------------------------------------------------------------------------------------


def rule_tests() -> Iterator[tuple[Callable[..., None], dict[str, object]]]:
    """Every test of the rules, with each of its parameters."""
    rooms = (test_file_oracle, test_file_oracle_names, test_file_oracle_evidence)
    for name, test in chain.from_iterable(vars(room).items() for room in rooms):
        if not name.startswith("test_"):
            continue
        ways = []
        for mark in getattr(test, "pytestmark", []):
            names, values = mark.args[:2]
            names = [names] if isinstance(names, str) else names
            ways.append([dict(zip(names, v if len(names) > 1 else (v,), strict=True)) for v in values])
        for chosen in product(*ways):
            yield test, {key: value for way in chosen for key, value in way.items()}


def caught_by_a_rule(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a test that fails with this oracle; empty if none does."""
    monkeypatch.setattr(file_books, "judge", judge)
    for test, arguments in rule_tests():
        try:
            test(**arguments)
        except Exception:
            return test.__name__
    return ""


@cache
def legal(fstype: Any) -> tuple[Case, ...]:
    made = []
    for seed in range(LEGAL):
        random = Random(seed)
        played = play(fstype, drawn(random), seed, powered=random.random() < 0.4)
        made.append(Case(played, scan(played), set()))
    return tuple(made)


@cache
def planted(fstype: Any) -> tuple[Case, ...]:
    return tuple(case for known in cases(fstype, PLANTED).values() for case in known)


def caught_by_the_model(judge: Judge) -> str:
    """Which legal tree was accused, or which planted loss was not found; empty if none."""
    for fstype in CLASSES:
        for case in (*legal(fstype), *planted(fstype)):
            try:
                made = judge(case.played.book.made, case.found, PROMISES[fstype], case.played.cut)
            except Exception:
                return "crash"
            named = {wrong.kind for wrong in made.wrong}
            if not case.kinds and (named or set(made.problems) - {NOTHING_KEPT}):
                return f"{fstype} accused of {named}"
            if case.kinds and not named & case.kinds:
                return f"{fstype}: {case.kinds} not found"
    return ""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.module}: {mutation.old[:40]}")
def test_a_mutation_of_the_oracle_is_caught(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = mutated(mutation, monkeypatch)
    assert caught_by_a_rule(judge, monkeypatch) or caught_by_the_model(judge)


def test_the_oracle_as_it_is_is_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = mutated(None, monkeypatch)
    assert judge(FileBook().made, FoundTree(), PROMISES["ext4"]).wrong == []
    assert caught_by_a_rule(judge, monkeypatch) == ""
    assert caught_by_the_model(judge) == ""
