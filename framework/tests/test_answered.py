"""Requests in flight of which none is completed, by the kernel's own count."""

from __future__ import annotations

import msgspec
import pytest
from stories import CUT, LAST, SURVIVORS, VICTIM, Bench, healthy
from test_pace_excused import slow_host

from plugpull.checks import answered
from plugpull.history import events as ev
from plugpull.history.story import Story

DISK = SURVIVORS[0]


def story(bench: Bench, begin: float, end: float, disk: str = DISK, *, completing: bool = False) -> Story:
    """The bench's story, in which a disk has two writes in flight from ``begin`` to ``end``."""
    pace = bench.pace
    if not completing:
        bench.pace = lambda one, at: 0.0 if one == disk and begin <= at < end else pace(one, at)
    made = bench.story()
    attached = next(event for event in made.all_attachments if event.disk == disk)
    events: list[ev.Event] = []
    for number, event in enumerate(made.events):
        if isinstance(event, ev.Sampled) and attached.kname in event.disks:
            inside = begin <= (event.at or 0.0) < end
            counters = event.disks[attached.kname]._replace(
                writes=number if completing or not inside else 7, writes_in_flight=2 if inside else 0
            )
            event = msgspec.structs.replace(event, disks={**event.disks, attached.kname: counters})
        events.append(event)
    return Story(made.begun, tuple(events), rig=made.rig)


def test_healthy_disks_answer() -> None:
    judgement = healthy().judge(answered())
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_requests_in_flight_of_which_none_is_completed() -> None:
    (finding,) = answered().judge(story(healthy(), 18.0, 21.6)).findings
    assert finding.subject == DISK
    assert finding.summary.startswith(f"{DISK} completed nothing for 3.")
    assert finding.at == pytest.approx(18.0, abs=0.06)


def test_a_short_wait_and_requests_that_are_completed() -> None:
    assert answered().judge(story(healthy(), 18.0, 20.5)).findings == ()
    assert answered().judge(story(healthy(), 12.0, 24.0, completing=True)).findings == ()


LIFTED_BEFORE, LOWERED_AFTER, LIFTED_LATER = (17.0, 16 << 20), (18.2, None), (24.0, 16 << 20)


@pytest.mark.parametrize(
    ("rate", "lifts", "many"),
    [
        (1 << 20, (), 0),
        (8 << 20, (), 1),
        (None, (), 1),
        (1 << 20, (LIFTED_BEFORE,), 1),
        (1 << 20, (LIFTED_BEFORE, LOWERED_AFTER), 1),
        (1 << 20, (LIFTED_LATER,), 0),
    ],
)
def test_a_large_request_holds_an_emulated_disk_up_for_as_long_as_its_rate_asks(
    rate: int | None, lifts: tuple[tuple[float, int | None], ...], many: int
) -> None:
    """mkfs zeroes 4 MiB with one request, which the disk completes at once, and a read then waits for 4 s; but not if
    the disk was faster meanwhile."""
    bench = healthy()
    bench.pace = lambda disk, at: 0.0
    bench.add(*(ev.RatesLifted(at=at, to=to) for at, to in lifts))
    made, done = story(bench, 18.0, 22.0), False
    kname = next(event.kname for event in made.all_attachments if event.disk == DISK)
    events: list[ev.Event] = []
    for event in made.events:
        if isinstance(event, ev.Sampled) and kname in event.disks:
            done = done or (event.at or 0.0) >= 18.0
            counters = event.disks[kname]._replace(written_bytes=4 << 20 if done else 0)
            event = msgspec.structs.replace(event, disks={**event.disks, kname: counters})
        events.append(event)
    disks = [{**disk, "rate": rate} for disk in made.rig["disk"]]
    judged = Story(made.begun, tuple(events), rig={**made.rig, "dut": {"kind": "virtual"}, "disk": disks})
    assert len(answered().judge(judged).findings) == many


def at_the_end(seconds: float, *, scratch: bool = True, reading: bool = False) -> tuple[str, ...]:
    """What is said of requests that are in flight for the last seconds of the record."""
    bench = healthy()
    last = max(event.at or 0.0 for event in bench.story().of(ev.Sampled))
    if reading:
        bench.add(ev.ReadBackBegun(at=last - seconds, disk=DISK, job="readback9", session=1, extents=((0, 8),)))
    made = story(bench, last - seconds, last + 1.0)
    disks = [{**disk, "scratch": scratch} for disk in made.rig["disk"]]
    judgement = answered().judge(Story(made.begun, made.events, rig={**made.rig, "disk": disks}))
    assert judgement.findings == ()
    return judgement.unknowns


def test_requests_in_flight_when_the_record_ends() -> None:
    (doubt,) = at_the_end(1.0)
    assert doubt.startswith(f"{DISK} had requests in flight when the record ended, none completed for ")
    assert at_the_end(0.2) == ()
    assert at_the_end(1.0, reading=True) == (), "its data is still being read back"
    assert at_the_end(1.0, scratch=False) == (), "somebody else may use it"


def test_time_in_which_the_dut_was_starved_does_not_count() -> None:
    bench = healthy()
    bench.starved = ((18.1, 22.0),)
    made = story(bench, 18.0, 22.2)
    made = Story(
        made.begun,
        tuple(e for e in made.events if not (isinstance(e, ev.ClockMapped) and 18.1 < (e.at or 0.0) < 22.0)),
        rig=made.rig,
    )
    assert answered().judge(made).findings == ()


def on_a_slow_host(seconds: float, beside: float) -> tuple[int, int]:
    """How many findings and doubts there are if a disk completes nothing for ``seconds`` on a host that gives the DUT
    half of its CPU time, while the others go on at this share of their pace."""
    bench = healthy(pace=lambda disk, at: 4e6 * (beside if disk != DISK and at >= 18.0 else 1.0), until=LAST + 10.0)
    slow_host(bench, 0.5)
    judgement = answered().judge(story(bench, 18.0, 18.0 + seconds))
    return len(judgement.findings), len(judgement.unknowns)


def test_a_slow_host_explains_no_more_than_it_takes_from_all_disks() -> None:
    assert on_a_slow_host(2.0, 1.0) == (0, 0)
    assert on_a_slow_host(4.0, 1.0) == (0, 1), "others went on, and it is not known how much of it the host took"
    assert on_a_slow_host(6.9, 1.0)[0] == 1
    assert on_a_slow_host(4.0, 0.4) == (0, 0)
    assert on_a_slow_host(6.9, 0.1) == (0, 1), "longer than any host explains"


def test_a_disk_that_was_cut_need_not_answer() -> None:
    bench = healthy()
    bench.events = [event for event in bench.events if not (isinstance(event, ev.DiskDetached))]
    assert answered().judge(story(bench, CUT + 0.02, CUT + 9.0, VICTIM)).findings == ()
