"""Whether the kernel logged the resets that it was asked for. Without its messages, what else it did is not known."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.evidence import cuts_of
from plugpull.history.events import AgentLost, DiskAttached, DiskRecovered, DutDied
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.scope import place_of
from plugpull.kernel.diagnosis.story_log import log_of

AROUND = 1.0
"""Seconds around the resets in which the kernel logs them."""


def resets_unlogged(story: Story) -> Iterator[str]:
    """Resets on request that the kernel log does not have, a sentence per disk. It had 405 of 405, in 13
    scenarios on USB."""
    if bool(story.of(AgentLost)) or bool(story.of(DutDied)) or not log_of(story).timed:
        return
    for event in story.of(DiskRecovered):
        if not event.resets:
            yield f"{event.disk} was to be reset, and no reset of it was done"
            continue
        begin, end = (event.at or 0.0) - AROUND, event.until + AROUND
        stay = story.attachment_at(event.disk, event.at or 0.0)
        message = "" if stay is None else _message(stay)
        if not message or any((cut.off.commanded_at or 0.0) <= end for cut in cuts_of(story, event.disk)):
            continue
        logged = sum(line.body.startswith(message) for line in log_of(story).own_between(begin, end))
        if logged < event.resets - event.failed:
            done = event.resets - event.failed
            yield f"{event.disk} was reset {done} times on request, and the kernel logged {logged} resets of it"


def _message(stay: DiskAttached) -> str:
    """How the kernel logs a reset of this disk (drivers/usb/core/hub.c, usb_reset_and_verify_device;
    drivers/scsi/virtio_scsi.c, virtscsi_device_reset); empty where it need not."""
    place = place_of(stay.sysfs)
    if place.usb:
        return f"usb {place.usb}: reset "
    return f"sd {place.address}: device reset" if stay.driver == "virtio_scsi" else ""
