"""The check ``kept_pace`` with the limits of a healthy bench: what it must find, and what it says of a pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from ledgers import Book
from paces import BOTH, NEW, STOPPED, add_cpu, between, only, verdict, with_rates
from sessions_on_record import on_record
from stories import CUT, RATE, RESTORED, RIG, SETTLED, SURVIVORS, healthy

from plugpull.checks import Check, kept_pace
from plugpull.checks.survivors.baseline import baseline
from plugpull.checks.survivors.track import track
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.judging.results import Verdict

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


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (between(CUT + 1, CUT + 1.4, 0), ""),
        (between(CUT + 1, CUT + 1.49, 0), "disk2 stood still for 0.50 s to 0.60 s (limit 0.5 s)"),
        (lambda at: 0 if at % 2 < 0.28 and CUT < at < 22 else 1.0, "disk2 stood still for about 1."),
    ],
)
def test_stalls_that_were_probably_too_long_are_unknown(share: Callable[[float], float], said: str) -> None:
    """A stall is known to two sampling intervals, 0.05 s each here."""
    result = verdict(healthy(pace=only("disk2", share)))
    assert result.findings == ()
    assert [said in one for one in result.unknowns] == ([True] if said else [])


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


@pytest.mark.parametrize(
    ("pace", "kind", "accused"),
    [
        pytest.param(between(CUT, CUT + 1.6, 20.0), "virtual", ["disk2"], id="answered without the disk"),
        pytest.param(between(CUT, CUT + 1.6, 1.3), "virtual", [], id="what it owed"),
        pytest.param(between(CUT, CUT + 1.6, 20.0), "ssh", [], id="a real disk has a cache"),
    ],
)
def test_a_disk_that_is_faster_than_it_can_be(pace: Callable[[float], float], kind: str, accused: list[str]) -> None:
    """While another disk is cut, reads are answered that never reach the disk."""
    findings = with_rates(healthy(pace=only("disk2", pace)), RATE, kind).findings
    assert [finding.subject for finding in findings] == accused
    assert all("moved 400.0 MB/s for 1 s, faster than its 20.0 MB/s" in finding.summary for finding in findings)


@pytest.mark.parametrize(
    ("sampled", "accused"),
    [
        pytest.param(False, [], id="the host ran the DUT late"),
        pytest.param(True, ["disk2"], id="the DUT was run in time"),
    ],
)
def test_a_disk_that_catches_up_after_a_late_sample_is_not_too_fast(sampled: bool, accused: list[str]) -> None:
    """What it moved in 1.6 s is counted within 0.3 s, after no sample was taken or while samples show no progress."""
    held, freed = CUT + 1.0, CUT + 2.6
    bench = healthy(
        pace=only("disk2", lambda at: 0.0 if held <= at < freed else 6.3 if freed <= at < freed + 0.3 else 1.0)
    )
    if not sampled:
        made = bench.samples
        bench.samples = lambda: [one for one in made() if not held < (one.at or 0.0) < freed]  # type: ignore[method-assign]
    findings = [one for one in with_rates(bench, RATE).findings if "faster than its" in one.summary]
    assert [finding.subject for finding in findings] == accused


@pytest.mark.parametrize(("flush_writes", "accused"), [(0, True), (64, False)])
def test_stamps_that_are_not_flushed_must_reach_their_rate(flush_writes: int, accused: bool) -> None:
    slow = healthy(pace=lambda disk, at: 0.03 * RATE if disk == "disk2" else RATE)
    for disk in SURVIVORS:
        known: dict[str, Any] = {"run": 1, "device": 1, "session": 1, "extents": ((0, 2048),), "block": 128, "depth": 4}
        job = f"load-{disk}"
        slow.add(ev.LedgerBegun(at=11.0, disk=disk, job=job, order="sequential", flush_writes=flush_writes, **known))
    assert bool(with_rates(slow, RATE, argv=()).findings) is accused


@pytest.mark.parametrize(
    ("lost", "declared", "kind", "accused"),
    [
        pytest.param(0.0, RATE, "virtual", [], id="healthy"),
        pytest.param(0.03, RATE, "virtual", [], id="as much as healthy disks lose"),
        pytest.param(0.1, RATE, "virtual", ["disk2"], id="a tenth"),
        pytest.param(0.1, RATE, "ssh", [], id="a real disk"),
        pytest.param(0.1, RATE * 3 // 2, "virtual", [], id="bound by something else"),
    ],
)
def test_an_emulated_disk_that_is_bound_by_its_rate_keeps_it(
    lost: float, declared: int, kind: str, accused: list[str]
) -> None:
    slower = healthy(pace=only("disk2", between(CUT, STOPPED + 1.0, 1.0 - lost)))
    findings = with_rates(slower, declared, kind).findings
    assert [finding.subject for finding in findings] == accused
    assert all("of its baseline in the last" in finding.summary for finding in findings)
    assert all("at least 95% wanted" in finding.summary for finding in findings)


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
    wrote = int(RATE * (STOPPED - SETTLED))
    bench.replace(ev.LoadEnded, lambda event: event.disk == "disk2", longest=1.2, written_bytes=wrote)
    assert verdict(bench, check).verdict is Verdict.PASS


@pytest.mark.parametrize(("took", "many"), [(5.4, 1), (1.2, 0)])
def test_a_stamped_write_that_hangs_while_others_go_on(took: float, many: int) -> None:
    book = Book()
    hung = book.issue(0)
    for sector in range(1, 7):
        book.write(sector)
    book.complete(hung)
    hung.completed_at = hung.issued_at + took
    book.write(7)
    bench = healthy()
    on_record(bench, book, disk="disk2")
    for kind in (ev.LoadBegun, ev.LoadEnded):
        bench.replace(kind, lambda event: event.disk == "disk2", job="stamp1-disk2")
    found = [one.summary for one in bench.judge(kept_pace("disk2")).findings]
    assert found == ["a request of disk2 took 5.40 s (limit 5 s)"] * many


@BOTH
def test_a_load_that_meets_an_error(check: Check) -> None:
    bench = healthy()
    changes: dict[str, Any] = {"asked": False, "asked_at": None, "errno": 5, "message": "I/O error", "at": 20.0}
    bench.replace(ev.LoadEnded, lambda event: event.disk == "disk2", **changes)
    assert verdict(bench, check).verdict is Verdict.FAIL


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
