"""What a mutation of a history is, where it is registered, and how it is judged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from benchmarks.edits.events import Event, of
from benchmarks.edits.tape import Tape, encode, read_tape, without_seals
from plugpull.history.reader import read_history
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Results, Verdict

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
Due = Verdict | Iterable[Verdict]
DATA = Path(__file__).resolve().parents[2] / "tests" / "data"

Apply = Callable[..., Tape]
"""Takes a tape. Other parameters have defaults: what a loop gave to the lambda it made."""

IDLE = ("while_idle",)
WRITING = ("while_writing",)
CUT = ("while_writing", "while_reading", "while_idle")
LOADED = ("while_writing", "while_reading")


@dataclass(frozen=True)
class Edit:
    """One way to change a healthy history. ``due`` are the verdicts that the changed record can bear; ``why`` says so
    in a line. With FAIL due alone, a finding has to name one of ``names``: ``victim``, ``survivor`` or a text."""

    family: str
    name: str
    due: frozenset[Verdict]
    why: str
    apply: Apply
    on: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """An edit applied to one base and judged."""

    edit: Edit
    base: str
    got: Verdict
    sentence: str
    named: bool = True

    @property
    def right(self) -> bool:
        return self.got in self.edit.due and self.named

    @property
    def key(self) -> str:
        return f"{self.edit.family}/{self.edit.name}@{self.base}"

    @property
    def kind(self) -> str:
        """``right``, ``false PASS``, ``false FAIL``, ``wrong UNKNOWN`` or ``unnamed``."""
        if self.right:
            return "right"
        if self.got in self.edit.due:
            return "unnamed"
        return f"{'wrong' if self.got is UNKNOWN else 'false'} {self.got}"


CATALOGUE: list[Edit] = []
CONTROL = "nothing at all"
"""The name of edits that are to change nothing."""


def add(family: str, name: str, due: Due, why: str, apply: Apply, on: Iterable[str], names: str = "") -> None:
    """``names`` are separated by ``|``."""
    verdicts = frozenset([due] if isinstance(due, Verdict) else due)
    CATALOGUE.append(Edit(family, name, verdicts, why, apply, tuple(on), tuple(names.split("|")) if names else ()))


def edit(family: str, due: Due, on: Iterable[str] = CUT, names: str = "") -> Callable[[Apply], Apply]:
    """Registers a function whose name is the edit's and whose docstring says why its verdict is due."""

    def register(apply: Apply) -> Apply:
        add(family, apply.__name__.replace("_", " "), due, " ".join((apply.__doc__ or "").split()), apply, on, names)
        return apply

    return register


# --- bases ------------------------------------------------------------------------------------------------------------


def bases() -> dict[str, Path]:
    """The recorded healthy histories kept with the tests."""
    return {file.name.removesuffix(".jsonl.xz"): file for file in sorted(DATA.glob("*.jsonl.xz"))}


@cache
def base(name: str) -> Tape:
    if name == "two_scenarios":
        return together(base("every_disk_is_found_at_its_place"), base("while_idle"))
    if name == "real_dut":
        return on_a_real_dut(base("while_idle"))
    return without_seals(read_tape(bases()[name]))


def together(one: Tape, two: Tape) -> Tape:
    """Two runs of one scenario each as one run of two."""
    begun, ended = of("run.begin"), of("run.end")
    inside = tuple(event for event in two.events if not begun(event) and not ended(event))
    return Tape((*one.events[:-1], *inside, one.events[-1]))


def on_a_real_dut(tape: Tape) -> Tape:
    """One scenario twice, on a DUT that runs on in between: its clock, its log and its disks go on where they were."""
    tape = tape.change(of("dut.ready"), kind="ssh", how="found", accel="")
    tape = tape.change(of("run.begin"), rig=tape.rig | {"dut": tape.rig["dut"] | {"kind": "ssh", "host": "dut"}})
    begun = tape.first(of("census", moment="begin"))["at"]
    arrival = ("kernel", "uevent", "disk.attached", "sample")
    again = tape.lose(lambda event: event["type"] in arrival and event["at"] < begun)
    gone, back = tape.attached(tape.victim), tape.attached(tape.victim, 1)
    seqs = {gone["diskseq"]: back["diskseq"], back["diskseq"]: back["diskseq"] + 1}
    shift = tape.last(of("scenario.end"))["at"] - tape.first(of("clock"))["at"] + 2.0
    last = max(event["seq"] for event in tape.all(of("kernel")))
    first = again.first(of("kernel"))["seq"]

    def later(event: Event) -> Event:
        event = event | {
            f: event[f] + shift for f in ("at", "asked_at", "sent", "controller") if event.get(f) is not None
        }
        if event["type"] == "kernel":
            event["seq"] += last + 1 - first
        if event["type"] in ("disk.attached", "disk.detached"):
            event["diskseq"] = seqs.get(event["diskseq"], event["diskseq"])
        if event["type"] == "sample":
            event["disks"] = {k: [seqs.get(row[0], row[0]), *row[1:]] for k, row in event["disks"].items()}
        return event

    inside = tuple(later(event) for event in again.events[1:-1])
    return Tape((*tape.events[:-1], *inside, tape.events[-1]))


# --- judging ----------------------------------------------------------------------------------------------------------


def judge_tape(tape: Tape) -> Results:
    return _judge_text(encode(tape))


def _judge_text(text: bytes) -> Results:
    """Judged by way of a file, as ``plugpull check`` does it."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(text)
        file.flush()
        return judge_history(read_history(Path(file.name)))


def outcome(one: Edit, name: str, tape: Tape) -> Outcome:
    try:
        text = encode(one.apply(tape))
        assert text != encode(tape) or one.name == CONTROL, "it changes nothing"
        results = _judge_text(text)
    except (LookupError, StopIteration, ValueError, AssertionError) as error:
        raise ValueError(f"{one.family}/{one.name} cannot be applied to {name}: {error!r}") from error
    sentence = next((s.sentence for s in results.scenarios if s.verdict is results.verdict), results.sentence)
    return Outcome(one, name, results.verdict, sentence, results.verdict is not FAIL or _named(one, tape, results))


def _named(one: Edit, tape: Tape, results: Results) -> bool:
    special = {
        "victim": lambda: tape.victims[:1],
        "survivor": lambda: tape.survivors[:1],
        "survivors": lambda: tape.survivors,
    }
    wanted = [disk for name in one.names for disk in (special[name]() if name in special else (name,))]
    findings = [finding for scenario in results.scenarios for finding in scenario.findings]
    said = [f"{finding.subject} {finding.summary} {' '.join(finding.evidence)}" for finding in findings]
    said.append(results.sentence)
    return not wanted or any(name in text for name in wanted for text in said)


def outcomes(edits: Iterable[Edit], tapes: Callable[[str], Tape] = base) -> list[Outcome]:
    return [outcome(one, name, tapes(name)) for one in edits for name in one.on]


def all_outcomes(edits: Iterable[Edit], *, bases: int | None = None) -> list[Outcome]:
    """The outcomes of registered edits on the kept histories, or on the first few that each is meant for, worked out on
    all processors."""
    chosen = [(CATALOGUE.index(one), name) for one in edits for name in one.on[:bases]]
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        judged = list(pool.map(_judged, chosen, chunksize=8))
    return [Outcome(CATALOGUE[index], name, *rest) for (index, name), rest in zip(chosen, judged, strict=True)]


def _judged(which: tuple[int, str]) -> tuple[Verdict, str, bool]:
    made = outcome(CATALOGUE[which[0]], which[1], base(which[1]))
    return made.got, made.sentence, made.named
