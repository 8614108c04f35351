"""Designs of studies: their conditions, their order, their requests, and how long they take."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugpull.commands.run_plugin import BEGIN_AND_END, study_times
from plugpull.load import sequential_read, sequential_write
from plugpull.load.designs import (
    Condition,
    all_for_long,
    each_alone,
    interleaved,
    more_and_more,
    scaling_design,
    side_by_side,
)
from plugpull.load.patterns import measuring_arguments
from plugpull.load.tasks import FioTask
from plugpull.load.timed import block_for, expected_seconds
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig
from plugpull.rig.topology import Topology
from plugpull.targets.disk import RigDisk

DISKS = ("a", "b", "c")


@dataclass(frozen=True)
class _Room:
    """A target of which only the rate matters."""

    rate: int | None


def test_each_condition_comes_once_in_each_round_in_another_order() -> None:
    design = more_and_more(DISKS)
    found = list(interleaved(design, 5, random.Random(1)))
    assert Counter(found) == {(number, condition): 1 for number in range(1, 6) for condition in design}
    assert [number for number, _ in found] == sorted(number for number, _ in found)
    orders = {tuple(condition for repeat, condition in found if repeat == number) for number in range(1, 6)}
    assert len(orders) == 5
    assert list(interleaved(design, 5, random.Random(1))) == found, "a seed repeats it"


def test_disks_alone_are_written_and_read() -> None:
    assert {(one.disks, one.pattern) for one in each_alone(DISKS)} == {
        ((disk,), pattern) for disk in DISKS for pattern in (sequential_write, sequential_read)
    }
    assert [one.pattern for one in each_alone(("a",), sequential_read)] == [sequential_read]


@pytest.mark.parametrize(
    ("rates", "block"),
    [((1 << 20, 8 << 20), 64 << 10), ((8 << 20,), 128 << 10), ((None,), 128 << 10), ((None, 2 << 20), 64 << 10)],
)
def test_requests_are_small_enough_for_the_slowest_disk(rates: tuple[int | None, ...], block: int) -> None:
    assert block_for(_Room(rate) for rate in rates) == block  # type: ignore[misc]


def test_what_is_measured_is_neither_stamped_nor_verified() -> None:
    arguments = measuring_arguments(sequential_write, 1 << 20)
    assert not [word for word in arguments if word.startswith(("--verify=", "--do_verify"))]
    assert {"--direct=1", "--rw=write", "--allow_file_create=0", "--time_based"} <= set(arguments)


def test_long_conditions_and_real_benches_take_longer() -> None:
    short, long = each_alone(("a",), sequential_write), all_for_long(("a",))
    assert expected_seconds(short, 3, virtual=True) == pytest.approx(3 * expected_seconds(short, 1, virtual=True))
    assert expected_seconds(long, 1, virtual=True) > 4 * expected_seconds(short, 1, virtual=True)
    assert expected_seconds(short, 1, virtual=False) > expected_seconds(short, 1, virtual=True)


@pytest.mark.parametrize("virtual", [True, False])
def test_one_fio_for_three_disks_starts_sooner_than_three_do(virtual: bool) -> None:
    def seconds(*disks: str) -> float:
        return expected_seconds([Condition(disks, sequential_write)], 1, virtual=virtual)

    def task(*disks: str) -> float:
        return expected_seconds([FioTask("write", disks, "write")], 1, virtual=virtual)

    assert seconds("a", "b", "c") > seconds("a")
    assert seconds("a", "b", "c") - seconds("a") < task("a", "b", "c") - task("a")


def _study(path: Path, name: str, **mark: Any) -> Any:
    """What the announcement uses of a collected scenario."""
    marker = SimpleNamespace(kwargs=mark) if mark else None
    config = SimpleNamespace(rootpath=path)
    return SimpleNamespace(
        get_closest_marker=lambda kind: marker, config=config, path=path / "test_x.py", nodeid=f"test_x.py::{name}"
    )


def test_the_time_of_a_study_is_known_before_it_runs(tmp_path: Path) -> None:
    rig = load_rig(rigs_dir() / "quick.toml")
    items = [
        _study(tmp_path, "scaling", design=scaling_design),
        _study(tmp_path, "long", design=all_for_long, repeats=1),
        _study(tmp_path, "beside", design=side_by_side),
        _study(tmp_path, "cut"),
    ]
    times = study_times(rig, items, 3)
    disks = [RigDisk(disk.name, Topology(rig)) for disk in rig.disk]
    assert times["test_x.py::scaling"] == BEGIN_AND_END + expected_seconds(scaling_design(disks), 3, virtual=True)
    assert times["test_x.py::long"] == BEGIN_AND_END + expected_seconds(all_for_long(DISKS), 1, virtual=True)
    assert times["test_x.py::beside"] == BEGIN_AND_END, "quick.toml has one controller: the study is skipped"
    assert "test_x.py::cut" not in times
