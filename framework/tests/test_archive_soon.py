"""Values that change within the first nights: of an archive, or after a declared change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, variance

import pytest
from archives import date, measurement, put, results, scenario

from plugpull.archive.change_points import Segment, ValueChange, extend, grid_of, settled_spread, suspicion
from plugpull.archive.trend import make_index, trend_of

UPDATED = 20
"""The night on which the kernel is another one."""
SERIES = 12


def nights(directory: Path, begin: int, shift: float) -> Iterator[set[tuple[str, str]]]:
    """The changes that are named, after each night from ``begin`` on. Half of the disks change then, half never do."""
    draw = random.Random(f"{begin} {shift}")
    for night in range(begin + 5):
        values = []
        for disk in range(SERIES):
            rate = 10.0 ** (disk % 5) * (1 + shift * (night >= begin and disk % 2))
            samples = [draw.gauss(rate, 0.02 * rate) for _ in range(5)]
            values.append(measurement("write rate", samples, subject=f"disk{disk}"))
        kernel = "6.1.0-56-amd64" if night < UPDATED else "6.1.0-57-amd64"
        put(directory, results(night, [scenario(measurements=values)], dut={"kernel": kernel, "kind": "virtual"}))
        if night >= begin:
            found = trend_of(directory).changes
            yield {(change.key.rpartition("disk=")[2], change.at) for change in found}


@pytest.mark.parametrize("begin", [3, 4, UPDATED + 3, UPDATED + 5])
@pytest.mark.parametrize("shift", [0.06, -0.06])
def test_a_change_after_three_nights_is_named_within_five(tmp_path: Path, begin: int, shift: float) -> None:
    changed = {f"disk{disk}" for disk in range(SERIES) if disk % 2}
    named: set[str] = set()
    for found in nights(tmp_path, begin, shift):
        assert {disk for disk, _ in found} <= changed
        assert {at for _, at in found} <= {date(night) for night in range(begin - 1, begin + 3)}
        named |= {disk for disk, _ in found}
    assert named == changed


def test_nothing_is_named_if_only_the_kernel_is_another_one(tmp_path: Path) -> None:
    assert all(not found for found in nights(tmp_path, UPDATED + 8, 0.0))


def read(values: list[float]) -> list[ValueChange]:
    segment, found = Segment(), []
    for night, value in enumerate(values):
        segment, change = extend(segment, night, value)
        found += [change] if change else []
    return found


def test_a_change_after_three_nights_is_proved_later() -> None:
    draw = random.Random("proved")
    change = read([draw.gauss(100.0 if night < 3 else 90.0, 2.0) for night in range(15)])
    assert [one.at for one in change] == [3]


def test_three_nights_that_vary_a_lot_prove_nothing() -> None:
    """A disk that settles in its first nights: their own spread explains the difference."""
    assert read([80.0, 120.0, 112.0, *([100.0, 99.0, 101.0] * 8)]) == []


def test_the_spread_is_known_from_before_a_change() -> None:
    draw = random.Random("spread")
    segment = Segment()
    for night in range(40):
        segment, _ = extend(segment, night, draw.gauss(100.0 if night < 30 else 80.0, 2.0))
    assert segment.nights[0] == 30
    assert segment.earlier is not None
    assert settled_spread(segment) == segment.earlier
    assert segment.earlier[0] == pytest.approx(0.02**2, rel=0.5)


def test_the_spread_of_few_nights_is_that_of_neighbours() -> None:
    """A change among them adds much less to it than to the variance."""
    draw = random.Random("neighbours")
    values = [draw.gauss(100.0, 2.0) - 10.0 * (night >= 5) for night in range(10)]
    spread = settled_spread(Segment.of(range(10), values))
    assert spread is not None
    assert spread[0] < variance(values) / mean(values) ** 2 / 2
    assert settled_spread(Segment.of(range(4), values[:4])) is None


@pytest.mark.parametrize(("unit", "named"), [("MB/s", 0), ("B/s", 1)])
def test_another_unit_is_not_a_change(tmp_path: Path, unit: str, named: int) -> None:
    draw = random.Random("unit")
    for night in range(24):
        value = draw.gauss(28e6, 5e5) if night < 16 else draw.gauss(28.0, 0.5)
        one = measurement("write rate", value, unit="B/s" if night < 16 else unit)
        put(tmp_path, results(night, [scenario(measurements=[one])]))
    assert len(trend_of(tmp_path).changes) == named
    again = make_index(tmp_path)
    assert (again.runs, len(trend_of(tmp_path).changes)) == (24, named)


def test_a_change_after_another_unit_is_named(tmp_path: Path) -> None:
    draw = random.Random("later")
    for night in range(24):
        mean = 28e6 if night < 10 else 28.0 if night < 18 else 25.0
        one = measurement("write rate", draw.gauss(mean, 0.02 * mean), unit="B/s" if night < 10 else "MB/s")
        put(tmp_path, results(night, [scenario(measurements=[one])]))
    assert [change.at for change in trend_of(tmp_path).changes] == [date(18)]


ON_A_GRID = (0.2, 0.2, 0.21, 0.2, 0.2, 0.19, 0.2, 0.2, 0.2, 0.21, 0.2, 0.2)


def doubted(values: list[float]) -> bool:
    """Whether a change is named of these nights, on any of them."""
    segment, found = Segment(), False
    for night, value in enumerate(values):
        segment, change = extend(segment, night, value)
        found = found or change is not None or suspicion(segment) is not None
    return found


@pytest.mark.parametrize("newest", [0.21, 0.19])
@pytest.mark.parametrize("before", [ON_A_GRID, (0.2,) * 12])
def test_one_step_of_a_coarse_grid_is_not_a_change(newest: float, before: tuple[float, ...]) -> None:
    assert not doubted([*before, *(newest,) * 8])


@pytest.mark.parametrize("newest", [0.24, 0.16])
@pytest.mark.parametrize("before", [ON_A_GRID, (0.2,) * 12])
def test_several_steps_of_a_coarse_grid_are_a_change(newest: float, before: tuple[float, ...]) -> None:
    assert doubted([*before, *(newest,) * 5])


def test_the_same_step_of_finer_values_is_a_change() -> None:
    draw = random.Random(4)
    assert doubted([draw.gauss(mean, 0.002) for mean in (0.2,) * 12 + (0.21,) * 5])


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ((0.2, 0.21, 0.2), 0.01),
        ((0.204, 0.208, 0.216, 0.22, 0.204), 0.004),
        ((118e6, 121e6), 1.0),
        ((0.2001, 0.2113, 0.1987, 0.2054), 0.0001),
    ],
)
def test_the_step_of_a_grid_is_estimated_from_the_values(values: tuple[float, ...], step: float) -> None:
    assert grid_of(values) <= step if step == 1.0 else grid_of(values) == pytest.approx(step)
