"""The coverage that a run reports: what was cut, and what was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from stories import CUT, DISKS, Bench, encode, healthy, run_of

from plugpull.history import events as ev
from plugpull.history.reader import read_history
from plugpull.judging.coverage import coverage_of, sentences
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Coverage
from plugpull.report.html import render_html

RIG: dict[str, Any] = {
    "rig": {"name": "made-up"},
    "dut": {"kind": "virtual"},
    "switch": [
        {"name": "cables", "driver": "virtual", "ports": 4, "mechanism": "data"},
        {"name": "mains", "driver": "virtual", "ports": 4, "mechanism": "mains"},
    ],
    "controller": [{"name": "usb", "ports": 8}, {"name": "other", "ports": 8}],
    "disk": [
        {
            "name": disk,
            "at": f"{'other' if disk == 'disk3' else 'usb'}.{port}",
            "serial": f"S-{disk}",
            "size": 64 << 20,
            "scratch": True,
            "cable": f"cables.{port}",
            "power": f"mains.{port}",
        }
        for port, disk in enumerate(DISKS, 1)
    ],
}


def bench(mode: ev.LoadMode = "write") -> Bench:
    made = healthy(mode=mode)
    made.replace(ev.DiskAttached, lambda event: event.disk != "disk2", driver="usb-storage")
    made.replace(ev.DiskAttached, lambda event: event.disk == "disk2", driver="uas")
    return made


def covered(directory: Path, *benches: Bench, rig: dict[str, Any] | None = None) -> Coverage:
    begun, *rest = run_of(*(one.scenario() for one in benches))
    events = [msgspec.structs.replace(begun, rig=RIG if rig is None else rig), *rest]
    (directory / "history.jsonl").write_bytes(encode(events))
    return coverage_of(read_history(directory))


def cells(coverage: Coverage) -> dict[tuple[str, str, str], int]:
    return {(cell.driver, cell.mechanism, cell.load): cell.cuts for cell in coverage.cells}


def test_what_was_cut_is_counted_and_what_was_not_is_there_with_nothing(tmp_path: Path) -> None:
    coverage = covered(tmp_path, bench(), bench(), bench(mode="read"))
    assert coverage.points == {
        "disk1.cable": 3,
        "disk1.power": 0,
        "disk2.cable": 0,
        "disk2.power": 0,
        "disk3.cable": 0,
        "disk3.power": 0,
    }
    assert coverage.mechanisms == {"data": 3, "mains": 0}
    assert coverage.disks == {"disk1": 3, "disk2": 0, "disk3": 0}
    assert coverage.drivers == {"uas": 0, "usb-storage": 3}
    assert coverage.controllers == {"usb": 3, "other": 0}
    assert coverage.loads == {"idle": 0, "reading": 1, "writing": 2, "stamped writing": 0}


def test_a_driver_that_one_load_never_met_is_named(tmp_path: Path) -> None:
    coverage = covered(tmp_path, bench())
    assert cells(coverage)["usb-storage", "data", "writing"] == 1
    assert cells(coverage)["uas", "data", "stamped writing"] == 0
    assert len(coverage.cells) == 2 * 2 * 4
    said = sentences(coverage)
    assert said[0].startswith("coverage: 1 of 6 cut points were cut; not disk1.power, disk2.cable")
    assert "coverage: driver uas was never cut" in said
    assert "coverage: mechanism mains was never cut" in said
    assert "15 of 16 combinations not cut: uas, data, idle" in said[-1]


def test_stamped_writing_is_a_load_of_its_own(tmp_path: Path) -> None:
    stamped = bench()
    stamped.drop(ev.LoadBegun)
    ledger: dict[str, Any] = {"run": 1, "device": 1, "session": 1, "extents": ((0, 8),), "block": 8, "depth": 1}
    ledger["flush_writes"] = 64
    stamped.add(ev.LedgerBegun(at=12.0, disk="disk1", job="j", order="random", **ledger))
    coverage = covered(tmp_path, stamped)
    assert cells(coverage)["usb-storage", "data", "stamped writing"] == 1
    stamped.add(ev.LedgerEnded(at=CUT - 0.5, disk="disk1", job="j", asked=True, received=0))
    coverage = covered(tmp_path, stamped)
    assert cells(coverage)["usb-storage", "data", "idle"] == 1


def test_writing_files_is_writing(tmp_path: Path) -> None:
    made = bench()
    made.drop(ev.LoadBegun)
    assert cells(covered(tmp_path, made))["usb-storage", "data", "writing"] == 0
    on: dict[str, Any] = {"disk": "disk1", "job": "files1"}
    made.add(ev.FileRoundBegun(at=12.0, run=1, round=1, directory="round1", fstype="xfs", uuid="u", **on))
    assert cells(covered(tmp_path, made))["usb-storage", "data", "writing"] == 1
    made.add(ev.FileRoundEnded(at=CUT - 1, asked=True, received=0, **on))
    assert cells(covered(tmp_path, made))["usb-storage", "data", "writing"] == 0


def test_a_cut_that_was_not_executed_covers_nothing(tmp_path: Path) -> None:
    made = bench()
    made.drop(ev.Edge)
    coverage = covered(tmp_path, made)
    assert set(coverage.points.values()) == {0}


def test_a_rig_that_cannot_be_read_gives_what_was_cut(tmp_path: Path) -> None:
    coverage = covered(tmp_path, bench(), rig={"rig": {"nonsense": 1}})
    assert coverage.points == {"disk1.cable": 1}
    assert coverage.mechanisms == {"data": 1}
    assert coverage.drivers == {"usb-storage": 1}
    assert sentences(covered(tmp_path, rig={})) == []


def test_the_report_shows_it(tmp_path: Path) -> None:
    covered(tmp_path, bench())
    results = judge_history(read_history(tmp_path))
    page = render_html(results, {})
    assert "disk1.cable 1, disk1.power <strong>0</strong>" in page
    assert "uas by data while stamped writing" in page
