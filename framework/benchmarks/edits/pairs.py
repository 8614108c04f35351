"""Two edits at once: what a faulty DUT did stays a finding, whatever else is missing, harmless or the bench's fault."""

from __future__ import annotations

import random
from collections.abc import Iterable

from benchmarks.edits import (
    cuts,
    dut,
    kernel,
    kernel_when,
    left,
    load_end,
    others,
    pace,
    record,
    returned,
    samples,
    state,
)
from benchmarks.edits.events import of
from benchmarks.edits.others import with_bystander
from benchmarks.edits.registry import CATALOGUE, FAIL, PASS, UNKNOWN, Apply, Edit, add
from benchmarks.edits.tape import Tape

BASES = ("while_writing",)
MADE_OF = (
    cuts,
    dut,
    kernel,
    kernel_when,
    left,
    load_end,
    others,
    pace,
    record,
    returned,
    samples,
    state,
)
"""The modules that register the edits combined here."""


FAULTS: dict[str, tuple[str, str]] = {
    "oops": ("kernel says when/oops during the return", "NULL pointer|kernel"),
    "soft lockup": ("starved/soft lockup while sampled", "lockup|kernel"),
    "survivor reset": ("kernel says when/survivor is reset just after the cut", "survivor"),
    "survivor's I/O error": ("kernel says when/survivor's I/O error before the cut", "survivor"),
    "survivor gone": ("someone else goes/survivor goes during the return and comes back", "survivor"),
    "late removal": ("removal/removed nine seconds late", "victim"),
    "never back": ("return/never back in twenty seconds", "victim"),
    "another serial": ("return as another/another serial number", "victim"),
    "half pace": ("pace/half for every survivor", "survivors"),
    "stall": ("stall/8 s at the return", "survivor"),
    "wrong data": ("verify/wrong data on the survivor", "survivor"),
    "stuck process": ("processes/stuck on the survivor", "fio|stuck"),
    "load met EIO": ("load end/survivor's load met EIO", "survivor"),
    "left over": ("left over/SCSI host", ""),
    "dead DUT": ("agent/dut died", "panic"),
}
"""Faults of the DUT, by the edit that describes them, and what a finding has to name."""

_LAST = "behind"
"""A survivor that the faults are not about."""

MISSING: dict[str, Apply] = {
    "records of the log overwritten": lambda tape: tape.insert(
        {"type": "kernel.lost", "at": tape.off_at + 0.5, "count": 12}
    ),
    "the other survivor not read back": lambda tape: tape.drop(of("verify", disk=_LAST)),
    "the other survivor's load without an end": lambda tape: tape.drop(of("load.end", disk=_LAST)),
    "the other survivor not sampled": lambda tape: tape.blind(_LAST),
    "residue missing": lambda tape: tape.drop(of("residue")),
    "census missing at the beginning": lambda tape: tape.drop(of("census", moment="begin")),
    "end of the scenario missing": lambda tape: tape.drop(of("scenario.end")),
    "end of the run missing": lambda tape: tape.drop(of("run.end")),
    "run interrupted": lambda tape: tape.change(of("run.end"), interrupted="interrupted: Ctrl-C"),
    "bench fault at the end": lambda tape: tape.insert(
        {"type": "rig.fault", "at": tape.judged_at - 0.01, "summary": "the switch does not answer any more"}
    ),
    "judgement never asked for": lambda tape: tape.drop(of("judge")),
    "scenario stopped by the bench": lambda tape: tape.insert(
        {"type": "scenario.error", "at": tape.judged_at, "fault": "rig", "summary": "the agent did not answer 'fio'"}
    ).drop(of("judge")),
    "ports read back otherwise on the way out": lambda tape: tape.insert(
        {"type": "heal", "at": tape.judged_at + 0.01, "ports": ["cables.2"], "ok": False, "detail": "no answer"}
    ),
}
"""What may be missing elsewhere."""

HARMLESS: dict[str, Apply] = {
    "a note": lambda tape: tape.insert({"type": "note", "at": tape.judged_at - 0.1, "text": "it rained"}),
    "a line of the network": lambda tape: tape.say(tape.off_at + 0.3, "e1000e 0000:00:19.0 eth0: NIC Link is Down"),
    "a bystander": with_bystander,
    "an unknown event": lambda tape: tape.insert({"type": "future.event", "at": tape.off_at + 0.2}),
    "a longer hold": lambda tape: tape.wait(tape.on_at - 0.01, 2.0),
    "a longer settling": lambda tape: tape.wait(tape.off_at - 0.3, 2.0),
}
"""What changes nothing."""

_UNTOLD = {
    "left over": ("census missing at the beginning",),
    "half pace": ("bench fault at the end",),
    "stall": ("bench fault at the end",),
}
"""Pairs in which the fault would be known by what is missing, or explained by it."""
_ASKED = ("judgement never asked for", "scenario stopped by the bench")
"""Without a judgement a scenario's own claims are not known; what stands for every scenario is."""
_NEEDS_ASKING = ("half pace", "stall", "another serial")


def _apply(name: str) -> Edit:
    return next(one for one in CATALOGUE if f"{one.family}/{one.name}" == name)


FULLY = ("oops", "survivor gone", "late removal", "half pace")
"""Faults that are combined with everything, the others with a third of it."""

for _fault, (_recipe, _names) in FAULTS.items():
    _edit = _apply(_recipe)
    for _kind, _others in (("missing", MISSING), ("harmless", HARMLESS)):
        for _place, (_name, _other) in enumerate(_others.items()):
            if _fault not in FULLY and (_place + len(_fault)) % 3:
                continue
            if _name in _UNTOLD.get(_fault, ()) or (_name in _ASKED and _fault in _NEEDS_ASKING):
                continue
            add(
                f"fault and {_kind}",
                f"{_fault} and {_name}",
                FAIL,
                "A finding stands whatever else is missing, harmless or the bench's fault.",
                lambda tape, one=_edit, other=_other: other(one.apply(tape)),
                BASES,
                _names,
            )


def _both(tape: Tape, recipes: Iterable[Edit]) -> Tape:
    for one in recipes:
        tape = one.apply(tape)
    return tape


def combinations(seed: int, count: int) -> Iterable[Edit]:
    """Random combinations of one or two faults of the DUT with up to three things missing or harmless."""
    chosen = random.Random(seed)
    simple = ("oops", "survivor reset", "survivor's I/O error", "wrong data", "stuck process", "load met EIO")
    for i in range(count):
        faults = chosen.sample(simple, chosen.choice((1, 2)))
        rest = chosen.sample(sorted({**MISSING, **HARMLESS}), chosen.randint(1, 3))
        changes = [{**MISSING, **HARMLESS}[name] for name in rest]
        edits = [_apply(FAULTS[fault][0]) for fault in faults]

        def combined(tape: Tape, edits: list[Edit] = edits, changes: list[Apply] = changes) -> Tape:
            tape = _both(tape, edits)
            for change in changes:
                tape = change(tape)
            return tape

        yield Edit(
            "combined",
            f"{i}: {', '.join([*faults, *rest])}",
            frozenset([FAIL]),
            "A finding stands whatever else is missing, harmless or the bench's fault.",
            combined,
            BASES,
        )


CATALOGUE.extend(combinations(9, 60))

for _name, _other in HARMLESS.items():
    add(
        "harmless pairs",
        f"{_name} and a slower return",
        PASS,
        "Two harmless things are harmless.",
        lambda tape, other=_other: other(tape.returned_late(1.0)),
        BASES,
    )
for _name, _other in MISSING.items():
    add(
        "missing pairs",
        f"{_name} and a note",
        UNKNOWN,
        "What is missing stays missing beside what is harmless.",
        lambda tape, other=_other, note=HARMLESS["a note"]: note(other(tape)),
        BASES,
    )
