"""Messages of the kernel log that accuse disks of the rig, and that no cut explains."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from plugpull.checks.accusation import Accusation
from plugpull.checks.dut.kernel_reports import by_the_host
from plugpull.checks.evidence import swapped
from plugpull.checks.victims.attentions import explained
from plugpull.history.events import ArrayMade, LoadBegun, LoadEnded
from plugpull.history.story import Story
from plugpull.kernel.catalogue.uncatalogued import harmless
from plugpull.kernel.diagnosis.expected import Expected, usual
from plugpull.kernel.diagnosis.scope import WARNING, About, Level, Scope
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

ERRORS = frozenset(
    {
        "ata.error",
        "block.error",
        "dm.error",
        "fs.error",
        "fs.readonly",
        "hcd.died",
        "hcd.error",
        "md.failure",
        "nvme.error",
        "pci.error",
        "scsi.error",
        "scsi.offline",
        "scsi.reset",
        "storage.cache-error",
        "thunderbolt.error",
        "uas.error",
        "usb.disconnect",
        "usb.enumeration-error",
        "usb.link-error",
        "usb.overcurrent",
        "usb.reset",
    }
)
"""Kinds of messages that never occur for an undisturbed disk."""
_REDIRECTED = re.compile(r"redirecting sector \d+ to (?:an)?other mirror")
"""It names the member of an array that is read instead of a failed one (drivers/md/raid1.c, raid1_read_request;
drivers/md/raid10.c, raid10_read_request), so that it accuses nobody."""
_NEW_ARRAY = re.compile(r"not clean -- starting background reconstruction")
"""An array that was just made is not clean: its members are synchronised (drivers/md/raid5.c, raid5_run)."""
MAKING = 15.0
"""Seconds before an array is on record as made in which the kernel may say so. It was 0.1 to 0.3 s on a busy DUT."""
SHOWN = 5
"""Kernel lines given as evidence at most."""

_PARTIAL = re.compile(r"\bUnaligned partial completion\b")
"""A disk transferred a part of a sector (drivers/scsi/sd.c, sd_done). The kernel says it at the level of a remark, and
old card readers do so in use, so that the catalogue has nothing to report; a disk of a rig may not."""


@dataclass(frozen=True)
class Complaint:
    """A kernel message that no cut explains. ``kind`` is the catalogue's, empty if it is not in there. ``doubt`` says
    why it accuses nobody: the DUT's host explains it."""

    message: TimedLine
    about: About
    kind: str
    doubt: str = ""

    @property
    def known(self) -> bool:
        return bool(self.kind)


def explained_by_cuts(story: Story) -> tuple[Expected, Scope]:
    """The messages that the cuts of a story explain, including those of disks that left because two outlets are
    swapped."""
    return story.once(_explained)


def _explained(story: Story) -> tuple[Expected, Scope]:
    scope = story.once(Scope)
    return Expected(story, scope, tuple((swap.left, swap.cut) for swap in swapped(story))), scope


def unexplained(story: Story, expected: Expected, scope: Scope) -> Iterator[Complaint]:
    """Every message that accuses disks of the rig, or a hub or controller above them, and that no cut explains."""
    for line in log_of(story).own_timed:
        at, event, partial = line.at, line.event, _PARTIAL.search(line.body)
        if not partial and ((event is None and line.level > WARNING) or (event and event.kind not in ERRORS)):
            continue
        about = scope.about(line.names, at)
        # An uncatalogued message must name the disk itself: hubs and controllers log many harmless messages.
        if not about.disks or (event is None and about.level is not Level.DISK):
            continue
        kind = "scsi.error" if partial else event.kind if event else ""
        if _REDIRECTED.search(line.body) or explained(story, line) or _just_made(story, about, line.body, at):
            continue
        if expected.message(about, kind, at, line.body) or (event is None and harmless(line.body)):
            continue
        if (event is None or usual(line.body)) and all(expected.coming_up(stay, at) for stay in about.stays):
            continue
        yield Complaint(line, about, kind, by_the_host(story, at, line.body, kind))


def _just_made(story: Story, about: About, body: str, at: float) -> bool:
    """Whether a message is that of an array that a scenario makes. One after another has the same name."""
    if about.level is not Level.ARRAY or not _NEW_ARRAY.search(body):
        return False
    made = (one.at for one in story.of(ArrayMade) if one.kname == about.name and one.at is not None)
    return any(at <= one <= at + MAKING for one in made)


def untimed(story: Story) -> Iterator[str]:
    """A doubt if the kernel logged errors at times that are not known: any disk may have had that name then."""
    lines = (line for line in log_of(story).own if line.at is None and line.event and line.event.kind in ERRORS)
    first = next(lines, None)
    if first is not None:
        yield f"when the kernel logged an error is not on record, so whom it is about is not known: {first.body}"


def by_disk(complaints: Iterator[Complaint]) -> dict[str, list[Complaint]]:
    """The complaints about each disk; one about a hub or a controller is about every disk behind it."""
    found: defaultdict[str, list[Complaint]] = defaultdict(list)
    for complaint in complaints:
        for disk in complaint.about.disks:
            found[disk].append(complaint)
    return found


def accusations_of(subject: str, complaints: list[Complaint]) -> list[Accusation | str]:
    """One accusation for all catalogued errors, one for all uncatalogued messages; and the doubts."""
    found: list[Accusation | str] = [one.doubt for one in complaints if one.doubt]
    for known in (True, False):
        lines = [one for one in complaints if one.known is known and not one.doubt]
        if lines:
            found.append(_accusation(subject, lines))
    return found


def _accusation(subject: str, lines: list[Complaint]) -> Accusation:
    first = lines[0]
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    what = "reported an error on" if first.known else "logged an uncatalogued warning about"
    level, name = first.about.level, first.about.name
    where = "" if level is Level.DISK or name == subject else f" ({level} {name})"
    return Accusation(
        subject=subject,
        summary=f"the kernel {what} {subject}{where}: {first.message.text}{more}",
        at=first.message.at,
        evidence=tuple(line.message.text for line in lines[:SHOWN]),
        kind=first.kind,
    )


def load_error(load: LoadBegun, ended: LoadEnded) -> Accusation:
    """The accusation that a load met an I/O error."""
    said = ended.message or f"errno {ended.errno}"
    what = f"the load on {load.disk} met an I/O error: {said}"
    return Accusation(subject=load.disk, summary=what, at=ended.at)
