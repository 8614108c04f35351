"""Knees, ceilings, outliers, shared bottlenecks and dips: on rigs with a known truth, and on healthy ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from synthetic_rigs import SyntheticRig

from plugpull.measure.dips import dips
from plugpull.measure.hinge import count_at, fit
from plugpull.measure.outliers import outliers
from plugpull.measure.scaling import Repeat, scaling

# --- knee and ceiling ----------------------------------------------------------------------------------------


def test_the_hinge_through_the_published_curves() -> None:
    """Sums of 1, 2, 3 and more disks on one controller, in MB/s: 26.7, 28.2, 28.5 writing; 22.8, 27.1, 28.1 reading."""
    write = fit([26.7, 53.4, 80.1], [26.7, 28.2, 28.5])
    assert write.ceiling is not None
    assert write.knee is not None
    assert (round(write.ceiling, 1), round(write.knee / 26.7, 2)) == (28.4, 1.06)
    read = fit([22.8, 45.6, 68.4], [22.8, 27.1, 28.1])
    assert read.ceiling is not None
    assert read.knee is not None
    assert (round(read.ceiling, 1), round(read.knee / 22.8, 2)) == (27.6, 1.21)
    straight = fit([30.0, 60.0, 90.0], [30.0, 60.0, 90.0])
    assert (straight.ceiling, straight.slope) == (None, 1.0)


def test_disks_need_not_be_equally_fast() -> None:
    assert count_at(3.0, [2.0, 1.5, 1.5]) == pytest.approx(1 + 1 / 1.5)
    assert count_at(9.0, [2.0, 1.5, 1.5]) == 3.0
    rig = SyntheticRig([2.0, 1.5, 1.5], noise=0.01, seed="unequal")
    assert scaling([rig.repeat() for _ in range(5)]).answer == "free"


KNEES = [
    # rates, limit of all
    ([30.0] * 8, 180.0),
    ([30.0] * 8, 100.0),
    ([26.7] * 4, 28.5),
    ([10.0, 20.0, 30.0, 40.0], 55.0),
    ([5.0] * 3, 13.0),
    ([8.0] * 6, 33.0),
]


@pytest.mark.parametrize(("rates", "limit"), KNEES)
@pytest.mark.parametrize("repeats", [3, 5])
def test_knee_and_ceiling_are_where_the_shared_limit_puts_them(rates: list[float], limit: float, repeats: int) -> None:
    rig = SyntheticRig(rates, [(range(len(rates)), limit)], noise=0.01, seed=(rates, limit))
    found = scaling([rig.repeat() for _ in range(repeats)])
    assert found.answer == "limited"
    assert found.knee is not None
    assert found.ceiling is not None
    assert found.knee.mean == pytest.approx(count_at(limit, rates), rel=0.10)
    assert found.ceiling.mean == pytest.approx(limit, rel=0.05)
    assert found.collapse is None


def test_disks_behind_two_limits_one_after_the_other_have_no_single_knee() -> None:
    """The first four share 45 MB/s, the others 70 MB/s: the sum is flat in the middle, and grows again."""
    rig = SyntheticRig([30.0] * 8, [(range(4), 45.0), (range(4, 8), 70.0)], noise=0.01, seed="two limits")
    found = scaling([rig.repeat() for _ in range(5)])
    assert (found.answer, found.knee, found.ceiling) == ("limited", None, None)


def test_a_collapse_is_named_with_its_number_of_disks_and_is_not_the_ceiling() -> None:
    draw = random.Random("collapse")
    curve = (10.0, 20.0, 25.0, 25.0, 12.0, 12.0)
    repeats = [
        Repeat(tuple(draw.gauss(10, 0.1) for _ in curve), tuple(x * draw.gauss(1, 0.01) for x in curve))
        for _ in range(3)
    ]
    found = scaling(repeats)
    assert found.collapse is not None
    assert found.collapse.disks == 5
    assert found.collapse.change == pytest.approx(-0.52, abs=0.03)
    assert found.ceiling is not None
    assert found.ceiling.mean == pytest.approx(25, rel=0.05)


def test_disks_that_nothing_limits_before_they_collapse_have_no_ceiling() -> None:
    """The hinge of three points may bend a little by chance."""
    repeats = [Repeat((10.0,) * 4, (10.0, 20.1, 29.9, 8.0)), Repeat((10.1,) * 4, (10.1, 20.2, 30.0, 8.1))] * 2
    found = scaling(repeats)
    assert found.collapse is not None
    assert (found.collapse.disks, found.knee, found.ceiling) == (4, None, None)


@pytest.mark.parametrize("noise", [0.01, 0.04, 0.08])
def test_a_collapse_is_found_where_it_is_and_not_where_there_is_none(noise: float) -> None:
    """Rates that fall by a quarter or more beyond some number of disks, 3 repeats; at most one of 30 is wrong."""
    missed, false = [], []
    for number in range(30):
        draw = random.Random(f"cliff {noise} {number}")
        disks, ceiling = draw.randint(3, 8), draw.choice([1e9, draw.uniform(15, 60)])
        flat = [min(10.0 * count, ceiling) for count in range(1, disks + 1)]
        last = draw.randint(2, disks - 1)
        cliff = [
            rate if count <= last else flat[last - 1] * draw.uniform(0.3, 0.7) for count, rate in enumerate(flat, 1)
        ]

        found = scaling(_noisy(cliff, noise, draw)).collapse
        missed += [] if found is not None and found.disks == last + 1 else [(cliff, found)]
        false += [] if scaling(_noisy(flat, noise, draw)).collapse is None else [flat]
    assert len(missed) <= 1, missed
    assert len(false) <= 1, false


def _noisy(curve: Sequence[float], noise: float, draw: random.Random) -> list[Repeat]:
    def varied(rates: Sequence[float]) -> tuple[float, ...]:
        return tuple(rate * draw.gauss(1, noise) for rate in rates)

    return [Repeat(varied([10.0] * len(curve)), varied(curve)) for _ in range(3)]


# --- outliers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("disks", [3, 4, 6, 9])
@pytest.mark.parametrize("repeats", [3, 5])
def test_a_slow_disk_is_named(disks: int, repeats: int) -> None:
    rig = SyntheticRig([7.0, *[10.0] * (disks - 1)], noise=0.01, seed=("slow", disks))
    (found,) = outliers(rig.alone(repeats))
    assert found.name == "disk1"
    assert found.change == pytest.approx(-0.3, abs=0.03)


def test_of_three_disks_a_fast_one_is_not_called_an_outlier_and_of_two_none_is() -> None:
    assert outliers({"a": [2.0, 2.01, 2.0], "b": [1.5, 1.5, 1.51], "c": [1.5, 1.51, 1.5]}) == ()
    assert outliers({"a": [2.0, 2.01, 2.0], "b": [1.0, 1.0, 1.01]}) == ()
    assert outliers({"a": [1.0, 1.0, 1.01], "b": [1.5, 1.5, 1.51], "c": [2.0, 2.01, 2.0]}) == ()


def test_disks_of_two_kinds_have_no_outlier() -> None:
    rig = SyntheticRig([10.0] * 3 + [20.0] * 3, noise=0.01, seed="two kinds")
    assert outliers(rig.alone(5)) == ()


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.05])
@pytest.mark.parametrize("repeats", [3, 5])
@pytest.mark.parametrize("factors", [(0.7,), (0.45,), (1.5,), (0.6, 1.5), (0.6, 0.4)])
def test_outliers_are_named_and_no_others(noise: float, repeats: int, factors: tuple[float, ...]) -> None:
    """Slow and fast ones, also two of them that are unlike each other; at most one rig of 20 is wrong."""
    wrong = []
    for number in range(20):
        draw = random.Random(f"{noise} {repeats} {factors} {number}")
        rates = [10.0 * draw.gauss(1, 0.01) for _ in range(draw.randint(3 + len(factors), 9))]
        places = draw.sample(range(len(rates)), len(factors))
        for place, factor in zip(places, factors, strict=True):
            rates[place] *= factor
        found = {one.name for one in outliers(SyntheticRig(rates, noise=noise, seed=number).alone(repeats))}
        if found != {f"disk{place + 1}" for place in places}:
            wrong.append((rates, found))
    assert len(wrong) <= 1, wrong


def test_of_two_fast_disks_a_third_slow_one_is_found_whatever_the_noise_of_the_two() -> None:
    for number in range(20):
        rig = SyntheticRig([10.0, 5.3, 10.2], noise=0.02, seed=("three", number))
        assert [one.name for one in outliers(rig.alone(3))] == ["disk2"]


def test_disks_that_are_all_different_have_no_outlier() -> None:
    for rates in ((10, 11, 12, 13, 14, 15), (10.9, 10.9, 10.4, 11.0, 8.8, 11.4, 10.8, 9.5)):
        assert outliers({f"disk{n}": [rate, rate * 1.01, rate * 0.99] for n, rate in enumerate(rates)}) == ()


@pytest.mark.parametrize("disks", [4, 6, 8])
def test_half_of_the_disks_are_all_different(disks: int) -> None:
    """With as many disks that are unlike any other, the two or four that agree are not the usual ones."""
    for number in range(20):
        draw = random.Random(f"half {disks} {number}")
        different = [10.0 * (0.45 + 0.16 * place) for place in range(disks // 2)]
        rates = [*different, *[10.0 * (0.45 + 0.08 * disks)] * (disks // 2)]
        rig = SyntheticRig(draw.sample(rates, disks), noise=0.01, seed=("half", number))
        assert outliers(rig.alone(5)) == ()


@pytest.mark.parametrize("repeats", [3, 5])
def test_a_disk_that_varies_much_is_judged_by_its_own_noise(repeats: int) -> None:
    """It is as fast as the others on average; at most one rig of 60 calls it an outlier."""
    false = []
    for number in range(60):
        draw = random.Random(f"wild {repeats} {number}")
        alone = SyntheticRig([10.0] * draw.randint(4, 8), noise=0.01, seed=("wild", number)).alone(repeats)
        alone["disk1"] = [draw.gauss(10.0, 1.0) for _ in range(repeats)]
        false += [number] if outliers(alone) else []
    assert len(false) <= 1, false


def test_a_slow_disk_that_varies_much_is_an_outlier_with_enough_repeats() -> None:
    draw = random.Random("slow and wild")
    alone = SyntheticRig([10.0] * 6, noise=0.01, seed="slow and wild").alone(5)
    alone["disk1"] = [draw.gauss(4.0, 0.5) for _ in range(5)]
    assert [one.name for one in outliers(alone)] == ["disk1"]


@pytest.mark.parametrize("noise", [0.01, 0.04])
def test_half_of_the_disks_are_another_kind(noise: float) -> None:
    rigs = [SyntheticRig([10.0] * 4 + [15.0] * 4, noise=noise, seed=("kinds", number)) for number in range(20)]
    assert sum(bool(outliers(rig.alone(3))) for rig in rigs) <= 1
    rig = SyntheticRig([10.0] * 3 + [15.0] * 2, noise=noise, seed="three and two")
    assert outliers(rig.alone(5)) == (), "two of a kind"


@pytest.mark.parametrize("repeats", [3, 5])
def test_disks_whose_runs_have_two_rates_have_no_outlier(repeats: int) -> None:
    """Each run is at its rate or at 80 % of it, by chance. To leave the rarer ones out would leave two groups of disks
    that do not vary."""
    false = []
    for number in range(60):
        draw = random.Random(f"two rates {repeats} {number}")
        alone = SyntheticRig([10.0] * draw.randint(4, 8), noise=0.01, seed=("two rates", number)).alone(repeats)
        found = outliers({disk: [rate * draw.choice([1.0, 0.8]) for rate in rates] for disk, rates in alone.items()})
        false += [number] if found else []
    assert len(false) <= 1, false


def test_a_repeat_that_stalled_hides_no_outlier() -> None:
    for number in range(20):
        alone = SyntheticRig([10.0] * 4 + [6.0], noise=0.01, seed=("stalled", number)).alone(5)
        alone["disk2"][number % 5] *= 0.4
        assert [one.name for one in outliers(alone)] == ["disk5"]


# --- shared bottlenecks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("repeats", [3, 5])
@pytest.mark.parametrize(
    ("rates", "limits"),
    [
        ([26.0] * 8, [((0, 1, 2, 3), 60.0), ((4, 5, 6, 7), 60.0)]),
        ([26.0] * 8, [((0, 1, 2, 3), 28.5)]),
        ([10.0] * 3, [((1, 2), 15.0)]),
        ([10.0] * 6, [((0, 2, 4), 20.0)]),
        ([30.0] * 8, [(range(8), 100.0)]),
        ([8.0] * 9, [(range(6), 30.0)]),
    ],
)
def test_the_disks_behind_a_shared_limit_are_grouped(
    rates: list[float], limits: list[tuple[Sequence[int], float]], repeats: int
) -> None:
    rig = SyntheticRig(rates, limits, noise=0.015, seed=(rates, limits))
    assert rig.groups(repeats) == [tuple(f"disk{i + 1}" for i in members) for members, _ in limits]


# --- healthy rigs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.01, 0.02, 0.04])
def test_thirty_healthy_rigs_have_at_most_one_false_conclusion(noise: float) -> None:
    """Of any kind: 2 to 9 disks, of equal or different speed by some per cent, 3 or 5 repeats."""
    false = []
    for number in range(30):
        draw = random.Random(f"healthy {number}")
        rates = [10.0 * draw.gauss(1, 0.02) for _ in range(draw.randint(2, 9))]
        rig = SyntheticRig(rates, noise=noise, seed=number)
        repeats = draw.choice([3, 5])
        curve = scaling([rig.repeat() for _ in range(repeats)])
        found = [*outliers(rig.alone(repeats)), *rig.groups(repeats)]
        if curve.answer == "limited" or curve.collapse is not None or found:
            false.append((number, curve, found))
    assert len(false) <= 1, false


# --- dips ----------------------------------------------------------------------------------------------------


def _series(draw: random.Random, count: int = 300, noise: float = 0.05) -> list[float]:
    return [20.0 * draw.gauss(1, noise) for _ in range(count)]


def test_dips_are_found_where_they_are() -> None:
    draw = random.Random("dips")
    rates = _series(draw)
    for first in (60, 120, 180, 240):
        for number in range(first, first + 4):
            rates[number] = 3.0
        rates[first + 4] = 14.0  # recovering
    found = dips(rates)
    assert [(dip.first, dip.length, dip.recovery) for dip in found.dips] == [(f, 4, 1) for f in (60, 120, 180, 240)]
    assert found.period == 60
    assert found.collapse is None
    assert 60 <= found.worst < 244
    assert found.dips[0].depth == pytest.approx(0.85, abs=0.03)


def test_a_rate_that_does_not_come_back_is_a_collapse() -> None:
    rates = _series(random.Random("collapse"))
    rates[200:] = [rate * 0.2 for rate in rates[200:]]
    found = dips(rates)
    assert found.collapse is not None
    assert found.collapse.first == 200
    assert found.collapse.recovery is None


@pytest.mark.parametrize("first", [3, 8, 14, 30])
def test_an_early_collapse_is_one_too(first: int) -> None:
    """What is usual is what was before, even if most windows came later."""
    rates = _series(random.Random("early"), 60)
    rates[first:] = [rate * 0.25 for rate in rates[first:]]
    found = dips(rates)
    assert found.collapse is not None
    assert (found.collapse.first, found.collapse.recovery) == (first, None)
    assert found.collapse.usual == pytest.approx(20, rel=0.1)


def test_a_dip_that_is_not_over_at_the_end_is_no_collapse_after_others_as_long() -> None:
    cycle = [20.0] * 10 + [8.0] * 8
    found = dips([*cycle, *cycle, *cycle])
    assert [dip.first for dip in found.dips] == [10, 28, 46]
    assert found.collapse is None
    longer = dips([*cycle, *cycle, *cycle, *[8.0] * 8])
    assert longer.collapse is not None
    assert longer.collapse.first == 46
    assert dips([*cycle, *[20.0] * 30, *cycle[:12]]).collapse is None


def test_a_disk_that_keeps_a_tenth_of_its_rate_writes_few_windows_afterwards() -> None:
    """Two windows of 60 are a quarter of the time."""
    late = [*_series(random.Random("late"), 58), 2.0, 2.0]
    found = dips(late)
    assert found.collapse is not None
    assert found.collapse.first == 58
    assert dips([*late[:58], 6.0, 6.0]).collapse is None, "a tenth of the time"
    before = [*late[:20], 2.0, 2.0, *late[20:58], 2.0, 2.0]
    assert [dip.first for dip in dips(before).dips] == [20, 60]
    assert dips(before).collapse is None, "it was as long before, and ended"


def test_dips_among_the_first_windows_and_close_to_each_other_are_found() -> None:
    rates = _series(random.Random("often"), 60)
    places = list(range(4, 60, 6))
    for place in places:
        rates[place] = 6.0
    found = dips(rates)
    assert [dip.first for dip in found.dips] == places
    assert found.period == 6


def test_a_row_of_windows_that_costs_as_much_as_a_deep_one_is_a_dip() -> None:
    rates = _series(random.Random("shallow"), 60, noise=0.02)
    rates[30:35] = [12.0] * 5
    assert [(dip.first, dip.length) for dip in dips(rates).dips] == [(30, 5)]
    rates[30:35] = [16.0] * 5
    assert dips(rates).dips == (), "a fifth below the usual rate is not"


def test_a_dip_begins_where_the_window_is_low_in_part() -> None:
    rates = _series(random.Random("partly"), 60, noise=0.02)
    rates[30:34] = [12.0, 5.0, 5.0, 16.0]
    (dip,) = dips(rates).dips
    assert (dip.first, dip.length, dip.recovery) == (30, 3, 1)


def test_noise_alone_has_no_dips() -> None:
    for number in range(30):
        draw = random.Random(f"calm {number}")
        found = dips(_series(draw, noise=draw.choice([0.01, 0.05, 0.15])))
        assert (found.dips, found.collapse, found.period) == ((), None, None)


def test_too_few_windows_say_nothing() -> None:
    with pytest.raises(ValueError, match="too few"):
        dips([1.0] * 14)
