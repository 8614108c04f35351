"""Disks that did not come back while a contact that bounces was closed for long."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.contact import contacts
from plugpull.checks.evidence import limit, seconds
from plugpull.checks.starved import awake
from plugpull.history.cut import Cut
from plugpull.history.story import Story


def missed_contacts(story: Story, cut: Cut, disk: str, within: float) -> Iterator[Accusation]:
    """An accusation if the points of a cut were closed for longer than a disk may take to come back, and it took
    longer. A disk that had not left by then need not come back."""
    for closed in contacts(story, cut):
        if awake(story, closed.begin, closed.end) <= within + cut.error:
            continue
        there = story.attachment_at(disk, closed.begin)
        back = (
            one.at for one in story.attachments(disk) if one.at is not None and closed.begin <= one.at <= closed.end
        )
        came = next(back, closed.end)
        took = awake(story, closed.begin, came)
        if there is None and took > within + cut.error:
            what = f"{disk} was away for {seconds(took)} {limit(within)} while {cut.armed.point} was closed"
            yield Accusation(subject=disk, summary=what, at=came)
            return
