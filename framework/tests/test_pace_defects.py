"""kept_pace with the limits of a healthy bench: what it must see, what it may not know, and whom it must not accuse."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from stories import CUT, GONE, RATE, RESTORED, RIG, SETTLED, SURVIVORS, VICTIM, Bench, Pace, healthy

from plugpull.checks import Check, Judgement, kept_pace
from plugpull.checks.baseline import baseline
from plugpull.checks.track import track
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import ScenarioResult, Verdict

OLD = kept_pace(SURVIVORS, max_stall=2.0, min_ratio=0.7, recover_within=5.0)
"""What histories ask that were recorded before limits had defaults."""
NEW = kept_pace(SURVIVORS)
BOTH = pytest.mark.parametrize("check", [OLD, NEW], ids=["old limits", "default limits"])
STOPPED = 24.0


def only(disk: str, rate: Callable[[float], float]) -> Pace:
    """The pace of one disk as a share of what it should be, over time; the others are steady."""
    return lambda name, at: RATE * (rate(at) if name == disk else 1.0)


def between(begin: float, end: float, share: float, otherwise: float = 1.0) -> Callable[[float], float]:
    return lambda at: share if begin <= at < end else otherwise


def verdict(bench: Bench, check: Check = NEW) -> ScenarioResult:
    bench.checks = (check,)
    return judge_story(bench.story())


def with_rates(bench: Bench, rate: int, kind: str = "virtual", **load: Any) -> Judgement:
    """Judged on a rig whose disks declare a rate."""
    bench.replace(ev.LoadBegun, **({"argv": ("fio", "--time_based")} | load))
    story = bench.story()
    rig = RIG | {"dut": {"kind": kind}, "disk": [disk | {"rate": rate} for disk in RIG["disk"]]}
    return NEW.judge(Story(story.begun, story.events, rig=rig))


# --- findings ----------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("share", "said"),
    [
        pytest.param(between(SETTLED + 0.5, CUT - 0.4, 0), "stood still for 2.1", id="before the cut"),
        pytest.param(between(CUT, 99, 0.6), "did not get back to", id="at 60 % for ever"),
        pytest.param(between(CUT + 0.2, CUT + 7, 0.00002), "stood still for 6.", id="a trickle of 400 B/s"),
        pytest.param(lambda at: 0 if at % 2.5 < 1.9 and at > CUT else 1.0, "", id="many stalls of 1.9 s"),
        pytest.param(between(22.9, 99, 0.2), "in the last 2 s of its load", id="the last second"),
        pytest.param(lambda at: 1 - 0.4 * max(0, at - CUT) / (STOPPED - CUT), "", id="a decline to 60 %"),
    ],
)
def test_what_must_be_seen(check: Check, share: Callable[[float], float], said: str) -> None:
    result = verdict(healthy(pace=only("disk2", share)), check)
    assert result.verdict is Verdict.FAIL
    assert {finding.subject for finding in result.findings} == {"disk2"}
    assert said in result.findings[0].summary


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (between(CUT + 1, CUT + 1.7, 0), "stood still for 0.70 s (limit 0.5 s)"),
        (lambda at: 0 if at % 2 < 0.4 and CUT < at < 22 else 1.0, "stood still for 1.35 s in 3 stalls (limit 1 s)"),
        (lambda at: 1 - 0.2 * max(0, at - CUT) / (STOPPED - CUT), "in the last 2 s of its load"),
        (between(CUT, 99, 0.8), "did not get back to 85%"),
        (between(RESTORED, RESTORED + 3.5, 0.5), "to get back to 85%"),
    ],
    ids=["a short stall", "three short stalls", "a decline to 80 %", "80 % for ever", "a slow recovery"],
)
def test_what_the_default_limits_see(share: Callable[[float], float], said: str) -> None:
    result = verdict(healthy(pace=only("disk2", share)))
    assert result.verdict is Verdict.FAIL
    assert said in result.findings[0].summary


def test_a_block_now_and_then_is_a_stall() -> None:
    """64 KiB every 1.5 s of a disk that moves 20 MB/s."""
    bench = healthy()
    burst = 65536 / 0.05 / RATE
    bench.pace = only("disk2", lambda at: burst if CUT < at < 22 and at % 1.5 < 0.049 else 0 if CUT < at < 22 else 1)
    assert "stood still for 6.9" in verdict(bench).findings[0].summary


def test_far_below_its_declared_rate_throughout() -> None:
    slow = healthy(pace=lambda disk, at: 0.03 * RATE if disk == "disk2" else RATE)
    (finding,) = with_rates(slow, RATE).findings
    assert finding.subject == "disk2"
    assert "3% of the 20.0 MB/s that the rig file declares" in finding.summary


def test_a_declared_rate_is_not_held_against_who_cannot_reach_it() -> None:
    slow = healthy(pace=lambda disk, at: 0.3 * RATE)
    assert with_rates(slow, RATE).findings
    assert not with_rates(slow, RATE, argv=()).findings, "a load that flushes"
    assert not with_rates(slow, RATE, "ssh").findings, "three disks share a real bus"
    assert not with_rates(healthy(), RATE).findings


@pytest.mark.parametrize(("flush_writes", "accused"), [(0, True), (64, False)])
def test_stamps_that_are_not_flushed_must_reach_their_rate(flush_writes: int, accused: bool) -> None:
    slow = healthy(pace=lambda disk, at: 0.03 * RATE if disk == "disk2" else RATE)
    for disk in SURVIVORS:
        known: dict[str, Any] = {"run": 1, "device": 1, "session": 1, "extents": ((0, 2048),), "block": 128, "depth": 4}
        job = f"load-{disk}"
        slow.add(ev.LedgerBegun(at=11.0, disk=disk, job=job, order="sequential", flush_writes=flush_writes, **known))
    assert bool(with_rates(slow, RATE, argv=()).findings) is accused


def test_a_hub_shares_its_rate() -> None:
    bench = healthy(pace=lambda disk, at: 0.3 * RATE)
    bench.replace(ev.LoadBegun, argv=("fio", "--time_based"))
    story = bench.story()
    disks = [disk | {"rate": RATE} for disk in RIG["disk"]]
    rig = RIG | {"dut": {"kind": "virtual"}, "disk": disks, "hub": [RIG["hub"][0] | {"rate": RATE}]}
    assert not NEW.judge(Story(story.begun, story.events, rig=rig)).findings


def test_busy_cpus_excuse_a_rate_that_was_never_there() -> None:
    bench = healthy(pace=lambda disk, at: 0.03 * RATE)
    add_cpu(bench, 0.97)
    judgement = with_rates(bench, RATE)
    assert not judgement.findings
    assert "CPUs were 97% busy" in judgement.unknowns[0]


@BOTH
def test_fio_that_has_to_be_killed(check: Check) -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == "disk2", at=STOPPED + 9, exit_status=-9)
    result = verdict(bench, check)
    assert result.verdict is Verdict.FAIL
    assert "took 9.00 s after it was asked to end" in result.findings[0].summary


@BOTH
def test_a_request_that_hangs_while_others_go_on(check: Check) -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == "disk2", longest=5.4)
    result = verdict(bench, check)
    assert result.verdict is Verdict.FAIL
    assert "a request of disk2 took 5.40 s (limit 5 s)" in result.findings[0].summary
    bench.replace(ev.LoadEnded, lambda event: event.disk == "disk2", longest=1.2)
    assert verdict(bench, check).verdict is Verdict.PASS


@BOTH
def test_a_load_that_meets_an_error(check: Check) -> None:
    bench = healthy()
    changes: dict[str, Any] = {"asked": False, "asked_at": None, "errno": 5, "message": "I/O error", "at": 20.0}
    bench.replace(ev.LoadEnded, lambda event: event.disk == "disk2", **changes)
    assert verdict(bench, check).verdict is Verdict.FAIL


# --- what is not known -------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("last", [CUT + 1.2, 20.0])
@pytest.mark.parametrize("disks", [("disk2",), ("disk1", "disk2", "disk3")])
def test_samples_that_end_before_the_load(check: Check, last: float, disks: tuple[str, ...]) -> None:
    result = verdict(without_samples(healthy(), disks, last), check)
    assert result.verdict is Verdict.UNKNOWN
    assert "samples" in result.unknowns[0]


def resampled(bench: Bench, change: Callable[[ev.Sampled], ev.Sampled]) -> Bench:
    """The bench with each of its samples changed."""
    made = bench.samples
    bench.samples = lambda: [change(one) if isinstance(one, ev.Sampled) else one for one in made()]  # type: ignore[method-assign]
    return bench


def without_samples(bench: Bench, disks: tuple[str, ...], last: float) -> Bench:
    knames = {event.kname for event in bench.events if isinstance(event, ev.DiskAttached) and event.disk in disks}

    def fewer(one: ev.Sampled) -> ev.Sampled:
        late = (one.at or 0) > last
        return ev.Sampled(at=one.at, disks={k: v for k, v in one.disks.items() if not late or k not in knames})

    return resampled(bench, fewer)


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


# --- nobody's fault ----------------------------------------------------------------------------------------


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


def add_cpu(bench: Bench, busy: float) -> None:
    def used(one: ev.Sampled) -> ev.Sampled:
        total = round((one.at or 0) * 200)
        return ev.Sampled(at=one.at, disks=one.disks, cpu=(round(total * busy), total))

    resampled(bench, used)


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


def slow_host(bench: Bench, share: float) -> None:
    """Two CPUs whose host gives them this share of their time from the cut on: ticks are lost, and samples are late."""
    if share < 1:
        bench.starved = tuple((CUT + i / 5 + 0.01, CUT + i / 5 + 0.09) for i in range(50))
    ready = next(event for event in bench.events if isinstance(event, ev.DutReady))
    bench.drop(ev.DutReady)
    bench.add(msgspec.structs.replace(ready, cpus=2))

    def used(one: ev.Sampled) -> ev.Sampled:
        at = one.at or 0.0
        jiffies = round(200 * at if at < CUT else 200 * CUT + 200 * share * (at - CUT))
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


def test_a_host_that_hardly_ran_the_dut() -> None:
    bench = healthy()
    slow_host(bench, 0.1)
    result = verdict(bench)
    assert result.verdict is Verdict.UNKNOWN
    assert "the DUT's host gave it only" in result.unknowns[0]


# --- what is said ------------------------------------------------------------------------------------------


def test_a_pass_says_how_much_it_would_have_seen() -> None:
    result = verdict(healthy())
    (check,) = (check for check in result.checks if check.check == "kept_pace")
    assert "lowest rate 99% of the baseline, limit 85%, would have noticed a loss of 15% or more" in check.worst
    assert check.measured == pytest.approx(0.993, abs=0.01)
    assert (check.limit, check.unit) == (0.85, "of the baseline")
    assert check.smallest == pytest.approx(0.15, abs=0.01)
    assert [survivor.limit for survivor in result.survivors] == [0.85, 0.85]


def test_noise_makes_the_smallest_loss_larger() -> None:
    def line(spread: float) -> Any:
        drawn = random.Random(1)
        samples, moved = [(0.0, 0.0)], 0.0
        for i in range(1, 101):
            moved += 0.1 * RATE * drawn.gauss(1, spread)
            samples.append((i / 10, moved))
        return track(samples)

    calm, rough = baseline(line(0.01), 5.0, 65536), baseline(line(0.3), 5.0, 65536)
    assert calm is not None
    assert rough is not None
    assert calm.margin(2.0) < 0.02 < 0.1 < rough.margin(2.0)
    assert rough.margin(0.5) > rough.margin(2.0)


def test_the_smallest_loss_is_one_that_is_seen() -> None:
    """The check keeps its word: on the same noise a disk that loses this much fails."""
    for seed in range(10):
        drawn = random.Random(seed)
        noise = [drawn.gauss(1.0, 0.05) for _ in range(100)]
        smallest = verdict(healthy(pace=lambda disk, at, n=noise: RATE * n[int(at * 2)])).survivors[0].smallest  # type: ignore[misc]
        assert smallest is not None
        lost = lambda at, n=noise, s=smallest: n[int(at * 2)] * (1 - s if at > CUT else 1)  # noqa: E731
        assert verdict(healthy(pace=only("disk2", lost))).verdict is Verdict.FAIL
