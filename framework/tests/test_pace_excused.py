"""The check ``kept_pace`` accuses no disk of noise, nor of a slow or starved host."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from paces import BOTH, add_cpu, between, only, resampled, verdict, with_rates
from stories import CUT, RATE, STOPPED, Bench, healthy

from plugpull.checks import Check
from plugpull.history import events as ev
from plugpull.judging.results import Verdict


@BOTH
@pytest.mark.parametrize(
    "share",
    [
        pytest.param(between(0, 99, 1.0), id="steady"),
        pytest.param(between(CUT + 0.1, CUT + 0.4, 0), id="a pause of 0.3 s"),
        pytest.param(between(CUT, 99, 1.5), id="faster without the dead disk"),
        pytest.param(between(CUT, CUT + 1, 0.5), id="slow for a second"),
    ],
)
def test_healthy(check: Check, share: Callable[[float], float]) -> None:
    assert verdict(healthy(pace=only("disk2", share)), check).verdict is Verdict.PASS


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_not_a_loss(seed: int) -> None:
    """Half seconds that vary by 5 %, as healthy emulated disks do."""
    drawn = random.Random(seed)
    noise = [drawn.gauss(1.0, 0.05) for _ in range(100)]
    result = verdict(healthy(pace=lambda disk, at: RATE * noise[int(at * 2)]))
    assert result.verdict is Verdict.PASS, result.sentence


def test_time_that_the_host_took_does_not_count() -> None:
    bench = healthy(pace=lambda disk, at: 0.0 if 18.0 < at < 19.5 else RATE)
    bench.starved = ((18.0, 19.5),)
    assert verdict(bench).verdict is Verdict.PASS


def test_a_load_that_is_bound_by_the_cpu_accuses_no_disk() -> None:
    slow = only("disk2", between(CUT, 99, 0.5))
    bench = healthy(pace=slow)
    add_cpu(bench, 0.97)
    result = verdict(bench)
    assert result.verdict is Verdict.UNKNOWN
    assert "CPUs were 97% busy before the first cut already" in result.unknowns[0]
    idle = healthy(pace=slow)
    add_cpu(idle, 0.5)
    assert verdict(idle).verdict is Verdict.FAIL


def slow_host(bench: Bench, share: float, since: float = CUT) -> None:
    """Two CPUs whose host gives them this share of their time from ``since`` on: ticks are lost, and samples are
    late."""
    if share < 1:
        bench.starved = tuple((since + i / 5 + 0.01, since + i / 5 + 0.09) for i in range(50))
    ready = next(event for event in bench.events if isinstance(event, ev.DutReady))
    bench.drop(ev.DutReady)
    bench.add(msgspec.structs.replace(ready, cpus=2))

    def used(one: ev.Sampled) -> ev.Sampled:
        at = one.at or 0.0
        jiffies = round(200 * at if at < since else 200 * since + 200 * share * (at - since))
        return ev.Sampled(at=one.at, disks=one.disks, cpu=(jiffies // 2, jiffies))

    resampled(bench, used)


@pytest.mark.parametrize(
    "share",
    [between(CUT + 2, CUT + 2.9, 0), between(CUT, 99, 0.5), between(CUT, CUT + 3, 0.3, 1.0)],
    ids=["a stall", "a loss", "a recovery"],
)
def test_a_slow_host_accuses_no_disk(share: Callable[[float], float]) -> None:
    slow, quick = healthy(pace=only("disk2", share)), healthy(pace=only("disk2", share))
    slow_host(slow, 0.5)
    slow_host(quick, 1.0)
    assert verdict(slow).verdict is not Verdict.FAIL
    assert verdict(quick).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    "share", [between(CUT, 99, 0.1), between(CUT + 1, CUT + 7, 0)], ids=["a tenth", "a stall of 6 s"]
)
def test_a_slow_host_does_not_excuse_everything(share: Callable[[float], float]) -> None:
    bench = healthy(pace=only("disk2", share))
    slow_host(bench, 0.6)
    assert verdict(bench).verdict is Verdict.FAIL


@pytest.mark.parametrize(("share", "due"), [(0.5, Verdict.FAIL), (0.95, Verdict.PASS)], ids=["half", "healthy"])
def test_a_slow_host_slows_no_limit_of_an_emulated_disk(share: float, due: Verdict) -> None:
    """It runs on the host's clock: a host that gives 75 % of its time does not explain half of the rate."""
    bench = healthy(pace=only("disk2", between(CUT, 99, share)))
    slow_host(bench, 0.6)
    judged = with_rates(bench, RATE)
    assert (Verdict.FAIL if judged.findings else Verdict.UNKNOWN if judged.unknowns else Verdict.PASS) is due, judged
    survivor = next(one for one in judged.survivors if one.disk == "disk2")
    assert survivor.final_ratio is not None
    assert (survivor.final_ratio < 0.85) == (due is Verdict.FAIL)


def test_a_host_that_hardly_ran_the_dut() -> None:
    bench = healthy()
    slow_host(bench, 0.1)
    result = verdict(bench)
    assert result.verdict is Verdict.UNKNOWN
    assert "the DUT's host gave it only" in result.unknowns[0]


@pytest.mark.parametrize(("share", "due"), [(0.2, Verdict.UNKNOWN), (1.0, Verdict.FAIL)], ids=["a fifth", "all"])
def test_a_host_that_hardly_ran_the_dut_at_last(share: float, due: Verdict) -> None:
    """On the whole it ran it for more than half of the time."""
    bench = healthy(pace=only("disk2", between(STOPPED - 2, 99, 0.05)))
    slow_host(bench, share, STOPPED - 2.2)
    result = verdict(bench)
    assert result.verdict is due, result
    assert any("of its CPU time then" in why for why in result.unknowns) is (due is Verdict.UNKNOWN)
