"""Whether the kernel recovered a disk that had not answered: it works again, soon, and nobody else saw an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import cuts_of, seconds
from plugpull.checks.evidence import limit as limit_words
from plugpull.checks.record.on_record import missing_reports
from plugpull.checks.stalls import pause_of, stalls_of
from plugpull.checks.starved import awake
from plugpull.history.events import DiskStalled
from plugpull.history.story import Story
from plugpull.judging.results import Measurement
from plugpull.kernel.diagnosis.scope import place_of
from plugpull.kernel.diagnosis.story_log import log_of

WITHIN = 3.0
"""Seconds from the disk's first answer until it works again."""
EACH = 2
"""The most resets of its port for each time that it stood still."""
AROUND = 1.0
"""Seconds by which the kernel may log a reset after the disk had worked again: the log's clock is known less well."""


class Recovered(Check, frozen=True, tag="recovered"):
    """Each of ``disks`` that stood still on request was recovered: its kernel gave a command up, reset the disk, and
    reset it no more often than needed. The disk and its host are in service, and a command was completed, within
    ``within`` seconds of its first answer, and the pause that its driver makes on purpose.

    A disk that was cut meanwhile is left to ``returned``."""

    disks: tuple[str, ...]
    within: float = WITHIN

    def judge(self, story: Story) -> Judgement:
        said, slowest = Collector(self, self.disks), (0.0, self.within)
        for disk in self.disks:
            stalls = stalls_of(story, disk)
            if not stalls:
                said.doubt(f"{disk} did not stand still, so it had nothing to recover from")
            for stall in stalls:
                if not stall.spans:
                    said.doubt(f"when {disk} stood still is not on record")
                    continue
                said.take(*self._one(story, stall))
                if not _cut(story, stall):
                    took = _took(story, stall)
                    slowest = max(slowest, (took, self._limit(story, stall)))
                    said.measure(
                        Measurement(name="recovered after", subject=disk, value=round(took, 3), unit="s", better="down")
                    )
        worst = f"recovered (after {seconds(slowest[0])}, limit {slowest[1]:g} s)" if said.clean else ""
        return said.judgement(worst)

    def claims(self, story: Story) -> Iterable[Claim]:
        for disk in self.disks:
            for stall in stalls_of(story, disk):
                what = f"{disk} was recovered"
                evidence = (Evidence.LOG, Evidence.SAMPLES)
                yield Claim(what=what, evidence=evidence, begin=stall.at or 0.0, end=stall.until, disk=disk)

    def _one(self, story: Story, stall: DiskStalled) -> Iterator[Accusation | str]:
        disk = stall.disk
        resets = _resets(story, stall)
        if stall.given_up == 0:
            yield f"the kernel gave no command of {disk} up, so it had nothing to recover"
            return
        if stall.given_up is None and not resets:
            yield f"whether the kernel gave a command of {disk} up is not on record"
            return
        if _cut(story, stall):
            return
        yield from self._service(story, stall)
        most = EACH * len(stall.spans)
        if resets is not None and not resets and missing_reports(story):
            yield f"whether the kernel reset {disk} is not known: {missing_reports(story)[0]}"
        elif resets is not None and not resets:
            what = f"the kernel gave a command of {disk} up and did not reset it"
            yield Accusation(subject=disk, summary=what, at=stall.spans[-1][1])
        elif resets and len(resets) > most:
            what = f"the kernel reset {disk} {len(resets)} times (limit {most}) after it had not answered"
            yield Accusation(subject=disk, summary=what, at=stall.spans[-1][1], evidence=resets)

    def _limit(self, story: Story, stall: DiskStalled) -> float:
        return self.within + pause_of(story, stall)

    def _service(self, story: Story, stall: DiskStalled) -> Iterator[Accusation]:
        """Whether the disk works, and since when."""
        disk, took = stall.disk, _took(story, stall)
        for what, state in ((disk, stall.disk_state), (f"the SCSI host of {disk}", stall.host_state)):
            if state != "running":
                how = f"in state {state}" if state else "gone"
                text = f"{what} is {how} {seconds(took)} after the disk answered again"
                yield Accusation(subject=disk, summary=text, at=stall.until)
                return
        if not stall.worked:
            what = f"{disk} completed no command in the {seconds(took)} after it answered again"
            yield Accusation(subject=disk, summary=what, at=stall.until)
        elif took > self._limit(story, stall):
            what = f"{disk} worked only {seconds(took)} after it answered again"
            what = f"{what} {limit_words(self._limit(story, stall))}"
            yield Accusation(subject=disk, summary=what, at=stall.until)


def recovered(disks: Disks, within: float = WITHIN) -> Recovered:
    """Each of ``disks``, which stood still on request, must be recovered by its kernel within ``within`` seconds."""
    return Recovered(disk_names(disks), within)


def _took(story: Story, stall: DiskStalled) -> float:
    return awake(story, stall.spans[-1][1], max(stall.until, stall.spans[-1][1]))


def _cut(story: Story, stall: DiskStalled) -> bool:
    """Whether the disk was cut before it was recovered."""
    begins = (cut.off.commanded_at for cut in cuts_of(story, stall.disk))
    return any(at is not None and (stall.at or 0.0) <= at <= stall.until for at in begins)


def _resets(story: Story, stall: DiskStalled) -> tuple[str, ...] | None:
    """The kernel's lines about resets of the disk's port; ``None`` if it is not a USB disk or its log has no times."""
    stay = story.attachment_at(stall.disk, stall.at or 0.0)
    usb = "" if stay is None else place_of(stay.sysfs).usb
    log = log_of(story)
    if not usb or not log.timed:
        return None
    lines = log.own_between(stall.at or 0.0, stall.until + AROUND)
    return tuple(line.text for line in lines if line.body.startswith(f"usb {usb}: reset "))
