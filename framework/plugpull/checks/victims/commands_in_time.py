"""Whether the kernel had to give up commands of a disk that did not answer, how many, and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import judged_span
from plugpull.history.events import DiskAttached, DiskProperties
from plugpull.history.reader import Story
from plugpull.judging.results import Measurement
from plugpull.kernel.diagnosis.expected import Expected
from plugpull.kernel.diagnosis.scope import Scope
from plugpull.kernel.diagnosis.story_log import log_of

COUNTER = "timed_out_commands"
START = 10.0
"""Seconds after a disk was announced that count as its start-up."""
SHOWN = 8
"""The most places given as evidence."""
_LATE = re.compile(r"uas_eh_abort_handler|timing out command|hostbyte=(?:DID_TIME_OUT|0x0*3\b)")


class Late(NamedTuple):
    """A message about a command that timed out: DUT seconds, and the seconds since its disk was announced."""

    at: float
    since: float
    text: str


class CommandsInTime(Check, frozen=True, tag="commands_in_time"):
    """No command of ``disks`` timed out, neither while they started up nor later.

    They are counted by the SCSI layer, per attachment, and placed by the kernel's messages: so many seconds after the
    disk was announced. Timeouts that a cut explains do not count."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said, total = Collector(self, self.disks), 0
        for disk in self.disks:
            counted = _counted(story, disk)
            if counted is None:
                said.doubt(f"how many commands of {disk} timed out is not on record")
                continue
            late = list(_late(story, disk))
            number = max(counted, len(late))
            total += number
            said.measure(
                Measurement(name="commands timed out", subject=disk, value=number, unit="", n=1, better="down")
            )
            if number:
                evidence = tuple(f"{one.at:.2f} s, {one.since:.2f} s after it came: {one.text}" for one in late[:SHOWN])
                said.accuse(disk, _summary(disk, number, late), late[0].at if late else None, evidence)
        return said.judgement("no command timed out" if not total and said.clean else "")

    def claims(self, story: Story) -> Iterable[Claim]:
        begin, end = judged_span(story)
        for disk in self.disks:
            what = f"a command of {disk} timed out"
            yield Claim(what=what, evidence=(Evidence.LOG,), begin=begin, end=end, disk=disk)


def commands_in_time(disks: Disks) -> CommandsInTime:
    """No command of ``disks`` may time out. Timeouts are counted, and placed after the disk was announced."""
    return CommandsInTime(disk_names(disks))


def _summary(disk: str, number: int, late: list[Late]) -> str:
    what = f"{number} command{'s' * (number != 1)} of {disk} timed out"
    early = sum(one.since <= START for one in late)
    if not late:
        return f"{what}, which the kernel counted without a message"
    placed = f"the first {late[0].since:.1f} s after it was announced"
    return f"{what}, {placed}{f', {early} of them while it started up' if early else ''}"


def _counted(story: Story, disk: str) -> int | None:
    """Timed-out commands over all attachments that were not cut off: the last reading of each counter, which begins at
    0 (drivers/scsi/scsi_sysfs.c, iotmo_cnt). ``None`` if there is no reading."""
    last: dict[tuple[str, int], int] = {}
    for event in story.of(DiskProperties):
        value = event.values.get(COUNTER, "")
        if event.disk == disk and value:
            last[event.kname, event.diskseq] = int(value, 0)
    return sum(last.values()) if last else None


def _late(story: Story, disk: str) -> Iterator[Late]:
    """The messages about commands of a disk that timed out, apart from those that a cut explains."""
    scope = story.once(Scope)
    expected = Expected(story, scope)
    for line in log_of(story).own_timed:
        if not _LATE.search(line.body):
            continue
        about = scope.about(line.names, line.at)
        kind = line.event.kind if line.event is not None else ""
        if disk not in about.disks or expected.message(about, kind, line.at, line.body):
            continue
        came = _came(story.attachments(disk), line.at)
        yield Late(line.at, line.at - came if came is not None else 0.0, line.text)


def _came(attached: Iterable[DiskAttached], at: float) -> float | None:
    """When the disk was announced for the last time before ``at``."""
    times = [one.at for one in attached if one.at is not None and one.at <= at]
    return max(times, default=None)
