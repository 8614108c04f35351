"""Disks that are not of the rig and were plugged in at it while a scenario ran."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.dut.rig_places import RigPlaces
from plugpull.history.events import Census, DiskAttached
from plugpull.history.story import Story


def strangers(story: Story) -> Iterator[str]:
    """A sentence for each. It shares the bus with the disks that are judged, or an enclosure has shown another unit."""
    begin = next((one.at for one in story.of(Census) if one.moment == "begin"), None)
    places = RigPlaces(story)
    if begin is None or not places.known:
        return
    known = {(one.place, one.serial) for one in story.all_attachments if one.at is None or one.at <= begin}
    for attached in story.of(DiskAttached):
        if (attached.place, attached.serial) in known:
            continue  # it came back with the disk beside it
        late = attached.at is not None and attached.at > begin
        if late and not attached.disk and places.has("block device", f"{attached.place} (serial {attached.serial})"):
            what = f"{attached.kname} (serial {attached.serial or 'unknown'})"
            yield f"a disk that is not of the rig came at {attached.at or 0.0:.2f} s at {attached.place}: {what}"
