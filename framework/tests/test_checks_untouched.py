"""What ``untouched`` rests on: the kernel's count of a bystander has to cover all that was done on the bench."""

from __future__ import annotations

import msgspec
from stories import DISKS, healthy

from plugpull.checks import untouched
from plugpull.checks.reach import unreached
from plugpull.history import events as ev
from plugpull.history.story import Story

BYSTANDER = DISKS[2]


def story(until: float) -> Story:
    """A bystander that is sampled until then."""
    bench = healthy(checks=())
    whole = bench.story()
    kname = next(one.kname for one in bench.events if isinstance(one, ev.DiskAttached) and one.disk == BYSTANDER)
    events = []
    for event in whole.events:
        if isinstance(event, ev.Sampled) and event.at is not None and event.at > until:
            event = msgspec.structs.replace(event, disks={k: v for k, v in event.disks.items() if k != kname})
        events.append(event)
    return Story(whole.begun, tuple(events), rig=whole.rig)


def test_a_count_that_covers_everything_is_enough() -> None:
    whole = story(until=99.0)
    assert unreached(whole, untouched(BYSTANDER).claims(whole)) == ()


def test_a_count_that_ends_early_is_not() -> None:
    short = story(until=16.0)
    (said,) = unreached(short, untouched(BYSTANDER).claims(short))
    assert f"it is not known whether {BYSTANDER} was never written: the samples of {BYSTANDER} end at" in said


def test_a_look_from_outside_needs_no_count() -> None:
    short = story(until=16.0)
    seen = ev.SeenFromOutside(at=25.0, disk=BYSTANDER, ok=True, method="digest of the medium")
    looked = Story(short.begun, (*short.events, seen), rig=short.rig)
    assert unreached(looked, untouched(BYSTANDER).claims(looked)) == ()
