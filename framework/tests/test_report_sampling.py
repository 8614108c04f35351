"""What is drawn of the samples of a long scenario: every one around cuts, two of each bucket elsewhere."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from plugpull.history.counters import Counters
from plugpull.history.events import Sampled
from plugpull.history.samples import SampleTable
from plugpull.report.sampling import AFTER, BEFORE, BUCKET, Sampling


def samples(dice: random.Random, *, idle: bool) -> list[Sampled]:
    """Samples ten times a second, in some of which the disk is missing or a counter falls."""
    found, at, moved = [], 10.0, 0
    for _ in range(400):
        at += dice.uniform(0.08, 0.12)
        moved += 0 if idle else dice.choice((0, 1000, 1000, 5000))
        if dice.random() < 0.01:
            moved //= 2
        gone = dice.random() < 0.02
        found.append(Sampled(at=at, disks={} if gone else {"sda": Counters(1, moved, 0, moved, 0, 0, 0, 0)}))
    return found


def rates_of(recorded: list[Sampled]) -> list[float | None]:
    """The rate up to each sample, by the definition."""
    found: list[float | None] = [None]
    for one, two in pairwise(recorded):
        known = "sda" in one.disks and "sda" in two.disks
        gained = two.disks["sda"].read_bytes - one.disks["sda"].read_bytes if known else -1
        found.append(gained / ((two.at or 0.0) - (one.at or 0.0)) if gained >= 0 else None)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_a_bucket_has_its_least_and_its_greatest_rate(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("plugpull.report.sampling.LONG", 50)
    recorded = samples(random.Random(seed), idle=seed == 5)
    cut = (recorded[150].at or 0.0, recorded[160].at or 0.0)
    drawn = Sampling(SampleTable(recorded), range(len(recorded))).thinned([cut])
    read, write = drawn.rates([("sda", 1)])
    assert drawn.long
    assert len(read) == len(write) == len(drawn.grid)
    assert drawn.grid == sorted(drawn.grid)
    assert {rate for rate in write if rate is not None} == {0.0}

    rates, times = rates_of(recorded), [sample.at or 0.0 for sample in recorded]
    near = [place for place, at in enumerate(times) if cut[0] - BEFORE <= at < cut[1] + AFTER]
    first = drawn.grid.index(times[near[0]])
    assert drawn.grid[first : first + len(near)] == [times[place] for place in near]
    assert read[first : first + len(near)] == [rates[place] for place in near]

    width = round(BUCKET * len(recorded) / (times[-1] - times[0]))
    after = -(-(near[-1] + 1) // width) * width
    for begin in (0, width, after, after + width):
        bucket = rates[begin : begin + width]
        assert bucket, "the bucket is in the record"
        place = drawn.grid.index(times[begin])
        known = [rate for rate in bucket if rate is not None]
        pair = read[place : place + 2]
        if len(known) == len(bucket):
            rises = max(known) in bucket[bucket.index(min(known)) :]
            assert pair == ([min(known), max(known)] if rises else [max(known), min(known)])
        else:
            assert None in pair, "a gap of a single sample is seen"
            assert min(known) in pair


def test_a_short_scenario_is_drawn_in_full() -> None:
    recorded = samples(random.Random(1), idle=False)
    drawn = Sampling(SampleTable(recorded), range(len(recorded))).thinned([])
    assert not drawn.long
    assert drawn.rates([("sda", 1)])[0] == rates_of(recorded)
