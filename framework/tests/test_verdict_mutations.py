"""Every mutation of a healthy history gets the verdict that is due (``framework/benchmarks/mutations.py``).

Each is made of one recorded history; with ``PLUGPULL_MUTATIONS=all`` of every one that it is meant for, which takes
twice as long.
"""

from __future__ import annotations

import json
import lzma
import os
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import edits, mutations
from benchmarks.edits.events import between, of
from benchmarks.edits.registry import (
    CATALOGUE,
    DATA,
    FAIL,
    PASS,
    UNKNOWN,
    Edit,
    Outcome,
    base,
    bases,
    judge_tape,
    outcome,
    outcomes,
)
from benchmarks.edits.tape import Tape, encode, read_tape

KNOWN = frozenset((DATA / "mutations_known.txt").read_text().splitlines())
"""Mutations that are misjudged. One that is judged right has to be taken off the list."""
BASES = None if os.environ.get("PLUGPULL_MUTATIONS") == "all" else 1
FAMILIES = tuple(dict.fromkeys(edit.family for edit in CATALOGUE))
COMPOSED = ("two_scenarios", "real_dut")

assert edits


def _said(wrong: Outcome) -> str:
    due = "|".join(sorted(wrong.edit.due))
    return f"{wrong.key}: {due} is due ({wrong.edit.why}) and got {wrong.sentence}"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_mutation_gets_the_verdict_that_is_due(family: str) -> None:
    edits = [edit for edit in CATALOGUE if edit.family == family]
    made = [outcome(edit, name, base(name)) for edit in edits for name in edit.on[:BASES]]
    unexpected = [_said(one) for one in made if not one.right and one.key not in KNOWN]
    assert not unexpected, "\n" + "\n".join(unexpected)
    fixed = sorted(one.key for one in made if one.right and one.key in KNOWN)
    assert not fixed, f"judged right by now, take off {DATA.name}/mutations_known.txt: {fixed}"


def test_what_is_known_to_be_misjudged_exists() -> None:
    keys = {f"{edit.family}/{edit.name}@{name}" for edit in CATALOGUE for name in edit.on}
    assert keys >= KNOWN


@pytest.mark.parametrize("name", [*sorted(bases()), *COMPOSED])
def test_the_histories_pass_as_they_were_recorded(name: str) -> None:
    results = judge_tape(base(name))
    assert results.verdict is PASS, results.sentence


def test_names_are_unique_and_every_verdict_is_due_somewhere() -> None:
    names = Counter((edit.family, edit.name) for edit in CATALOGUE)
    assert [name for name, count in names.items() if count > 1] == []
    assert len(names) >= 250
    assert {frozenset([PASS]), frozenset([FAIL]), frozenset([UNKNOWN])} <= {edit.due for edit in CATALOGUE}
    assert all(edit.why.endswith(".") for edit in CATALOGUE)


def test_an_edit_that_changes_nothing_is_noticed() -> None:
    same = Edit("none", "nothing", frozenset([PASS]), "Nothing.", lambda tape: tape, ("while_idle",))
    with pytest.raises(ValueError, match="changes nothing"):
        outcomes([same])


# --- the edits do what they say -----------------------------------------------------------------------------------


def test_time_put_in_moves_what_comes_later_and_samples_go_on() -> None:
    tape = base("while_writing")
    at = tape.quiet_at
    longer = tape.wait(at, 5.0)
    assert longer.on_at == pytest.approx(tape.on_at + 5.0)
    assert longer.off_at == tape.off_at
    filled = longer.all(lambda event: event["type"] == "sample" and at < event["at"] <= at + 5.0)
    assert len(filled) > 40
    row = [event["disks"]["sdb"][2] for event in filled]
    before = [event["disks"]["sdb"][2] for event in tape.all(of("sample")) if at - 1.5 < event["at"] < at]
    assert (row[-1] - row[0]) / 5.0 == pytest.approx((before[-1] - before[0]) / 1.4, rel=0.2)
    assert row == sorted(row)


def test_a_frozen_disk_moves_nothing_and_the_others_do() -> None:
    tape = base("while_writing")
    still = tape.stand_still("bot", tape.quiet_at, 4.0)
    window = still.all(lambda e: e["type"] == "sample" and between(tape.quiet_at + 0.2, tape.quiet_at + 3.9)(e))
    assert len({event["disks"]["sdb"][2] for event in window}) == 1
    assert len({event["disks"]["sdc"][2] for event in window}) > 10
    ended = still.first(of("load.end", disk="bot"))
    assert ended["written_bytes"] <= tape.first(of("load.end", disk="bot"))["written_bytes"] * 1.05


def test_kernel_messages_are_numbered_without_a_gap() -> None:
    tape = base("while_writing").say(base("while_writing").off_at, "one", "two").hush("Write Protect")
    seqs = [event["seq"] for event in tape.all(of("kernel"))]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


# --- the program --------------------------------------------------------------------------------------------------


def _program(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["mutations.py", *arguments])
    return mutations.main()


def test_a_run_can_be_mutated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "history.jsonl"
    history.write_bytes(lzma.decompress(bases()["while_writing"].read_bytes()))
    assert _program(monkeypatch, str(tmp_path), "--only", "bench error and an oops", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert {one["base"] for one in made} == {"while_writing"}
    assert {one["got"] for one in made} == {"FAIL"}
    assert all(one["why"] and one["sentence"] for one in made)


def test_the_table_counts_each_kind(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _program(monkeypatch, "--only", "kernel says when/oops before the cut") == 0
    out = capsys.readouterr().out
    assert "kernel says when" in out
    assert "due FAIL: 2 FAIL" in out


def test_a_recorded_history_is_kept_as_it_is(tmp_path: Path) -> None:
    tape = base("while_idle")
    file = tmp_path / "x.jsonl.xz"
    file.write_bytes(lzma.compress(encode(tape)))
    assert read_tape(file) == Tape(tape.events)
