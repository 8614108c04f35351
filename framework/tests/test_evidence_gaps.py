"""Evidence that is thinner than what is judged: a log that says it lost messages, samples too far apart, counters that
contradict each other. Each defect, beside the healthy case."""

from __future__ import annotations

import pytest
from stories import CUT, SURVIVORS, Bench, healthy

from plugpull.checks import answered, kept_pace, kernel_clean
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.reach import unreached
from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.log_record import log_doubts
from plugpull.checks.starved import gaps, lateness
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.story import Story

DISK = SURVIVORS[0]


# --- the kernel says that its log is not complete -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "INFO: lockdep is turned off.",
        "Future hung task reports are suppressed, see sysctl kernel.hung_task_warnings",
        "** 37 printk messages dropped **",
    ],
)
def test_a_log_that_says_it_is_not_complete(text: str) -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(at=CUT + 1, text=text, level=4))
    assert log_doubts(bench.story()) == (f"it says itself that it is not complete: {text}",)
    assert bench.unreached(kernel_clean())


def test_a_console_that_is_too_slow_loses_nothing_that_the_agent_read() -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(at=CUT + 1, text="** 37 printk messages dropped **", source="serial"))
    bench.add(ev.KernelMessage(at=CUT + 1, text="printk: 9 messages suppressed.", facility=3))
    assert log_doubts(bench.story()) == ()


# --- samples --------------------------------------------------------------------------------------------------------


def sampled(bench: Bench, begin: float, end: float, every: float) -> Story:
    """The story with one sample in ``every`` seconds of [begin, end]."""
    story, last, kept = bench.story(), 0.0, list[ev.Event]()
    for event in story.events:
        if isinstance(event, ev.Sampled) and begin <= (event.at or 0.0) <= end:
            if (event.at or 0.0) - last < every - 0.001:
                continue
            last = event.at or 0.0
        kept.append(event)
    return Story(story.begun, tuple(kept), rig=story.rig)


@pytest.mark.parametrize(
    ("begin", "end", "every", "said"),
    [
        (10.0, 26.0, 1.0, "have a hole of 1.00 s"),
        (CUT, CUT + 3.0, 1.2, "have a hole of 1.20 s"),
        (CUT, CUT + 3.0, 0.3, ""),
        (10.0, 26.0, 0.2, ""),
    ],
)
def test_samples_further_apart_than_the_stalls_that_are_judged(
    begin: float, end: float, every: float, said: str
) -> None:
    check, story = kept_pace([DISK]), sampled(healthy(), begin, end, every)
    doubts = unreached(story, check.claims(story))
    assert bool(doubts) == bool(said)
    assert all(said in doubt for doubt in doubts)


@pytest.mark.parametrize(("answers", "found"), [((), False), ((0.5,), True), ((0.5, 1.2), True)])
def test_samples_that_are_missing_do_not_excuse_themselves(answers: tuple[float, ...], found: bool) -> None:
    """An agent that answers once while no samples come is not held up by the host of its machine. The hole is longer
    than the stalls that are judged, by as much as it is long."""
    bench = healthy()
    bench.drop(ev.ClockMapped, lambda event: CUT < (event.at or 0.0) < CUT + 1.7)
    bench.starved = ((CUT, CUT + 1.7),)
    bench.add(*(ev.ClockMapped(at=CUT + at, controller=CUT + at + 600.0, error=0.002) for at in answers))
    story = bench.story()
    doubts = unreached(story, kept_pace([DISK]).claims(story))
    assert any("have a hole of 1." in doubt for doubt in doubts) is found


def counting(bench: Bench, begin: float, *, requests: bool, moving: bool) -> Story:
    """From ``begin`` on, the requests of a survivor are counted or not, and its bytes move or not. Two are in
    flight, until shortly before the end."""
    story = bench.story()
    last = max(event.at or 0.0 for event in story.events if isinstance(event, ev.Sampled))
    kname = next(event.kname for event in story.all_attachments if event.disk == DISK)
    events, was = list[ev.Event](), None
    for event in story.events:
        if isinstance(event, ev.Sampled) and kname in event.disks and (event.at or 0.0) >= begin:
            now = event.disks[kname]
            was = was or now
            read, written = (now.read_bytes, now.written_bytes) if moving else (was.read_bytes, was.written_bytes)
            reads, writes = (now.reads, now.writes) if requests else (was.reads, was.writes)
            made = Counters(
                now.diskseq, read, written, reads, writes, 0, 2 * ((event.at or 0.0) < last - 0.05), now.busy_ms
            )
            event = ev.Sampled(at=event.at, disks={**event.disks, kname: made}, cpu=event.cpu)
        events.append(event)
    return Story(story.begun, tuple(events), rig=story.rig)


def test_bytes_without_requests_contradict_each_other_and_accuse_nobody() -> None:
    story = counting(healthy(), CUT, requests=False, moving=True)
    doubts = coherent().judge(story).unknowns
    assert doubts
    assert all("and completed no request" in doubt for doubt in doubts)  # of what it answered, and of each direction
    assert answered().judge(story).findings == ()


def test_a_disk_that_neither_moves_nor_completes_hangs() -> None:
    story = counting(healthy(), CUT, requests=False, moving=False)
    assert coherent().judge(story).unknowns == ()
    assert answered().judge(story).findings


def test_bytes_with_their_requests_agree() -> None:
    assert coherent().judge(counting(healthy(), CUT, requests=True, moving=True)).unknowns == ()


# --- samples that are rarer on purpose ------------------------------------------------------------------------------


def thinned(*, said: bool, hole: tuple[float, float] = (0.0, 0.0)) -> Story:
    """A long story that was sampled once a second for most of its time, and nothing at all during ``hole``."""
    bench = healthy(until=230.0)
    if said:
        bench.add(ev.SamplingSet(at=30.0, interval=1.0), ev.SamplingSet(at=225.0, interval=0.1))
    story = sampled(bench, 30.0, 225.0, 1.0)
    begin, end = hole
    kept = [event for event in story.events if not (isinstance(event, ev.Sampled) and begin < (event.at or 0.0) < end)]
    return Story(story.begun, tuple(kept), rig=story.rig)


def test_samples_that_are_rarer_as_announced_are_no_gaps() -> None:
    story = thinned(said=True)
    assert (story.sample_interval, story.longest_interval) == (0.1, 1.0)
    assert gaps(story) == ()
    assert lateness(story, 100.0, 110.0) == 0.0
    assert not unreached(story, kept_pace(SURVIVORS).claims(story))


def test_samples_that_are_rarer_and_nobody_said_so() -> None:
    assert len(gaps(thinned(said=False))) > 100


@pytest.mark.parametrize("hole", [(100.0, 105.5), (226.0, 226.55)])
def test_a_hole_in_samples_is_found_beside_those_that_are_rarer(hole: tuple[float, float]) -> None:
    (gap,) = gaps(thinned(said=True, hole=hole))
    assert gap.begin <= hole[0] + 0.1
    assert gap.end >= hole[1] - 0.1


def test_a_hole_in_rarer_samples_leaves_a_claim_unproven() -> None:
    claim = Claim(what="all was well", evidence=(Evidence.SAMPLES,), begin=40.0, end=200.0)
    assert unreached(thinned(said=True), [claim]) == ()
    story = thinned(said=True, hole=(100.0, 120.0))
    (why,) = unreached(story, [claim])
    assert "a hole of 20.00 s" in why
