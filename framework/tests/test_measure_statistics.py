"""The statistics of measurements, against closed forms, published tables and exhaustive counts."""

from __future__ import annotations

import doctest
import math
import random
from itertools import permutations
from statistics import fmean, linear_regression

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugpull.measure import compare as compare_module
from plugpull.measure import estimate as estimate_module
from plugpull.measure import hinge
from plugpull.measure.compare import (
    FLOOR,
    SIGNIFICANT,
    compare,
    compare_all,
    holm,
    permutation_test,
    permuted,
    repeats_needed,
    smallest_p,
    step_down,
    welch_test,
)
from plugpull.measure.estimate import estimate
from plugpull.measure.resolution import slope_spread
from plugpull.measure.steady import steadiness
from plugpull.measure.student import t_probability, t_quantile

PUBLISHED = {
    # degrees of freedom: the quantiles 0.9, 0.95, 0.975, 0.99, 0.995 (NIST/SEMATECH e-Handbook, 1.3.6.7.2)
    3: (1.638, 2.353, 3.182, 4.541, 5.841),
    4: (1.533, 2.132, 2.776, 3.747, 4.604),
    5: (1.476, 2.015, 2.571, 3.365, 4.032),
    9: (1.383, 1.833, 2.262, 2.821, 3.250),
    20: (1.325, 1.725, 2.086, 2.528, 2.845),
    60: (1.296, 1.671, 2.000, 2.390, 2.660),
    100: (1.290, 1.660, 1.984, 2.364, 2.626),
}


@pytest.mark.parametrize("freedom", PUBLISHED)
def test_quantiles_of_t_are_the_published_ones(freedom: int) -> None:
    found = tuple(round(t_quantile(p, freedom), 3) for p in (0.9, 0.95, 0.975, 0.99, 0.995))
    assert found == pytest.approx(PUBLISHED[freedom], abs=0.00101)


@given(st.floats(-1e4, 1e4))
def test_t_with_one_and_two_degrees_of_freedom_has_its_closed_form(t: float) -> None:
    assert t_probability(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-12)
    assert t_probability(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=1e-12)


@given(st.floats(1, 500), st.floats(0.001, 0.999))
def test_the_quantile_is_the_inverse_of_the_probability(freedom: float, probability: float) -> None:
    assert t_probability(t_quantile(probability, freedom), freedom) == pytest.approx(probability, abs=1e-9)


def test_many_degrees_of_freedom_are_the_normal_distribution() -> None:
    for z in (-3.0, -1.0, 0.5, 2.0):
        assert t_probability(z, 1e6) == pytest.approx(0.5 * math.erfc(-z / math.sqrt(2)), abs=1e-6)


@pytest.mark.parametrize("count", [3, 5, 10])
def test_intervals_cover_the_true_mean_in_95_of_100_cases(count: int) -> None:
    draw = random.Random(f"coverage {count}")
    covered = 0
    for _ in range(2000):
        found = estimate([draw.gauss(20.0, 0.4) for _ in range(count)])
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 20.0 <= found.high
    assert 0.93 <= covered / 2000 <= 0.97


@pytest.mark.parametrize("rate", [0.7e6, 1e6, 2e6, 2.7e6, 12e6])
def test_the_spread_of_counting_is_that_of_counters_that_begin_anywhere(rate: float) -> None:
    times = [number / 10 for number in range(16)]
    draw = random.Random(f"counting {rate}")
    slopes = []
    for _ in range(300):
        begin = draw.random()
        counts = [(begin * 65536 + rate * at) // 65536 * 65536 for at in times]
        slopes.append(linear_regression(times, counts).slope)
    spread = slope_spread(times, rate, 65536)
    assert 0.5 * spread < math.sqrt(fmean((slope - rate) ** 2 for slope in slopes)) < 2.3 * spread


def test_the_spread_of_counting_is_small_for_small_requests_and_long_measurements() -> None:
    times = [number / 10 for number in range(16)]
    assert slope_spread(times, 2e6, 512) < slope_spread(times, 2e6, 65536) / 10
    assert slope_spread([number / 10 for number in range(151)], 2e6, 65536) < slope_spread(times, 2e6, 65536) / 5
    assert slope_spread([1.0], 2e6, 65536) == slope_spread(times, 2e6, 0) == slope_spread([], 1.0, 1.0) == 0.0


def test_an_interval_has_at_least_what_the_counting_leaves_open() -> None:
    assert estimate([10.0, 10.0, 10.0]).half == 0.0
    assert estimate([10.0, 10.0, 10.0], counting=0.1).half == pytest.approx(0.15 / math.sqrt(3))
    wide = [9.0, 10.0, 11.0]
    assert estimate(wide, counting=0.1).half == pytest.approx(estimate(wide).half, rel=0.01)


def test_one_sample_has_no_interval() -> None:
    found = estimate([5.0])
    assert (found.mean, found.low, found.high, found.n) == (5.0, None, None, 1)
    with pytest.raises(ValueError, match="no samples"):
        estimate([])


def test_a_repeat_that_stalled_is_odd_and_usual_spread_is_not() -> None:
    assert estimate([20.0, 20.2, 12.0, 19.9, 20.1]).odd == (2,)
    assert estimate([20.0, 20.2, 19.6, 19.9, 20.1]).odd == ()
    assert estimate([20.0, 20.0, 20.0, 20.0, 20.1]).odd == (), "0.5 % is not odd, however small the usual spread is"
    draw = random.Random("odd")
    odd = sum(bool(estimate([draw.gauss(20, 0.4) for _ in range(5)]).odd) for _ in range(2000))
    assert odd == 0


@given(
    st.lists(st.integers(0, 20).map(float), min_size=2, max_size=4),
    st.lists(st.integers(0, 20).map(float), min_size=2, max_size=4),
)
@settings(max_examples=40, deadline=None)
def test_the_permutation_test_counts_every_order(one: list[float], two: list[float]) -> None:
    """Its witness goes through all orders of the values, not through splits."""
    observed = abs(fmean(one) - fmean(two))
    found = [
        abs(fmean(order[: len(one)]) - fmean(order[len(one) :])) >= observed - 1e-9 for order in permutations(one + two)
    ]
    assert permutation_test(one, two) == pytest.approx(sum(found) / len(found))


def test_the_smallest_probabilities_are_those_of_exact_tests() -> None:
    for count, smallest in ((3, 0.1), (4, 0.0286), (5, 0.0079), (6, 0.0022), (8, 0.00016)):
        assert smallest_p(count, count) == pytest.approx(smallest, rel=0.03)
        assert permutation_test([1.0] * count, [2.0] * count) == pytest.approx(smallest_p(count, count))


def test_many_repeats_are_drawn_and_still_right() -> None:
    draw = random.Random(5)
    one = [draw.gauss(10, 1) for _ in range(15)]
    two = [draw.gauss(11, 1) for _ in range(15)]
    assert permutation_test(one, two) == pytest.approx(welch_test(one, two), abs=0.02)


@given(st.floats(-5, 5), st.floats(0.1, 3))
def test_welch_with_equal_variances_is_students_test_in_its_closed_form(gap: float, half: float) -> None:
    """Two pairs with the same spread have 2 degrees of freedom, for which the probability has a closed form."""
    one, two = [10 - half, 10 + half], [10 + gap - half, 10 + gap + half]
    t = gap / math.sqrt(2 * half**2)
    assert welch_test(one, two) == pytest.approx(1 - abs(t) / math.sqrt(2 + t * t), abs=1e-9)


def test_welch_gives_the_wilder_side_its_own_degrees_of_freedom() -> None:
    """The formula of Welch and Satterthwaite by hand: variances 1 and 100 of 3 values each give 2.04 degrees."""
    one, two = [9.0, 10.0, 11.0], [10.0, 20.0, 30.0]
    a, b = 1 / 3, 100 / 3
    freedom = (a + b) ** 2 / (a**2 / 2 + b**2 / 2)
    assert freedom == pytest.approx(2.04, abs=0.005)
    expected = 2 * t_probability(-10 / math.sqrt(a + b), freedom)
    assert welch_test(one, two) == pytest.approx(expected)
    assert welch_test([1.0, 1.0], [1.0, 1.0]) == 1.0
    assert welch_test([1.0, 1.0], [2.0, 2.0]) == 0.0


def test_holm_is_as_in_its_definition() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.5, 0.9]) == (1.0, 1.0)
    assert holm([]) == ()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_a_probability_and_keeps_their_order(probabilities: list[float]) -> None:
    corrected = holm(probabilities)
    assert all(
        p <= c <= min(1.0, p * len(probabilities)) + 1e-12 for p, c in zip(probabilities, corrected, strict=True)
    )
    order = sorted(range(len(probabilities)), key=probabilities.__getitem__)
    assert [corrected[i] for i in order] == sorted(corrected)


def test_a_difference_is_claimed_only_if_significant_and_worth_it() -> None:
    one = [20.0, 20.1, 19.9, 20.05, 19.95]
    assert compare(one, [x * 1.10 for x in one]).answer == "different"
    assert compare(one, [x * 1.02 for x in one]).answer == "alike", "significant, but below the practical floor of 3 %"
    assert compare(one[:3], [x * 1.5 for x in one[:3]]).answer == "too few"
    assert compare(one, [10.0, 30.0, 25.0, 18.0, 40.0]).answer == "unclear"
    assert compare(one, [22.0, 22.1, 12.0, 22.2, 21.9]).answer == "odd repeat"


def test_one_difference_among_many_comparisons_must_be_more_certain() -> None:
    """A difference that the repeats just separate is shown by itself, and not among nine pairs that chance could
    separate as well."""
    one = [20.0, 20.4, 19.6, 20.2, 19.8]
    two = [x + 0.85 for x in one]
    same = [(one, [x + 0.01 for x in reversed(one)])] * 9
    assert compare_all([(one, two)])[0].answer == "different"
    found = compare_all([(one, two), *same])[0]
    assert found.p >= 10 * 2 / 252 - 1e-9
    assert found.answer == "unclear"


def test_a_clear_difference_is_shown_among_many_comparisons() -> None:
    """As with the drive caches of nine disks, two tasks each, in 5 repeats, or 4."""
    for repeats in (4, 5):
        draw = random.Random(f"caches {repeats}")
        table = [
            ([draw.gauss(20, 0.2) for _ in range(repeats)], [draw.gauss(16.6, 0.2) for _ in range(repeats)])
            for _ in range(18)
        ]
        assert {one.answer for one in compare_all(table)} == {"different"}
        assert max(one.p for one in compare_all(table)) == pytest.approx(smallest_p(repeats, repeats))


@pytest.mark.parametrize(("comparisons", "repeats", "noise"), [(1, 5, 0.04), (4, 5, 0.02), (4, 4, 0.04), (8, 5, 0.04)])
def test_tables_without_a_difference_seldom_have_one(comparisons: int, repeats: int, noise: float) -> None:
    draw = random.Random(f"tables {comparisons} {repeats} {noise}")

    def repeated() -> list[float]:
        return [draw.gauss(20, 20 * noise) for _ in range(repeats)]

    tables = [[(repeated(), repeated()) for _ in range(comparisons)] for _ in range(120)]
    false = sum(any(one.answer == "different" for one in compare_all(table)) for table in tables)
    assert false <= 8, "4 of 120 are expected at most"


def test_the_correction_is_that_of_the_clearest_that_are_left() -> None:
    clear = permuted([1.0, 2.0, 3.0, 4.0], [11.0, 12.0, 13.0, 14.0])
    equal = permuted([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
    assert step_down([equal, clear]) == pytest.approx((1.0, clear.probability(clear.observed)))
    assert step_down([clear, clear]) == pytest.approx([2 * 2 / 70, 2 * 2 / 70])
    assert step_down([]) == ()
    assert permuted([2.0, 2.0], [2.0, 2.0]).probability(0.0) == 1.0


def test_as_many_repeats_as_are_needed_show_the_difference() -> None:
    draw = random.Random("needed")
    one, two = [20.0, 20.4, 19.6], [21.0, 21.4, 20.6]
    needed = repeats_needed(one, two)
    assert needed is not None
    assert needed == 5
    shown = sum(
        compare([draw.gauss(20, 0.4) for _ in range(needed)], [draw.gauss(21, 0.4) for _ in range(needed)]).answer
        == "different"
        for _ in range(100)
    )
    assert shown >= 65
    assert repeats_needed(one, [x * 1.5 for x in one]) == 4, "the exact test needs as many"
    assert (repeats_needed(one, two, table=18) or 0) > needed
    assert repeats_needed([20.0, 25.0, 15.0], [20.1, 25.1, 15.1]) is None
    assert repeats_needed([20.0], [21.0]) is None
    assert smallest_p(4, 4) < SIGNIFICANT < smallest_p(3, 3)
    assert FLOOR == 0.03


def test_intervals_of_a_change_cover_it() -> None:
    draw = random.Random("fieller")
    covered = 0
    for _ in range(1000):
        found = compare([draw.gauss(20, 0.6) for _ in range(5)], [draw.gauss(22, 0.6) for _ in range(5)])
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.1 <= found.high
    assert 0.93 <= covered / 1000 <= 0.975


def test_steady_state_is_snias() -> None:
    assert steadiness([1.0, 2.0]) is None
    flat = steadiness([500, 300, 100, 101, 99, 100, 102])
    assert flat is not None
    assert flat.steady, "only the last five rounds count"
    wide = steadiness([90, 111, 90, 111, 90])
    assert wide is not None
    assert not wide.steady
    assert wide.spread == pytest.approx(21 / 98.4)
    # A line from 94 to 106 has an excursion of 12 % of 100, within a range of 12 %.
    drifting = steadiness([94, 97, 100, 103, 106])
    assert drifting is not None
    assert not drifting.steady
    assert (drifting.spread, drifting.drift) == pytest.approx((0.12, 0.12))
    slower = steadiness([105, 102.5, 100, 97.5, 95])
    assert slower is not None
    assert slower.steady, "exactly 10 % is allowed"


def test_the_examples_of_the_docstrings_are_true() -> None:
    for module in (compare_module, estimate_module, hinge):
        assert doctest.testmod(module).failed == 0
