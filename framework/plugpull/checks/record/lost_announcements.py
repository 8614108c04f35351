"""Disks that came or went without a report of the agent on record: what rests on their absence accuses nobody.

Only a hole in the agent's numbers shows that a report was made and lost. Without one, a kernel that does not announce a
disk is at fault.
"""

from __future__ import annotations

from plugpull.checks.record.on_record import missing_reports
from plugpull.history.story import Story

APART = 1.0
"""Seconds for which samples and announcements may differ (``coherent.py``)."""


def lost_announcements(story: Story) -> tuple[str, ...]:
    """The disks of the rig of which an announcement or a removal is missing, by what was sampled; empty if no report of
    the agent is missing."""
    return story.once(_lost_announcements)


def _lost_announcements(story: Story) -> tuple[str, ...]:
    if not missing_reports(story):
        return ()
    names = [str(disk.get("name")) for disk in story.rig.get("disk", ())]
    lost = [name for name in names if not story.attachments(name)]
    known = {(stay.kname, story.number_of(stay)) for stay in story.all_attachments}
    times, last = story.samples, max(story.sample_times, default=0.0)
    for key, stream in times.streams.items():
        seen = [at for row in (stream.row(0), stream.row(len(stream) - 1)) if (at := times.time(row)) is not None]
        if key[1] and key not in known and seen:
            lost += [name for name in names if all(story.attachment_at(name, at) is None for at in seen)]
        owner = story.disk_at(key[0], seen[0]) if seen and key in known else None
        stay = story.attachment_at(owner, seen[0]) if owner else None
        if stay is not None and story.detached_at(stay) is None and seen[-1] < last - APART:
            lost.append(stay.disk)
    return tuple(dict.fromkeys(lost))
