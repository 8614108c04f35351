"""Sectors that were read twice, without a write in between, and held two different things.

What looks wrong is read a second time. With a cut that took the disk's power, both of two versions may be right: only
one of them can be on the disk. An array is read from one member or another, so that what its members disagree about may
change without a fault; ``legs_hold`` judges that.
"""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.data.opinions import JudgedRound, every_round
from plugpull.history.events import ArrayMade
from plugpull.history.story import Story
from plugpull.integrity.oracle.wrong import content


def read_twice(story: Story) -> Iterator[Accusation | str]:
    """Accuse disks whose right sectors changed between two readings; doubt arrays."""
    arrays = {made.array for made in story.of(ArrayMade)}
    for one in every_round(story):
        if one.unlike:
            said = _sentence(one)
            disk = one.round.disk
            yield said if disk in arrays else Accusation(subject=disk, summary=said, at=one.round.at)


def _sentence(one: JudgedRound) -> str:
    first = one.unlike[0]
    count = sum(other.sectors for other in one.unlike)
    held = f"{content(first.one, first.first)} and then {content(first.other, first.first)}"
    return f"{count} sectors of {one.round.disk} changed between two readings: sector {first.first} held {held}"
