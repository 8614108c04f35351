"""Kinds of events, and values that this version does not list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from stories import encode, healthy, run_of

from plugpull.history import events as ev
from plugpull.history.events.base import Event
from plugpull.history.open_values import KINDS, closed_values
from plugpull.history.reader import read_history
from plugpull.judging.judge import judge_history

BLANKS: dict[str, dict[str, Any]] = {
    "phase": {"name": "plug"},
    "dut.ready": {"kernel": "6.12", "kind": "ssh", "how": "connected", "took": 1.0},
    "edge": {"cut": 1, "point": "p", "switch": "s", "port": "1", "state": "off", "phase": "commanded"},
    "cut.switched": {"cuts": [1], "state": "off", "switches": ["s"], "ports": 2, "skew": 0.1},
    "census": {"moment": "begin", "things": {}},
    "dut.state": {"moment": "begin"},
    "dut.timers": {"moment": "begin"},
    "disk.properties": {"disk": "disk1", "kname": "sda", "diskseq": 1, "moment": "end", "values": {}},
    "action": {"action": "mount", "disk": "disk1", "ok": True, "seconds": 1.0},
    "array.acted": {"array": "array1", "action": "make", "ok": True, "seconds": 1.0},
    "disk.aside": {"disk": "disk1", "wall": "", "cause": "cut"},
    "scenario.error": {"fault": "rig", "summary": "no power"},
    "kernel": {"text": "hello", "source": "kmsg"},
    "load.begin": {"disk": "disk1", "job": "j", "mode": "read", "block": 4096, "depth": 1, "span": 8192},
    "action.begin": {"action": "mount", "disk": "disk1"},
    "measured": {
        "begin": 1.0, "disks": ["disk1"], "mode": "read", "block": 4096, "depth": 1, "number": 1, "planned": 1,
        "repeat": 1, "repeats": 1,
    },
    "fio.ran": {
        "begin": 1.0, "task": "direct", "disks": ["disk1"], "mode": "write", "block": 4096, "depth": 1, "number": 1,
        "planned": 1, "repeat": 1, "repeats": 1,
    },
    "meter.opened": {"meter": "plug", "driver": "shelly", "disks": ["disk1"], "side": "mains", "rate": 1.0},
    "ledger.begin": {
        "disk": "disk1", "job": "j", "run": 1, "device": 1, "session": 1, "extents": [[0, 8]], "block": 8, "depth": 1,
        "order": "random",
    },
}  # fmt: skip
"""One event of each kind that has fields with listed values."""


def written(directory: Path, *lines: dict[str, Any]) -> Path:
    begun = {"type": "scenario.begin", "id": "one", "wall": "", "seed": 1}
    file = directory / "history.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in (begun, *lines)))
    return file


def test_every_event_can_be_read() -> None:
    kinds, waiting = set[type[Event]](), [Event]
    while waiting:
        below = [kind for kind in waiting.pop().__subclasses__() if kind.__module__.startswith("plugpull.")]
        kinds.update(below)
        waiting += below
    assert kinds == set(KINDS.values())
    assert {kind.__name__ for kind in kinds} <= set(ev.__all__), "each is imported from plugpull.history.events"


def test_all_kinds_with_listed_values_are_tried_here() -> None:
    assert {tag for tag, kind in KINDS.items() if closed_values(kind)} == set(BLANKS)


@pytest.mark.parametrize(("tag", "field"), [(tag, field) for tag in BLANKS for field in closed_values(KINDS[tag])])
def test_a_value_that_is_not_listed_is_kept(tmp_path: Path, tag: str, field: str) -> None:
    line = {"type": tag, "at": 1, **BLANKS[tag], field: "of tomorrow"}
    history = read_history(written(tmp_path, line))
    assert (history.lost_lines, history.skipped_lines) == (0, 0)
    (_, event) = (history.stories[0].begun, history.stories[0].events[-1])
    assert isinstance(event, KINDS[tag])
    assert getattr(event, field) == "of tomorrow"
    others = {name: value for name, value in BLANKS[tag].items() if name != field}
    assert {name: json.loads(msgspec.json.encode(event)).get(name, value) for name, value in others.items()} == others


@pytest.mark.parametrize(("tag", "field"), [(tag, field) for tag in BLANKS for field in closed_values(KINDS[tag])])
def test_listed_values_are_read_as_they_were_written(tmp_path: Path, tag: str, field: str) -> None:
    lines = [{"type": tag, **BLANKS[tag], field: value} for value in closed_values(KINDS[tag])[field]]
    history = read_history(written(tmp_path, *lines))
    assert history.lost_lines == 0
    assert (
        tuple(getattr(event, field) for event in history.stories[0].events[-len(lines) :])
        == closed_values(KINDS[tag])[field]
    )


@pytest.mark.parametrize("wrong", [{"name": 5}, {"name": None}, {"name": ["plug"]}, {"name": "new", "text": 5}, {}])
def test_a_line_with_something_else_wrong_is_damaged(tmp_path: Path, wrong: dict[str, Any]) -> None:
    assert read_history(written(tmp_path, {"type": "phase", **wrong})).lost_lines == 1


def test_a_phase_that_is_not_listed_changes_no_verdict(tmp_path: Path) -> None:
    text = encode(run_of(list(healthy().scenario())))
    assert b'"name":"plug"' in text
    verdicts = []
    for name, content in (("known", text), ("unknown", text.replace(b'"name":"plug"', b'"name":"of tomorrow"'))):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "history.jsonl").write_bytes(content)
        verdicts.append(judge_history(read_history(directory, edited=True)).scenarios[0].verdict)
    assert verdicts[0] is verdicts[1]
