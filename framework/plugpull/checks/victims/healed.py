"""Disks that a permanent cut took, that were restored when the scenario ended, and did not come back."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.evidence import limit as limit_words
from plugpull.checks.evidence import mates_of, seconds
from plugpull.checks.limits import bench_kind, returned_within
from plugpull.checks.starved import awake
from plugpull.history.cut import Cut
from plugpull.history.events import AgentLost, DiskMoved, DutDied, Edge, Healed, RigFault, ScenarioError
from plugpull.history.story import Story

BENCH_WAITS = 20.0
"""Seconds that the bench waits for such disks, by its own clock (``dut/ending.py``, ``BACK_WITHIN``)."""
GRANTED = 0.6
"""The share of that time that the host must have granted the DUT."""
LEAST = 1.5
"""Seconds, by what the host granted, in which more than half of all emulated disks came back. The record of a scenario
ends when its disks are back (``dut/ending.py``), so one that lacks a disk for longer says something."""


def not_back(story: Story) -> Iterator[Accusation | str]:
    """An accusation or a doubt for each. A record of an older version that ends soon after the restoring says
    nothing."""
    if story.among(AgentLost, DutDied) or not story.sample_times:
        return
    absent = {event.disk for event in story.of(DiskMoved)}
    absent |= {str(defect.get("disk", "")) for defect in story.rig.get("defect", ())}
    for healed in story.of(Healed):
        for cut in story.cut_records if healed.ok and healed.at is not None else ():
            for disk in cut.armed.victims if _restored(story, cut, healed) else ():
                if disk not in absent and not _there(story, disk, healed.at or 0.0):
                    yield from _missing(story, cut, disk, healed.at or 0.0)


def _restored(story: Story, cut: Cut, healed: Healed) -> bool:
    outlets = {f"{edge.switch}.{edge.port}" for edge in story.of(Edge) if edge.cut == cut.armed.cut}
    return cut.armed.permanent and bool(outlets) and outlets <= set(healed.ports)


def _there(story: Story, disk: str, at: float) -> bool:
    """Whether a disk was attached at ``at`` or later, or before the record began only."""
    stays = story.attachments(disk)
    return not stays or any((story.detached_at(one) or float("inf")) > at for one in stays)


def _missing(story: Story, cut: Cut, disk: str, at: float) -> Iterator[Accusation | str]:
    end = story.sample_times[-1]
    within = returned_within(story, disk, mechanism=cut.armed.mechanism, together=len(mates_of(story, cut)))
    took = awake(story, at, end)
    what = f"{disk} was restored at {at:.2f} s and did not come back"
    if took > within:
        yield Accusation(subject=disk, summary=f"{what} within {seconds(took)} {limit_words(within)}", at=at)
    elif took > LEAST and _waited_for(story, end - at, took):
        # The bench waits for it, and ended all the same: what it waited for is not on record as long as it was.
        yield Accusation(subject=disk, summary=f"{what} before the scenario ended", at=at)
    elif took > LEAST and (end - at > within or bench_kind(story) == "virtual"):
        yield f"{what} in the {seconds(end - at)} until the record ends"


def _waited_for(story: Story, recorded: float, took: float) -> bool:
    """Whether the record ends earlier than that of a bench that waits for the disk, and nothing had stopped it: the
    disk did not come. On a slow host the bench waits for long, and the DUT runs little."""
    stopped = bool(story.among(ScenarioError, RigFault)) or story.ended is None
    return bench_kind(story) == "virtual" and not stopped and recorded < BENCH_WAITS and took > GRANTED * recorded
