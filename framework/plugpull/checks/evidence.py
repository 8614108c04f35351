"""What several checks ask of the evidence: whether a cut is to be trusted, and words for both."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.history.cuts import Cut
from plugpull.history.events import KernelMessage
from plugpull.history.story import Story
from plugpull.kernel.classify import classify

SIGNS = frozenset({"uas.error", "scsi.error", "scsi.offline", "scsi.reset", "block.error", "storage.cache-error"})
"""Kernel messages about a disk that show that something happened to it."""


def cuts_of(story: Story, disk: str) -> tuple[Cut, ...]:
    return tuple(cut for cut in story.cut_records if disk in cut.armed.victims)


def not_executed(cut: Cut) -> str:
    """Why nothing can be concluded from this cut, as a sentence; empty if the switch did what it was told."""
    return f"{cut.armed.point} was not cut: {cut.off.doubt}" if cut.off.doubt else ""


def by_effect(cut: Cut) -> str:
    """What to say of a cut whose switch cannot be asked what it did; empty where it was asked."""
    return "no read-back: verified by its effect alone" if cut.off.read_back is None else ""


def ineffective(story: Story, cut: Cut, disk: str, until: float) -> str:
    """Why the cut seems to have cut nothing, as a sentence; empty if something shows that it did.

    To be asked about a disk that stayed on the kernel's list up to ``until``. A disk whose bytes kept moving was not
    cut. Neither was one of which no sign was seen: not an uevent, not a kernel message, not a load that stopped.
    """
    begin = cut.off.acknowledged_at or cut.off.commanded_at or 0.0
    ports = ", ".join(cut.off.ports)
    stayed = f"the switch {ports} said off, but {disk} stayed: the switch cut nothing"
    # I/O already under way may still be completed, or counted when it fails, shortly after the edge.
    late = begin + (until - begin) / 2
    moved_late = story.moved(disk, late, until)
    if moved_late is None:
        seen = _complained(story, cut, disk, until)
        return "" if seen else f"{stayed}, as far as can be seen without samples of it"
    if moved_late > 0:
        return f"{stayed} ({moved_late} bytes moved between {late:.2f} s and {until:.2f} s)"
    if story.load_at(disk, cut.off.commanded_at or begin) or _complained(story, cut, disk, until):
        return ""
    return f"{stayed}, or nothing shows that it did: no load was on {disk}"


def _complained(story: Story, cut: Cut, disk: str, until: float) -> bool:
    if cut.kernel_saw_at is not None:
        return True
    begin = (cut.off.commanded_at or 0.0) - cut.off.error
    attachment = story.attachment_at(disk, begin)
    if attachment is None:
        return False
    said = (classify(message.text) for message in _messages(story, begin, until))
    return any(event is not None and event.kind in SIGNS and event.subject == attachment.kname for event in said)


def _messages(story: Story, begin: float, end: float) -> Iterator[KernelMessage]:
    for message in story.of(KernelMessage):
        if message.at is not None and begin <= message.at <= end:
            yield message


def seconds(value: float) -> str:
    """A duration as people write it: enough digits for what a cut takes, no more."""
    return f"{value:.2f} s" if value < 100 else f"{value:.0f} s"


def limit(value: float) -> str:
    return f"(limit {value:g} s)"
