"""Disks that were written while nothing on record wrote to them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from stories import CUT, SETTLED, STOPPED, SURVIVORS, Bench, healthy

from plugpull.checks.record.coherent import coherent
from plugpull.checks.record.strange_writes import strange_writes
from plugpull.history import events as ev
from plugpull.history.story import Story

DISK = SURVIVORS[0]
MORE = 122_880


def written(bench: Bench, at: float, disk: str = DISK) -> Story:
    """The story, in which the disk has more bytes written from ``at`` on."""
    made = bench.story()
    (stay,) = (one for one in made.all_attachments if one.disk == disk)
    events: list[ev.Event] = []
    for event in made.events:
        if isinstance(event, ev.Sampled) and stay.kname in event.disks and (event.at or 0.0) >= at:
            counters = event.disks[stay.kname]
            more = counters._replace(written_bytes=counters.written_bytes + MORE)
            event = replace(event, disks=event.disks | {stay.kname: more})
        events.append(event)
    return Story(made.begun, tuple(events), rig=made.rig)


def said(story: Story) -> list[str]:
    found = list(strange_writes(story))
    assert {f"the record contradicts itself: {one}" for one in found} <= set(coherent().judge(story).unknowns)
    return found


def test_disks_that_are_written_by_loads() -> None:
    for bench in (healthy(), healthy(mode="read"), healthy(mode="randrw")):
        assert said(bench.story()) == []


@pytest.mark.parametrize(
    ("at", "mode", "found"),
    [
        (SETTLED, "write", False),
        (STOPPED + 0.9, "write", False),
        (STOPPED + 1.5, "write", True),
        (SETTLED, "read", True),
        (CUT + 1.0, "read", True),
        (SETTLED, "randrw", False),
    ],
)
def test_a_disk_that_is_written_while_nothing_writes_to_it(at: float, mode: ev.LoadMode, found: bool) -> None:
    wanted = [f"{MORE} bytes were written to {DISK} while nothing on record wrote to it"]
    assert said(written(healthy(mode=mode), at)) == wanted * found


def test_between_two_loads() -> None:
    bench = healthy()
    bench.replace(ev.LoadEnded, lambda event: event.disk == DISK, at=14.0, asked_at=13.9)
    known: dict[str, Any] = {"mode": "write", "block": 65536, "depth": 4, "span": 1 << 20}
    bench.add(ev.LoadBegun(at=20.0, disk=DISK, job="again", **known))
    bench.add(ev.LoadEnded(at=22.0, disk=DISK, job="again", asked=True))
    bench.pace = lambda disk, at: 0.0
    assert said(written(bench, 17.0)) != []
    assert said(written(bench, 21.0)) == []


@pytest.mark.parametrize(
    "event",
    [
        ev.Phase(at=11.0, name="load"),
        ev.Phase(at=11.0, name="mkfs"),
        ev.Acted(at=12.5, disk=DISK, action="mkfs", ok=True, seconds=1.0),
    ],
    ids=["a fill", "a filesystem that is made", "a step on a filesystem"],
)
def test_what_else_writes(event: ev.Event) -> None:
    bench = healthy(mode="read")
    bench.add(event)
    assert said(written(bench, SETTLED)) == []
