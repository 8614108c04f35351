"""The controller's clock mapped onto the DUT's: the true time lies within the bound."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugpull.dut.conversation.clock import ClockNotMapped, DutClock, Exchange
from plugpull.history.events.dut import CLOCK_DRIFT

ROUNDING = 1e-6
"""Seconds: what floating point loses on numbers of this size."""
seconds = st.floats(0, 100_000, allow_nan=False)


@dataclass(frozen=True)
class TrueClock:
    """A DUT's clock that is ahead of the controller's, and drifts."""

    ahead: float
    drift: float

    def at(self, controller: float) -> float:
        return self.ahead + (1 + self.drift) * controller

    def exchange(self, sent: float, there: float, back: float) -> Exchange:
        """The request takes ``there`` seconds to the DUT, its answer takes ``back``."""
        return Exchange(sent, sent + there + back, self.at(sent + there))


clocks = st.builds(TrueClock, st.floats(-1e5, 1e5), st.floats(-CLOCK_DRIFT, CLOCK_DRIFT))
trips = st.lists(st.tuples(seconds, st.floats(0, 30), st.floats(0, 30)), min_size=1, max_size=100)


@settings(deadline=None)
@given(clock=clocks, trips=trips, moment=seconds)
def test_the_true_time_is_within_the_bound(
    clock: TrueClock, trips: list[tuple[float, float, float]], moment: float
) -> None:
    mapped = DutClock()
    for sent, there, back in sorted(trips):
        mapped.add(clock.exchange(sent, there, back))
    dut, error = mapped.at(moment)
    assert abs(dut - clock.at(moment)) <= error + ROUNDING


@settings(deadline=None)
@given(clock=clocks, trips=trips, moment=seconds)
def test_another_exchange_never_makes_the_bound_worse(
    clock: TrueClock, trips: list[tuple[float, float, float]], moment: float
) -> None:
    mapped, bounds = DutClock(keep=1000), []
    for sent, there, back in trips:
        mapped.add(clock.exchange(sent, there, back))
        bounds.append(mapped.at(moment)[1])
    assert bounds == sorted(bounds, reverse=True)


def test_a_quick_exchange_is_preferred_until_drift_makes_it_worse() -> None:
    mapped = DutClock()
    mapped.add(Exchange(0.0, 0.002, 1000.0))
    mapped.add(Exchange(1000.0, 1000.1, 2000.5))
    assert mapped.at(1.0)[0] == pytest.approx(1000.0 + 1.0 - 0.001)
    # A thousand seconds may have drifted by 200 ms, which is more than half of a round trip of 100 ms.
    assert mapped.at(1001.0)[0] == pytest.approx(2000.5 + 1001.0 - 1000.05)


def test_old_exchanges_are_forgotten() -> None:
    mapped = DutClock(keep=2)
    for number in range(5):
        mapped.add(Exchange(number, number + 0.001, number))
    # What is left is the 4th and 5th: the first is too far from 0 by what may have drifted since.
    assert mapped.at(0.0)[1] == pytest.approx(0.0005 + CLOCK_DRIFT * (3.0005 + 0.0005))


def test_before_the_first_exchange_there_is_no_mapping() -> None:
    mapped = DutClock()
    assert not mapped.mapped
    with pytest.raises(ClockNotMapped, match="not mapped yet"):
        mapped.now()
    mapped.add(Exchange(0.0, 0.1, 5.0))
    assert mapped.mapped
