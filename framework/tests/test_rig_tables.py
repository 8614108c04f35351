"""A rig file on record that no rig file can be is a doubt, and stops nobody who reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from stories import RIG, encode, healthy, run_of

from plugpull.history import events as ev
from plugpull.history.reader import read_history
from plugpull.history.rig_tables import readable
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Verdict

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"disk": 5}, "disk"),
    ({"disk": [5]}, "disk"),
    ({"disk": {"name": "disk1"}}, "disk"),
    ({"disk": [{"name": []}]}, "disk.name"),
    ({"disk": [{"name": "disk1", "at": 3}]}, "disk.at"),
    ({"hub": "hub1"}, "hub"),
    ({"switch": [None]}, "switch"),
    ({"controller": [{"name": {}}]}, "controller.name"),
    ({"defect": [["disk1"]]}, "defect"),
    ({"dut": "virtual"}, "dut"),
    ({"rig": 1}, "rig"),
]


@pytest.mark.parametrize(("change", "what"), WRONG)
def test_what_no_rig_file_has_is_a_doubt(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    begun, *others = run_of(healthy().scenario())
    assert isinstance(begun, ev.RunBegun)
    file = tmp_path / "history.jsonl"
    file.write_bytes(encode([msgspec.structs.replace(begun, rig=begun.rig | change), *others]))
    results = judge_history(read_history(file))
    assert results.verdict is not Verdict.PASS
    assert any(f"the rig file on record has something else as {what}" in why for why in results.unknowns)


def test_a_rig_file_stays_as_it_is() -> None:
    assert readable(RIG) == (RIG, ())
