"""Finds lines of recorded runs that can be missing without an effect on the verdict.

Each scenario of each run is judged alone, as a run of its own, and again

- cut off after every line: none of these may be PASS;
- with any one line removed, numbers and digests compared: none of these may be PASS;
- with any one line removed, judged as edited (``plugpull check --edited``): PASS is right only if no claim rests
  on the line. The table lists these by kind of event, with an example. ``NOTHING_CLAIMED`` lists the kinds of which a
  single line supports no claim, and why.

Only scenarios that pass as they are recorded are judged as edited. ``--every 20`` takes every twentieth line of a kind
and scenario only, ``--kinds`` only some kinds, ``--unjudged`` leaves the third part out: judging a run without each of
its lines takes about twenty minutes. Exit status 1 if a cut, a numbered history with a hole, or a line that carried
something passed. Runs of earlier versions have no numbers of reports, so that more of their lines are not missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from plugpull.history.events import Seal
from plugpull.history.reader import HISTORY_FILE, read_history
from plugpull.history.seals import Chain, label_of, numbered
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Verdict

NOTHING_CLAIMED = {
    "sample": "counters are cumulative, so its neighbours say the same; a long hole is missed (reach.py)",
    "clock": "every exchange says the same, each within its own error; a silence is missed (evidence.py, reach.py)",
    "phase": "says to a reader what comes next; what was then done has events of its own, which are missed",
    "note": "says something to a reader; nothing is judged by it",
    "rates.lifted": "excuses a disk that is faster than its rate; without it nothing more is excused",
    "dut.timers plugging": "how long usb-storage lets a device settle, from which no limit is derived",
}
"""A kind of event, or the first word of several -> why nothing is lost with one line of it."""


@dataclass
class Tally:
    """What came of one kind of removal, by kind of event."""

    tried: Counter[str] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def enter(self, kind: str, verdict: Verdict, line: bytes) -> None:
        self.tried[kind] += 1
        self.failed[kind] += verdict is Verdict.FAIL
        if verdict is Verdict.PASS:
            self.passed[kind] += 1
            self.examples.setdefault(kind, line.decode(errors="replace").strip()[:150])

    @property
    def claimed(self) -> int:
        """How many passed without a line that carried something."""
        return sum(count for kind, count in self.passed.items() if not {kind, kind.split()[0]} & set(NOTHING_CLAIMED))


def kind_of(line: bytes) -> str:
    """The kind of event, and what distinguishes events of this kind that different checks use."""
    data = json.loads(line)
    detail = {
        "edge": ("state", "phase"),
        "uevent": ("subsystem", "action"),
        "census": ("moment",),
        "dut.timers": ("moment",),
        "phase": ("name",),
        "action": ("action",),
    }.get(data["type"], ())
    return " ".join([str(data["type"]), *(str(data.get(name, "")) for name in detail)])


def sealed(lines: list[bytes]) -> list[bytes]:
    """These lines as the recorder would have written them: numbered from 1, with one seal at the end."""
    chain, made = Chain(), []
    for number, line in enumerate(lines, 1):
        bare = {key: value for key, value in json.loads(line).items() if key != "n"}
        if bare["type"] == "run.begin":
            bare["numbered"] = True
        made.append(numbered(json.dumps(bare, separators=(",", ":")).encode(), number))
        chain.add(made[-1])
    seal = json.dumps({"type": Seal.__struct_config__.tag, "digest": chain.digest}).encode()
    return [*made, numbered(seal, len(made) + 1)]


def scenarios(run: Path) -> Iterator[list[bytes]]:
    """The lines of each scenario of a run, between a beginning and an end of the run that name only this one. What
    interrupted the run is not its business."""
    file = run / HISTORY_FILE if run.is_dir() else run
    lines = [line for line in file.read_bytes().splitlines() if label_of(line).type != "seal"]
    begin, end = json.loads(lines[0]), json.loads(lines[-1])
    end.pop("interrupted", None)
    opened: list[bytes] = []
    for line in lines[1:-1]:
        kind = label_of(line).type
        if kind == "scenario.begin":
            opened = []
            if begin.get("planned") is not None:
                begin["planned"] = [json.loads(line)["id"]]
        opened.append(line)
        if kind == "scenario.end":
            yield sealed([json.dumps(begin).encode(), *opened, json.dumps(end).encode()])


def verdict(file: Path, lines: list[bytes], *, edited: bool) -> Verdict:
    file.write_bytes(b"".join(lines))
    return judge_history(read_history(file, edited=edited)).verdict


def passes_unjudged(file: Path, lines: list[bytes]) -> bool:
    """Whether nothing about the lines themselves keeps this history from passing: quicker than judging it."""
    file.write_bytes(b"".join(lines))
    history = read_history(file)
    return history.complete and not history.flawed and not history.lost_lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="of each kind, only every N-th line")
    parser.add_argument("--unjudged", action="store_true", help="do not judge edited histories, which takes long")
    parser.add_argument(
        "--kinds", default="", metavar="KIND,...", help="only events of these types, such as edge,kernel"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios with this in their id")
    options = parser.parse_args()
    edited, holes, cuts, tried = Tally(), Tally(), 0, 0
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / HISTORY_FILE
        for run in options.run:
            for lines in scenarios(run):
                name = json.loads(lines[1])["id"]
                if options.only not in name:
                    continue
                if not options.unjudged and verdict(file, lines, edited=False) is not Verdict.PASS:
                    print(f"left out, not PASS as recorded: {name}", file=sys.stderr)
                    continue
                tried += 1
                print(f"{name}: {len(lines)} lines", file=sys.stderr, flush=True)
                cuts += sum(passes_unjudged(file, lines[:length]) for length in range(1, len(lines), options.every))
                kinds = frozenset(filter(None, options.kinds.split(",")))
                remove_each(file, lines, options.every, kinds, holes, None if options.unjudged else edited)
    report(tried, cuts, holes, edited)
    return 1 if cuts or holes.passed or edited.claimed else 0


def remove_each(
    file: Path, lines: list[bytes], every: int, kinds: frozenset[str], holes: Tally, edited: Tally | None
) -> None:
    """Remove each line, or every so many, of these kinds (all, if there are none)."""
    seen: Counter[str] = Counter()
    for place, line in enumerate(lines):
        kind = kind_of(line)
        if kinds and kind.split()[0] not in kinds:
            continue
        seen[kind] += 1
        if (seen[kind] - 1) % every:
            continue
        rest = [*lines[:place], *lines[place + 1 :]]
        holes.enter(kind, Verdict.PASS if passes_unjudged(file, rest) else Verdict.UNKNOWN, line)
        if edited is not None and label_of(line).type != "seal":
            edited.enter(kind, verdict(file, rest, edited=True), line)


def report(tried: int, cuts: int, holes: Tally, edited: Tally) -> None:
    print(f"{tried} scenarios")
    print(f"cut off: {cuts} passed")
    print(f"one line removed, numbers compared: {sum(holes.passed.values())} of {sum(holes.tried.values())} passed")
    if not edited.tried:
        return
    print(f"one line removed, judged as edited: {sum(edited.passed.values())} of {sum(edited.tried.values())} passed")
    print(f"of these, {edited.claimed} without a line that carried something")
    print("\n| kind | removed | PASS | FAIL | UNKNOWN | a line whose removal passes |\n|---|---:|---:|---:|---:|---|")
    for kind in sorted(edited.tried):
        tried_, passed, failed = edited.tried[kind], edited.passed[kind], edited.failed[kind]
        example = edited.examples.get(kind, "").replace("|", "\\|")
        print(f"| {kind} | {tried_} | {passed} | {failed} | {tried_ - passed - failed} | `{example}` |")
    print("\n| kind | why nothing is lost with one line |\n|---|---|")
    for kind, why in NOTHING_CLAIMED.items():
        print(f"| {kind} | {why} |")


if __name__ == "__main__":
    sys.exit(main())
