"""A returned disk whose counters say that it was written: by whom is on record, or it is a contradiction."""

from __future__ import annotations

import msgspec
import pytest
from stories import BACK, LAST, VICTIM, healthy

from plugpull.checks.record.order import disorder
from plugpull.history import events as ev
from plugpull.history.reader import Story


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("recorded", [True, False])
def test_a_disk_that_was_written_after_its_return(recorded: bool, missing: bool) -> None:
    """By a load, which is on record or not. Samples that lack the disk after that load change nothing."""
    begin, end = BACK + 0.5, BACK + 1.5
    story = healthy().story()
    kname, number = story.attachments(VICTIM)[-1].kname, story.attachments(VICTIM)[-1].diskseq

    def sample(event: ev.Sampled) -> ev.Sampled:
        at = event.at or 0.0
        if at < BACK or kname not in event.disks:
            return event
        written = int(min(max(0.0, at - begin), end - begin) * (1 << 20))
        mine = event.disks[kname]._replace(written_bytes=written, diskseq=number)
        gone = missing and end + 0.3 < at < end + 0.6
        others = {name: one for name, one in event.disks.items() if name != kname}
        return msgspec.structs.replace(event, disks=others if gone else {**others, kname: mine})

    events = [sample(event) if isinstance(event, ev.Sampled) else event for event in story.events]
    if recorded:
        job = f"second-{VICTIM}"
        events.append(ev.LoadBegun(at=begin, disk=VICTIM, job=job, mode="write", block=65536, depth=4, span=1 << 20))
        events.append(ev.LoadEnded(at=end, disk=VICTIM, job=job, asked=True, written_bytes=1 << 20, longest=0.1))
        events.sort(key=lambda event: LAST if event.at is None else event.at)
    what = [one for one in disorder(Story(story.begun, tuple(events), rig=story.rig)) if "wrote to it" in one]
    assert [f"{VICTIM} by" in one and "after its return" in one for one in what] == ([] if recorded else [True])
