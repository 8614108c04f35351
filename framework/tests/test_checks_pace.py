"""kept_pace: stalls, recovery and what must not be mistaken for either."""

from __future__ import annotations

import pytest
from stories import CUT, RATE, RESTORED, SETTLED, SURVIVORS, Bench, Pace, healthy
from watched import real

from plugpull.checks import Judgement, kept_pace
from plugpull.checks.starved import Span
from plugpull.checks.survivors.track import track
from plugpull.history import events as ev

CHECK = kept_pace(SURVIVORS, max_stall=2.0, min_ratio=0.7, recover_within=5.0)
"""With the limits that histories have which were recorded before limits had defaults by the kind of bench."""


def slowed(begin: float, end: float, factor: float, only: str = "disk2") -> Pace:
    return lambda disk, at: RATE * (factor if disk == only and begin <= at < end else 1.0)


def judged(bench: Bench) -> Judgement:
    return bench.judge(CHECK)


@pytest.mark.parametrize("mode", ["read", "write"])
def test_steady_survivors(mode: ev.LoadMode) -> None:
    judgement = judged(healthy(mode=mode))
    assert not judgement.findings
    assert not judgement.unknowns
    for survivor in judgement.survivors:
        assert survivor.baseline_bps == pytest.approx(RATE, rel=0.01)
        assert survivor.stall_s is not None
        assert survivor.stall_s <= 0.1
        assert survivor.recovery_s == 0
        assert survivor.final_ratio == pytest.approx(1, rel=0.02)


def test_a_long_stall_is_a_finding() -> None:
    judgement = judged(healthy(pace=slowed(CUT + 0.1, CUT + 3.1, 0)))
    (finding,) = judgement.findings
    assert finding.subject == "disk2"
    assert "stood still for" in finding.summary
    assert finding.at == pytest.approx(CUT + 0.1, abs=0.1)
    assert judgement.survivors[0].stall_s == pytest.approx(3.0, abs=0.1)
    assert judgement.survivors[1].stall_s == pytest.approx(0, abs=0.1)


def test_a_short_stall_is_measured_and_allowed() -> None:
    judgement = judged(healthy(pace=slowed(CUT + 0.1, CUT + 1.6, 0)))
    assert not judgement.findings
    assert judgement.survivors[0].stall_s == pytest.approx(1.5, abs=0.1)
    assert judgement.survivors[0].recovery_s == pytest.approx(1.3, abs=0.3)


def pausing(begin: float) -> Bench:
    """One disk stands still for half of the time from then on, for 0.45 s each. It has so many requests in flight that
    it could do so without a fault."""

    def pace(disk: str, at: float) -> float:
        return 0.0 if disk == "disk2" and at >= begin and (at - begin) % 0.9 < 0.45 else RATE

    bench = healthy(pace=pace)
    bench.replace(ev.LoadBegun, lambda event: event.disk == "disk2", depth=150)
    return bench


@pytest.mark.parametrize(("begin", "found"), [(CUT, 1), (SETTLED - 1.0, 0)], ids=["since the cut", "always"])
def test_many_pauses_are_a_finding_where_the_disk_did_not_make_them_before(begin: float, found: int) -> None:
    check = kept_pace(SURVIVORS, max_stall=0.7, all_stalls=1.4, min_ratio=0.1, recover_within=9.0)
    said = [one.summary for one in pausing(begin).judge(check).findings]
    assert ["stood still for" in one and "stalls" in one for one in said] == [True] * found


def test_a_disk_that_is_slowed_for_good_is_a_finding() -> None:
    judgement = judged(healthy(pace=slowed(CUT, 99, 0.5)))
    (finding,) = judgement.findings
    assert "did not get back to 70% of its 19.8 MB/s" in finding.summary
    assert judgement.survivors[0].recovery_s is None
    assert judgement.survivors[0].final_ratio == pytest.approx(0.5, abs=0.02)


def test_a_slow_recovery_is_a_finding() -> None:
    judgement = judged(healthy(pace=slowed(CUT, CUT + 6.5, 0.5)))
    assert "took 5.8" in judgement.findings[0].summary
    # A window of 1 s is at 70 % once it reaches 0.4 s beyond the end of the slow time.
    assert judgement.survivors[0].recovery_s == pytest.approx(5.9, abs=0.15)


def test_slowed_until_the_cable_is_back_and_soon_well() -> None:
    judgement = judged(healthy(pace=slowed(CUT, RESTORED + 1, 0.4)))
    assert not judgement.findings
    assert judgement.survivors[0].recovery_s == pytest.approx(2.6, abs=0.4)


def test_faster_for_want_of_the_dead_disk_is_fine() -> None:
    judgement = judged(healthy(pace=slowed(CUT, 99, 1.5)))
    assert not judgement.findings
    assert judgement.survivors[0].final_ratio == pytest.approx(1.5, abs=0.05)


def test_one_noisy_window_does_not_spoil_a_recovery() -> None:
    assert not judged(healthy(pace=slowed(20.0, 20.8, 0.1))).findings


def test_a_starved_sampler_is_not_a_stall() -> None:
    bench = healthy()
    bench.starved = ((18.0, 19.0),)
    judgement = judged(bench)
    assert not judgement.findings
    assert not judgement.unknowns


def test_a_sampler_starved_most_of_the_time_knows_nothing() -> None:
    bench = healthy()
    bench.starved = ((16.0, 17.5), (18.0, 19.5))
    judgement = judged(bench)
    assert not judgement.findings
    assert "the sampler was starved" in judgement.unknowns[0]


@pytest.mark.parametrize(("hole", "accused"), [(2.6, False), (0.0, True)], ids=["not sampled", "sampled"])
def test_what_a_real_dut_did_not_sample_accuses_no_disk(hole: float, accused: bool) -> None:
    """The disk stood still, and so did the sampler, while the agent answered: the DUT was busy, or the disk was."""
    bench = real(healthy(pace=slowed(18.0, 20.6, 0.0)))
    if hole:
        bench.starved = ((18.0, 18.0 + hole),)
        bench.add(ev.ClockMapped(at=19.4, controller=119.4, error=0.001))
    judgement = judged(bench)
    assert bool(judgement.findings) is accused
    assert accused or any("but nothing was sampled for" in doubt for doubt in judgement.unknowns)


def test_a_gap_that_could_hide_a_long_stall() -> None:
    bench = healthy(pace=slowed(17.0, 19.3, 0))
    bench.starved = ((17.0, 19.3),)
    judgement = judged(bench)
    assert not judgement.findings
    assert any("may hide a stall of disk2" in sentence for sentence in judgement.unknowns)
    assert not any("disk3" in sentence for sentence in judgement.unknowns)


def test_a_sampler_that_hangs_alone_does_not_excuse_a_disk() -> None:
    bench = healthy(pace=slowed(17.0, 19.8, 0))
    bench.starved = ((17.0, 19.8),)
    bench.add(ev.ClockMapped(at=18.0, controller=8.0, error=0.001))
    assert "disk2 stood still for 2.8" in judged(bench).findings[0].summary


def test_still_time_around_a_gap_belongs_together() -> None:
    samples = [(0.0, 0.0), (0.1, 5.0), (0.2, 5.0), (0.3, 5.0), (2.0, 5.0), (2.1, 5.0), (2.2, 9.0)]
    gap = (Span(0.3, 2.0),)
    (stall,) = track(samples, gap).stalls(1.0)
    assert stall.began == 0.1
    assert stall.seconds == pytest.approx(0.3)
    moved = [(t, b + 7 * (t >= 2.0)) for t, b in samples]
    assert [stall.seconds for stall in track(moved, gap).stalls(1.0)] == pytest.approx([0.2, 0.1])


def test_the_time_fio_takes_to_end_is_not_a_stall() -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk in SURVIVORS, asked_at=None, at=25.5)
    bench.pace = lambda disk, at: 0.0 if at > 24.0 else RATE
    assert not judged(bench).findings
    assert not judged(bench).unknowns
    bench.add(ev.Phase(at=24.0, name="stop"))
    assert not judged(bench).findings


def test_a_quiet_end_of_unknown_reason_is_not_passed() -> None:
    bench = healthy(pace=slowed(21.0, 99, 0))
    bench.replace(ev.LoadEnded, lambda event: event.disk in SURVIVORS, asked_at=None)
    judgement = judged(bench)
    assert "did not move for" in judgement.unknowns[0]
    bench.add(ev.Phase(at=24.0, name="stop"))
    assert "stood still for" in judged(bench).findings[0].summary


def test_a_survivor_that_met_an_error_is_a_finding() -> None:
    bench = healthy()
    bench.replace(
        ev.LoadEnded,
        lambda event: event.disk == "disk2",
        asked=False,
        asked_at=None,
        errno=5,
        message="I/O error",
        at=20.0,
    )
    assert "ended with an I/O error" in judged(bench).findings[0].summary


def test_a_survivor_that_went_away_is_a_finding() -> None:
    bench = healthy()
    bench.detach("disk2", 19.0)
    assert "though it is outside the blast radius" in judged(bench).findings[0].summary


def test_a_cut_made_before_there_was_a_load_is_left_aside() -> None:
    bench = healthy()
    bench.arm(10.7, cut=2, victims=())
    bench.switch("off", 10.75, cut=2)
    bench.switch("on", 10.8, cut=2)
    judgement = judged(bench)
    assert not judgement.findings
    assert not judgement.unknowns


def test_another_loads_end_is_not_taken_for_ones_own() -> None:
    bench = healthy(pace=slowed(18.0, 22.0, 0))
    bench.replace(ev.LoadEnded, lambda event: event.disk in SURVIVORS, asked_at=None)
    bench.add(ev.Phase(at=17.9, name="stop"), ev.Phase(at=24.0, name="stop"))
    assert "stood still for" in judged(bench).findings[0].summary


def no_load(bench: Bench) -> None:
    bench.drop(ev.LoadBegun, lambda event: event.disk != "disk2")


def no_settling(bench: Bench) -> None:
    bench.drop(ev.LoadSettled)


def settled_just_before(bench: Bench) -> None:
    bench.replace(ev.LoadSettled, at=CUT - 0.5)


def no_movement(bench: Bench) -> None:
    bench.pace = lambda disk, at: 0.0


def no_cut(bench: Bench) -> None:
    bench.drop(ev.Edge)


def no_samples(bench: Bench) -> None:
    bench.until = 10.0


def no_samples_after(bench: Bench) -> None:
    bench.until = CUT


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        (no_load, "disk2 had no load when a cut was made"),
        (no_settling, "had not settled"),
        (settled_just_before, "measured for only 0.50 s"),
        (no_movement, "did not move a byte"),
        (no_cut, "no cut was made"),
        (no_samples, "no samples of disk2"),
        (no_samples_after, "no samples of disk2 under load after"),
    ],
)
def test_without_its_evidence_it_does_not_pass(lacking: object, said: str) -> None:
    assert callable(lacking)
    bench = healthy()
    lacking(bench)
    judgement = judged(bench)
    assert not judgement.findings
    assert said in judgement.unknowns[0]


def test_watched_for_too_short_a_time() -> None:
    bench = healthy(pace=slowed(CUT, 99, 0.5), until=CUT + 3)
    bench.drop(ev.LoadEnded)
    judgement = judged(bench)
    assert not judgement.findings
    assert "was watched for only" in " ".join(judgement.unknowns)


def test_nobody_to_judge() -> None:
    assert healthy().judge(kept_pace(())).unknowns == ("kept_pace was asked about no disk",)
