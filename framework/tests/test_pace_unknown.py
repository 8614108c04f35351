"""The check ``kept_pace`` where the record does not show enough to conclude."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from paces import BOTH, NEW, OLD, STOPPED, between, only, resampled, verdict, with_rates, without_samples
from stories import CUT, GONE, RATE, SETTLED, SURVIVORS, VICTIM, healthy

from plugpull.checks import Check
from plugpull.history import events as ev
from plugpull.judging.results import Verdict


@BOTH
@pytest.mark.parametrize("last", [CUT + 1.2, 20.0])
@pytest.mark.parametrize("disks", [("disk2",), ("disk1", "disk2", "disk3")])
def test_samples_that_end_before_the_load(check: Check, last: float, disks: tuple[str, ...]) -> None:
    result = verdict(without_samples(healthy(), disks, last), check)
    assert result.verdict is Verdict.UNKNOWN
    assert "samples" in result.unknowns[0]


def test_a_loss_that_chance_may_explain() -> None:
    """83 % of a baseline that is known to 10 %: neither a finding nor a pass."""
    drawn = random.Random(4)
    noise = [drawn.gauss(1.0, 0.06) for _ in range(100)]
    bench = healthy(pace=only("disk2", lambda at: noise[int(at * 2)] * (0.83 if at > CUT else 1.0)))
    result = verdict(bench)
    assert result.verdict is Verdict.UNKNOWN
    assert "(at least 85% wanted), known to" in result.unknowns[0]


@pytest.mark.parametrize(("lost", "due"), [(0.6, Verdict.FAIL), (0.0, Verdict.PASS)], ids=["declines", "keeps on"])
def test_a_slow_decline_shows_at_the_end_where_the_mean_may_be_chance(lost: float, due: Verdict) -> None:
    """Half seconds of 89 % and 111 %: 63 % on average may be 70 % by chance, 47 % in the last seconds may not."""

    def rate(at: float) -> float:
        return (1.11 if int(at * 2) % 2 else 0.89) * (1 - lost * max(0.0, at - CUT) / (STOPPED - CUT))

    result = verdict(healthy(pace=only("disk2", rate)), OLD)
    assert result.verdict is due
    assert [finding.subject for finding in result.findings] == ["disk2"] * (due is Verdict.FAIL)
    assert all("in the last 2 s of its load" in finding.summary for finding in result.findings)
    assert result.unknowns == ()


def test_a_short_record_that_is_slow_to_its_end() -> None:
    """Half the rate for 2.3 s: too short for a window of a second after the 1.5 s, and slow for certain."""
    bench = healthy(pace=only("disk2", between(CUT, 99, 0.5)))
    bench.drop(ev.Edge, lambda event: event.state == "off")
    bench.drop(ev.DiskAttached, lambda event: event.at < CUT)
    bench.replace(ev.CutArmed, permanent=True)
    bench.replace(ev.LoadEnded, lambda event: event.disk in SURVIVORS, at=CUT + 2.4, asked_at=CUT + 2.3)
    assert "did not get back to 85%" in bench.judge(NEW).findings[0].summary


def test_samples_that_end_just_before_the_load() -> None:
    result = verdict(without_samples(healthy(), ("disk2",), STOPPED - 0.6))
    assert result.verdict is Verdict.UNKNOWN
    assert "0.60 s before its load was to end" in " ".join(result.unknowns)


@BOTH
def test_an_endless_load_that_ends_by_itself(check: Check) -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == "disk2", asked=False, asked_at=None, at=20.0)
    result = verdict(bench, check)
    assert result.verdict is Verdict.UNKNOWN
    assert "the load on disk2 ended by itself with exit status 0" in result.unknowns[0]


def test_a_load_with_a_size_may_end() -> None:
    bench = healthy()
    bench.replace(ev.LoadBegun, argv=("fio", "--size=1G"))
    bench.replace(ev.LoadEnded, lambda event: event.disk == "disk2", asked=False, asked_at=None, at=22.0)
    bench.pace = only("disk2", between(22.0, 99, 0))
    assert verdict(bench).verdict is Verdict.PASS


@BOTH
def test_an_end_that_is_not_on_record(check: Check) -> None:
    bench = healthy()
    bench.pace = only("disk2", between(STOPPED, 99, 0))
    bench.drop(ev.LoadEnded, lambda event: event.disk != "disk2")
    result = verdict(bench, check)
    assert result.verdict is Verdict.UNKNOWN
    assert "how the load on disk2 ended was not recorded" in result.unknowns


@BOTH
def test_counters_that_go_back(check: Check) -> None:
    before: list[int] = []

    def reset(one: ev.Sampled) -> ev.Sampled:
        row = one.disks.get("sdc")
        if row is None or (one.at or 0) < 19.0:
            return one
        before.append(row.written_bytes)
        return ev.Sampled(
            at=one.at, disks=one.disks | {"sdc": row._replace(written_bytes=row.written_bytes - before[0])}
        )

    result = verdict(resampled(healthy(), reset), check)
    assert result.verdict is Verdict.UNKNOWN
    assert "the counters of disk2 went back at 19.00 s" in result.unknowns[0]


@BOTH
def test_swapped_outlets_accuse_nobody(check: Check) -> None:
    """The victim stayed and moved on; a survivor left instead."""
    bench = healthy()
    bench.drop(ev.DiskDetached)
    bench.drop(ev.Uevent)
    bench.drop(ev.KernelMessage, lambda event: "disconnect" not in event.text)
    attached = bench._attached[VICTIM]
    bench._attached[VICTIM] = [(attached[0][0], float("inf"), *attached[0][2:])]
    bench.drop(ev.DiskAttached, lambda event: event.disk != VICTIM or event.at < CUT)
    bench.detach("disk2", GONE)
    bench.drop(ev.LoadEnded, lambda event: event.disk != VICTIM)
    bench.add(ev.LoadEnded(at=STOPPED + 0.3, disk=VICTIM, job=f"load-{VICTIM}", asked=True, asked_at=STOPPED))
    judgement = bench.judge(check)
    assert not judgement.findings
    assert "the outlets look swapped" in judgement.unknowns[0]


def test_a_baseline_of_two_paces_is_not_a_baseline() -> None:
    """Full rate for a second, a tenth for two, and a tenth ever after: nobody knows which of them is usual."""
    bench = healthy(pace=only("disk2", between(0, SETTLED + 1, 1.0, 0.1)))
    result = verdict(bench)
    assert result.verdict is Verdict.UNKNOWN
    assert "its baseline was not steady" in result.unknowns[0]


@pytest.mark.parametrize("slow", [0.3, 0.06], ids=["a third", "nearly still"])
def test_one_slow_half_second_of_the_baseline_hides_no_loss(slow: float) -> None:
    """Five half seconds at full rate and a slow one, and then 55 % to the end."""
    (finding,) = with_rates(healthy(pace=only("disk2", _one_slow(slow, 0.55))), RATE).findings
    assert finding.subject == "disk2"
    assert "of its baseline (at least 85% wanted)" in finding.summary or "get back to 85%" in finding.summary


@pytest.mark.parametrize("slow", [0.3, 0.06], ids=["a third", "nearly still"])
def test_one_slow_half_second_of_the_baseline_accuses_nobody(slow: float) -> None:
    judgement = with_rates(healthy(pace=only("disk2", _one_slow(slow, 1.0))), RATE)
    assert judgement.findings == ()


def test_an_emulated_disk_without_a_rate_may_be_slowed_by_its_host_again() -> None:
    """On a healthy bench whose host was busy for seconds, a disk was at 61 % of such a baseline to the end."""
    result = verdict(healthy(pace=only("disk2", _one_slow(0.3, 0.55))))
    assert result.verdict is Verdict.UNKNOWN


def _one_slow(slow: float, later: float) -> Callable[[float], float]:
    before = between(SETTLED + 1, SETTLED + 1.5, slow, 1.0)
    return lambda at: later if at > CUT else before(at)


def wandering(later: float) -> Callable[[float], float]:
    """A pace that is another one in each half second before the cut, and the same one from then on."""
    paces = (1.0, 0.95, 0.6, 0.3, 0.7, 0.5)
    return lambda at: later if at > CUT else paces[max(0, int((at - SETTLED) / 0.5)) % len(paces)]


@pytest.mark.parametrize(("later", "accused"), [(0.35, False), (0.05, True)], ids=["as slow as before", "slower"])
def test_where_the_pace_wandered_before_the_cut_ranks_prove_nothing(later: float, accused: bool) -> None:
    judgement = with_rates(healthy(pace=only("disk2", wandering(later))), RATE)
    assert bool(judgement.findings) == accused
    assert accused or "of its baseline" in judgement.unknowns[0], "a doubt, not a PASS"


@BOTH
def test_a_baseline_that_a_stall_has_poisoned(check: Check) -> None:
    bench = healthy(pace=only("disk2", lambda at: 0 if SETTLED + 0.3 < at < CUT - 0.1 else 0.1 if at > CUT else 1.0))
    assert verdict(bench, check).verdict is Verdict.FAIL, "the stall itself"
    rest = healthy(pace=only("disk2", lambda at: 0.05001 if SETTLED + 0.5 < at < CUT else 0.1 if at > CUT else 1.0))
    assert verdict(rest, check).verdict is not Verdict.PASS


def test_a_baseline_too_noisy_for_its_limit() -> None:
    bench = healthy(pace=only("disk2", lambda at: 0.36 if int(at * 2) % 2 else 1.0))
    result = verdict(bench)
    assert result.verdict is Verdict.UNKNOWN
    assert "the baseline of disk2 varies by" in result.unknowns[0]
