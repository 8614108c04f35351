"""Whether the kernel changed the timeouts of a disk's commands.

On an emulated DUT nobody but plugpull sets them after a disk has come: there is no udev.
"""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.limits import bench_kind
from plugpull.checks.record.disk_record import TIMEOUTS, set_by_nobody
from plugpull.checks.victims.property_words import WITHOUT_UDEV
from plugpull.history.story import Story


def other_timeouts(story: Story) -> Iterator[Accusation]:
    """Timeouts at the end that a disk did not come with, and that plugpull did not set."""
    for name in TIMEOUTS if bench_kind(story) == "virtual" else ():
        for read, value, given in set_by_nobody(story, name):
            if read.moment == "end":
                how = WITHOUT_UDEV[name].format(now=value, was=" or ".join(sorted(given)))
                what = f"{read.disk} {how} at the end, and nobody set it to that"
                yield Accusation(subject=read.disk, summary=what, at=read.at)
