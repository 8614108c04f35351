"""Which cuts hold a disk off together, and one cut in place of all of them.

Cuts can overlap: a hub is cut while the cable of a disk behind it is out. The first of them removes the disk, the
others find it gone, and it returns when the last of them is healed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from plugpull.history.attachments import Attachments
from plugpull.history.cut import Cut

SOON = 1.0
"""Seconds after the first cut within which another one counts as one of those that remove the disk: the kernel takes
that long to notice."""

Hold = tuple[Cut, ...]
"""Cuts that hold one disk off together, in the order of their commands."""


def holds_of(attachments: Attachments, disk: str, cuts: Iterable[Cut]) -> tuple[Hold, ...]:
    """The cuts of ``disk`` by hold. A cut that may not have been made is on its own.

    Cuts made at once, and the edges of a contact that bounces, have a ``group`` and are one hold.
    """
    own = [cut for cut in cuts if disk in cut.armed.victims]
    known = sorted((cut for cut in own if cut.off.commanded_at is not None), key=begin_of)
    holds: list[list[Cut]] = [[cut] for cut in own if cut.off.commanded_at is None]
    for cut in known:
        hold = next((hold for hold in reversed(holds) if _joins(attachments, disk, cut, hold)), None)
        if hold is None:
            holds.append([cut])
        else:
            hold.append(cut)
    return tuple(tuple(hold) for hold in holds)


def _joins(attachments: Attachments, disk: str, cut: Cut, hold: Sequence[Cut]) -> bool:
    """Whether ``cut`` was made while the disk was off by ``hold``."""
    if any(cut.armed.group and cut.armed.group == one.armed.group for one in hold):
        return True
    first, begin = hold[0].off.commanded_at, begin_of(cut)
    if first is None or not cut.executed or not all(one.executed for one in hold):
        return False
    if begin >= max(map(end_of, hold)):
        return False
    return attachments.at(disk, begin) is None or begin - first <= SOON


def begin_of(cut: Cut) -> float:
    """When it was commanded off, DUT seconds; infinity if that is not on record."""
    return math.inf if cut.off.commanded_at is None else cut.off.commanded_at


def end_of(cut: Cut) -> float:
    """When it was commanded on, DUT seconds; infinity if it was not."""
    return math.inf if cut.on.commanded_at is None else cut.on.commanded_at


def last_of(hold: Hold) -> Cut:
    """The cut that was healed last, or never."""
    return max(hold, key=end_of)


def is_mixed(hold: Hold) -> bool:
    """Whether a hold has cuts that were not made at once."""
    return len({cut.armed.group or -cut.armed.cut for cut in hold}) > 1


def until_of(disk: str, hold: Hold, cuts: Iterable[Cut]) -> float:
    """When the next cut of ``disk`` after a hold began, DUT seconds; infinity if none did. The end of a permanent cut,
    which is healed on the way out, ends its hold as well."""
    begin = min(map(begin_of, hold))
    others = (one for one in cuts if disk in one.armed.victims and one not in hold)
    later = (begin_of(one) for one in others if begin_of(one) > begin)
    return min((*later, *(cut.until for cut in hold)), default=math.inf)


def joined(hold: Hold) -> Cut:
    """One cut in place of a hold: it begins with the first and ends with the last."""
    first = hold[0]
    return replace(first, on=last_of(hold).on, joined=hold[1:])
