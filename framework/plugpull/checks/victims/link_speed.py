"""Whether a disk comes back with a link as fast as before.

An enclosure that falls back from SuperSpeed to High Speed does so now and then: what counts is in how many returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.victims.moves import moved_between
from plugpull.history.attachments import same_identity, same_socket
from plugpull.history.cut import Cut
from plugpull.history.events import DiskAttached
from plugpull.history.story import Story

SHOWN = 5
"""The most returns given as evidence."""


def fallen_back(story: Story, disk: str, cuts: Iterable[Cut]) -> Iterator[Accusation]:
    """An accusation if a disk came back at a slower link than it had before in the same socket, with how often it did.

    What it can do is the fastest link that it had before the return."""
    returns = [now for cut in cuts if (now := _back(story, disk, cut)) is not None]
    slower = [(now, was) for now in returns if (was := _faster(story, now)) is not None]
    if not slower:
        return
    now, was = slower[0]
    often = (
        f" in {len(slower)} of {len(returns)} returns ({len(slower) / len(returns):.0%})" if len(returns) > 1 else ""
    )
    yield Accusation(
        subject=disk,
        summary=f"{disk} came back at {now.speed} Mb/s instead of {was.speed} Mb/s{often}",
        at=now.at,
        evidence=tuple(
            f"{one.at or 0.0:.2f} s: {one.kname} at {one.place}, {one.speed} Mb/s{f', {one.driver}' * bool(one.driver)}"
            for one, _ in slower[:SHOWN]
        ),
    )


def _back(story: Story, disk: str, cut: Cut) -> DiskAttached | None:
    """The attachment with which a disk returned from a cut."""
    at = cut.times(disk).returned_at
    return next((one for one in story.attachments(disk) if at is not None and one.at == at), None)


def _faster(story: Story, now: DiskAttached) -> DiskAttached | None:
    """The fastest earlier attachment of the disk in this socket, if its link was faster."""
    earlier = [
        was
        for was in story.attachments(now.disk)
        if (was.at or 0.0) < (now.at or 0.0)
        and same_identity(now, was)
        and same_socket(now, was)
        and moved_between(story, was, now) is None
    ]
    fastest = max(earlier, key=_speed, default=None)
    return fastest if fastest is not None and 0 < _speed(now) < _speed(fastest) else None


def _speed(attached: DiskAttached) -> float:
    """Mb/s; 0 if it is not on record."""
    try:
        return float(attached.speed)
    except ValueError:
        return 0.0
