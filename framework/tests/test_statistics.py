"""The bound on the probability of a loss, against the literature and against a plain sum."""

from __future__ import annotations

from math import comb

import pytest

from plugpull.integrity.oracle.statistics import loss_bound


@pytest.mark.parametrize(("cuts", "bound"), [(10, 0.2589), (30, 0.0950), (100, 0.0295), (200, 0.0149), (1000, 0.0030)])
def test_no_loss_bounds_it_by_about_three_over_the_number_of_cuts(cuts: int, bound: float) -> None:
    assert loss_bound(0, cuts) == pytest.approx(bound, abs=5e-5)
    assert loss_bound(0, cuts) < 3 / cuts


@pytest.mark.parametrize(("lost", "cuts"), [(1, 20), (3, 50), (19, 20), (7, 200)])
def test_at_the_bound_so_few_losses_have_a_chance_of_one_in_twenty(lost: int, cuts: int) -> None:
    p = loss_bound(lost, cuts)
    assert sum(comb(cuts, k) * p**k * (1 - p) ** (cuts - k) for k in range(lost + 1)) == pytest.approx(0.05, abs=1e-9)


def test_the_ends() -> None:
    assert loss_bound(0, 0) == 1.0
    assert loss_bound(5, 5) == 1.0
    with pytest.raises(ValueError, match="6 of 5"):
        loss_bound(6, 5)
