"""How long a load is watched until its baseline is known."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, cast
from unittest.mock import Mock

import pytest
from fios import SPAN

from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.load.runner import Job
from plugpull.load.running import RunningJobs


class Watching(RunningJobs):
    """A load whose samples are made up: bytes per tenth of a second."""

    def __init__(self, rate: Callable[[int], int]) -> None:
        super().__init__(Mock(), (Mock(),))
        self._jobs = {"disk1": Job("load1-disk1", "disk1", "sda", SPAN)}
        self.rate, self.number, self.total = rate, 0, 0

    def _next_sample(self) -> ev.Sampled:
        self.total += self.rate(self.number)
        self.number += 1
        return ev.Sampled(at=self.number / 10, disks={"sda": Counters(1, 0, self.total, 0, 0, 0, 0, 0)})

    def _begin(self) -> None: ...

    def _stop_jobs(self, running: Iterable[Job]) -> dict[str, Any]:
        return {}

    def verify(self) -> None: ...

    def _first_bytes(self, disk: str) -> int:
        return 1


def watched_for(rate: Callable[[int], int]) -> float:
    load = Watching(rate)
    begin = load._next_sample()
    return (load._watch_steadily(begin, 2.1).at or 0.0) - (begin.at or 0.0)


def test_a_steady_load_is_watched_no_longer_than_asked() -> None:
    assert watched_for(lambda number: 100_000) == pytest.approx(2.1, abs=0.11)
    assert watched_for(lambda number: 100_000 + 3_000 * (number % 2)) == pytest.approx(2.1, abs=0.11)


def test_a_load_that_varies_is_watched_until_its_mean_is_known() -> None:
    drawn = random.Random(5)
    noise = [drawn.gauss(1, 0.15) for _ in range(100)]
    took = watched_for(lambda number: int(100_000 * noise[number // 5]))
    assert 2.3 < took < 6


def test_a_load_that_never_settles_is_not_watched_for_ever() -> None:
    assert watched_for(lambda number: 200_000 * (number // 5 % 2)) == pytest.approx(6.1, abs=0.2)


def test_a_load_that_needs_no_baseline_runs_for_so_long_and_its_beginning_is_on_record() -> None:
    load = Watching(lambda number: 200_000 * (number // 5 % 2))  # its rate never becomes known
    load.run_for(seconds=1)
    context = cast("Mock", load._context)
    (settled,) = [call.args[0] for call in context.recorder.record.call_args_list]
    assert settled == ev.LoadSettled(at=0.1, disks=("disk1",))
    context.pause.assert_called_once_with(1)
    assert load.number == 1


@pytest.mark.parametrize("ends", [True, False])
def test_a_load_ends_by_itself_or_is_not_waited_for_any_longer(ends: bool) -> None:
    load = Watching(lambda number: 0)
    context = cast("Mock", load._context)

    def wait_for(wanted: Callable[[ev.Event], bool], within: float, *, since: int) -> ev.Event | None:
        sample = load._next_sample()
        assert not wanted(sample)
        if ends:
            load._jobs["disk1"].ended.set()
        return sample if wanted(sample) else None

    context.wait_for.side_effect = wait_for
    assert load.wait_ended() is ends


@pytest.mark.parametrize("still", [0, 4, 8])
def test_after_a_cut_it_is_watched_until_it_had_a_whole_second_at_its_pace(
    monkeypatch: pytest.MonkeyPatch, still: int
) -> None:
    """``kept_pace`` wants a second at pace, and a disk may stand still for a moment after the edge."""
    load = Watching(lambda number: 0 if number < still else 100_000)
    load._baseline = {"disk1": 1_000_000.0}
    monkeypatch.setattr("plugpull.load.running.time.monotonic", lambda: load.number / 10)
    load.regain_pace(within=6.0)
    assert load.number / 10 >= still / 10 + 1.0 - 0.15 - 0.15  # up to 15 % of a second may be lost
    assert load.number / 10 <= still / 10 + 1.2
