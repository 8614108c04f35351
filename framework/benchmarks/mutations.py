"""Mutations of the verdict: recorded healthy histories are edited so that they describe a faulty DUT, a faulty bench,
missing evidence or something harmless, and judged. Prints the edits that get a wrong verdict.

Without arguments, the histories kept in ``framework/tests/data`` are edited. With runs, each of their scenarios that
has the name of one of those is edited instead. ``--keep`` puts a run's scenarios there.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks import edits
from benchmarks.edits.registry import (
    CATALOGUE,
    DATA,
    FAIL,
    PASS,
    UNKNOWN,
    Edit,
    Outcome,
    all_outcomes,
    judge_tape,
    outcome,
)
from benchmarks.edits.tape import Tape, encode, read_tape, single, without_seals

__all__ = ["edits"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="a run directory or its history")
    parser.add_argument("--only", default="", metavar="FAMILY", help="edits whose family or name has this in it")
    parser.add_argument("--json", action="store_true", help="one object per edit, with the recipe's reason")
    parser.add_argument("--keep", action="store_true", help="put the scenarios of these runs into framework/tests/data")
    options = parser.parse_args()
    found = dict(one for run in options.runs for one in single(read_tape(run)))
    if options.keep:
        return keep(found)
    edits = [one for one in CATALOGUE if options.only in f"{one.family}/{one.name}"]
    if found:
        tapes = {short(name): without_seals(tape) for name, tape in found.items()}
        made = [each for one in edits for each in on_tapes(one, tapes)]
    else:
        made = all_outcomes(edits)
    if options.json:
        print(json.dumps([as_data(one) for one in made], indent=1))
    else:
        print(table(made))
    return 0 if all(one.right for one in made) else 1


def on_tapes(one: Edit, tapes: dict[str, Tape]) -> list[Outcome]:
    """What can be applied to these: some edits need a disk, or a moment, that only the kept histories have."""
    made = []
    for name in (name for name in one.on if name in tapes):
        with suppress(ValueError):
            made.append(outcome(one, name, tapes[name]))
    return made


def short(name: str) -> str:
    return name.removeprefix("test_")


def keep(found: dict[str, Tape]) -> int:
    for name, tape in found.items():
        verdict = judge_tape(tape).verdict
        if verdict is not PASS:
            print(f"{name} is not kept: {verdict}")
            continue
        file = DATA / f"{short(name)}.jsonl.xz"
        file.write_bytes(lzma.compress(encode(tape), preset=9))
        print(f"{file} {file.stat().st_size} bytes")
    return 0


def as_data(one: Outcome) -> dict[str, object]:
    return {
        "family": one.edit.family,
        "name": one.edit.name,
        "base": one.base,
        "due": sorted(one.edit.due),
        "got": one.got,
        "kind": one.kind,
        "why": one.edit.why,
        "names": one.edit.names,
        "sentence": one.sentence,
    }


COLUMNS = (("right", 7), ("false PASS", 12), ("false FAIL", 12), ("wrong UNKNOWN", 15), ("unnamed", 9))


def table(made: list[Outcome]) -> str:
    """Family by (due, got), what was misjudged, and ratios."""
    lines = [f"{'family':<24}{'edits':>6}" + "".join(f"{kind:>{width}}" for kind, width in COLUMNS)]
    for family in dict.fromkeys(one.edit.family for one in made):
        lines.append(_row(family, [one for one in made if one.edit.family == family]))
    lines.append(_row("all", made))
    for wanted in (PASS, FAIL, UNKNOWN):
        got = Counter(one.got for one in made if one.edit.due == {wanted})
        lines.append(f"due {wanted}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(got.items())))
    for one in made:
        if not one.right:
            due = "|".join(sorted(str(verdict) for verdict in one.edit.due))
            lines += [f"\n{one.kind}: {one.key}", f"  due {due}: {one.edit.why}", f"  got {one.sentence}"]
    return "\n".join(lines)


def _row(name: str, made: list[Outcome]) -> str:
    kinds = Counter(one.kind for one in made)
    return f"{name:<24}{len(made):>6}" + "".join(f"{kinds[kind]:>{width}}" for kind, width in COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
