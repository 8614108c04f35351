"""The steps between samples, and the bytes of a disk on their time line, by the definitions."""

from __future__ import annotations

import random
from itertools import pairwise
from math import inf, isnan, nan

import pytest

from plugpull.checks.survivors.track import Since, TimeLine, on_line, track
from plugpull.history.events import Sampled
from plugpull.history.samples import SampleTable

TIMES: list[list[float | None]] = [
    [],
    [3.0],
    [1.0, 2.0, 2.5],
    [1.0, 1.0, 2.0],
    [1.0, 3.0, 2.0],
    [1.0, None, 2.0],
    [None],
    [1.0, inf],
    [-inf, 1.0, inf],
    [1.0, inf, inf],
    [1e308, -1e308],
    [-1e308, 1e308],
    [1e308, 1.1e308, 1.2e308],
]


@pytest.mark.parametrize("times", TIMES)
def test_whether_samples_are_in_order(times: list[float | None]) -> None:
    table = SampleTable(Sampled(at=at, disks={}) for at in times)
    known = [nan if at is None else at for at in times]
    whole = not any(map(isnan, known))
    assert table.ordered == (whole and all(one <= two for one, two in pairwise(known)))
    assert table.rises == (whole and all(one < two for one, two in pairwise(known)))
    assert table.longest_step == (max((two - one for one, two in pairwise(known)), default=0.0) if table.rises else inf)


@pytest.mark.parametrize("seed", range(4))
def test_counts_on_a_time_line_are_like_samples(seed: int) -> None:
    dice = random.Random(seed)
    times, counts = [5.0], [100]
    for _ in range(dice.randrange(1, 400)):
        times.append(times[-1] + dice.uniform(0.05, 2.0))
        counts.append(counts[-1] + dice.choice((0, 0, 4096, 1 << 20)))
    one = on_line(TimeLine(times), counts[0], counts[1:])
    two = track(list(zip(times, counts, strict=True)))
    assert list(one.moved) == list(two.moved) == [one.moved[place] for place in range(len(times))]
    assert list(one.moved[1:]) == list(two.moved)[1:]
    assert one.moved[-1] == two.moved[-1]
    assert one.fewest == two.fewest == min(after - before for before, after in pairwise(counts))
    assert one.stalls(2000.0) == two.stalls(2000.0)
    assert list(one.line.steps) == list(two.line.steps)


def test_the_least_step_is_found_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugpull.checks.survivors.track.AT_ONCE", 4)
    for place in range(11):
        counts = [10 * (each + 1) - 7 * (each >= place) for each in range(11)]
        assert Since(0.0, counts).least_step == 3.0
    assert Since(2.5, []).least_step == 0.0
    assert Since(2.5, [3]).least_step == 0.5
