"""Edits of what a scenario asked to be judged."""

from __future__ import annotations

from benchmarks.edits.events import Event, of
from benchmarks.edits.record import LONG
from benchmarks.edits.registry import PASS, UNKNOWN, add
from benchmarks.edits.tape import Tape


def _asked(tape: Tape, name: str, **fields: object) -> Tape:
    def change(event: Event) -> Event:
        return event | {"checks": [check | fields if check["check"] == name else check for check in event["checks"]]}

    return tape.map(of("judge"), change)


for _check in ("removed", "returned", "kept_pace", "no_errors", "data_intact"):
    add(
        "judge asked",
        f"{_check} about no disk",
        UNKNOWN,
        "A claim about nothing was asked for: nothing was judged by it.",
        lambda tape, c=_check: _asked(tape, c, disks=[]),
        ("while_writing",),
    )
    add(
        "judge asked",
        f"{_check} about an unknown disk",
        UNKNOWN,
        "The rig has no such disk, so nothing can be said of it.",
        lambda tape, c=_check: _asked(tape, c, disks=["disk99"]),
        ("while_writing",),
    )
add(
    "judge asked",
    "nothing_lost about no disk",
    UNKNOWN,
    "A claim about nothing was asked for.",
    lambda tape: _asked(tape, "nothing_lost", disks=[]),
    ("power_fails_between_flushes",),
)
add(
    "judge asked",
    "nothing_lost about an unknown disk",
    UNKNOWN,
    "The rig has no such disk.",
    lambda tape: _asked(tape, "nothing_lost", disks=["disk99"]),
    ("power_fails_between_flushes",),
)
add(
    "judge asked",
    "discovered about no disk",
    UNKNOWN,
    "A claim about nothing was asked for.",
    lambda tape: _asked(tape, "discovered", disks=[]),
    ("every_disk_is_found_at_its_place",),
)
add(
    "judge asked",
    "ended_with_error about no disk",
    UNKNOWN,
    "A claim about nothing was asked for.",
    lambda tape: _asked(tape, "ended_with_error", disks=[]),
    ("a_disk_dies_in_use",),
)
add(
    "judge asked",
    "unmountable about no disk",
    UNKNOWN,
    "A claim about nothing was asked for.",
    lambda tape: _asked(tape, "unmountable", disks=[]),
    ("a_cable_is_gone_for_good",),
)
add(
    "judge asked",
    "a check that nobody knows",
    UNKNOWN,
    "What was asked for cannot be judged by this version.",
    lambda tape: _asked(tape, "kernel_clean", check="kernel_spotless"),
    LONG,
)
add(
    "judge asked",
    "a check without what it needs",
    UNKNOWN,
    "What was asked for cannot be read.",
    lambda tape: tape.map(of("judge"), lambda e: e | {"checks": [{"check": "removed"}, *e["checks"][1:]]}),
    LONG,
)
add(
    "judge asked",
    "asked twice",
    PASS,
    "The same question twice has the same answer.",
    lambda tape: tape.double(of("judge")),
    LONG,
)
