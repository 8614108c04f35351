"""What the kernel's errors say about the part at fault: the order of events per device, and the probable cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import dropwhile

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.evidence import judged_span
from plugpull.checks.survivors.undisturbed import before_teardown
from plugpull.history.reader import Story
from plugpull.kernel.diagnosis.culprit import hints
from plugpull.kernel.diagnosis.error_story import DeviceStory, ErrorStory, StoryStep, story_of_history
from plugpull.kernel.diagnosis.expected import usual
from plugpull.kernel.diagnosis.hint import Hint

COMING_UP = frozenset({"usb.connect", "storage.attach", "storage.cache"})
"""Kinds of messages with which a device comes up, before its first error."""
SHOWN = 12
"""The most steps of a device that are given as evidence."""


class NoCulprit(Check, frozen=True, tag="no_culprit"):
    """The kernel reported no error of a device of the rig that no cut explains.

    For each device with errors, a finding gives the order and the spacing of its events, from the filesystem down to
    the bus. For each probable cause, a finding names it with its evidence: errors always at one place of a disk are the
    medium's; scattered ones of several disks behind one kind of bridge are the bridge's; at one port, the cable's or
    the hub's."""

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        errors = story_of_history(before_teardown(story))
        said.take(*(_of_device(one) for one in errors.troubled), *_hinted(errors))
        return said.judgement("no errors to explain" if said.clean else "")

    def claims(self, story: Story) -> Iterable[Claim]:
        begin, end = judged_span(story)
        yield Claim(what="a device had errors", evidence=(Evidence.LOG,), begin=begin, end=end)


def no_culprit() -> NoCulprit:
    """No device may have errors. If one has, the findings say in which order they came, and what is probably at
    fault."""
    return NoCulprit()


def _of_device(device: DeviceStory) -> Accusation:
    known = [step for step in device.steps if step.at is not None]
    steps = list(dropwhile(lambda step: step.kind in COMING_UP or usual(step.text), known))
    order = "; then ".join(_step(step, before) for before, step in zip([None, *steps], steps, strict=False))
    first = steps[0] if steps else None
    return Accusation(
        subject=device.device.identity or device.device.name,
        summary=f"{device.device.title} had errors: {order}",
        at=first.at if first is not None else None,
        evidence=tuple(step.text for step in device.steps[:SHOWN]),
    )


def _step(step: StoryStep, before: StoryStep | None) -> str:
    """One step with the time since the one before it began, seconds."""
    when = f"at {step.at:.2f} s" if before is None else f"{(step.at or 0.0) - (before.at or 0.0):.3f} s later"
    times = f" ({step.count} times)" if step.count > 1 else ""
    return f"{step.kind} {when}{times}"


def _hinted(errors: ErrorStory) -> Iterator[Accusation]:
    for hint in hints(errors):
        yield Accusation(subject=hint.subject, summary=_worded(hint), at=None, evidence=hint.evidence)


def _worded(hint: Hint) -> str:
    remedy = f" (to try: {hint.remedy})" if hint.remedy else ""
    return f"{hint.confidence} at fault: {hint.culprit} of {hint.subject}{remedy}"
