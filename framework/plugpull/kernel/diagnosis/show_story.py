"""The output of ``plugpull log --story``: what happened to each device, and the probable causes."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.kernel.diagnosis.culprit import hints
from plugpull.kernel.diagnosis.error_story import MOST, DeviceStory, ErrorStory, StoryStep
from plugpull.kernel.diagnosis.hint import Hint
from plugpull.kernel.diagnosis.show import WIDTH
from plugpull.plain import clean_line


def story_text(story: ErrorStory) -> Iterator[str]:
    """What happened to each device that had errors, in order; then the probable causes."""
    if story.cut_short:
        yield f"only the first {MOST} events are shown"
    for device_story in story.troubled:
        yield from device_text(device_story)
        yield ""
    found = hints(story)
    if not story.troubled:
        yield "no errors, neither of a device nor of the kernel itself"
    elif not found:
        yield "no evidence for a probable cause"
    for hint in found:
        yield from hint_text(hint)


def device_text(story: DeviceStory) -> Iterator[str]:
    """The device, then a line for each step. The second column is the time since the step before began, seconds."""
    yield clean_line(story.device.title)
    last: float | None = None
    for step in story.steps:
        yield f"  {_when(step, last)} {step.kind:{WIDTH}}{clean_line(step.text)}{_repeats(step)}"
        last = step.at


def _when(step: StoryStep, last: float | None) -> str:
    when = f"{step.at:12.6f}" if step.at is not None else f"line {step.place:<7}"
    since = f"+{step.at - last:.3f}" if step.at is not None and last is not None else ""
    return f"{when} {since:>10}"


def _repeats(step: StoryStep) -> str:
    if step.count == 1:
        return ""
    seconds = f" in {step.until - step.at:.3f} s" if step.at is not None and step.until is not None else ""
    return f"  ({step.count} times{seconds})"


def hint_text(hint: Hint) -> Iterator[str]:
    """The cause and how certain it is, the evidence, and what may help."""
    yield clean_line(f"{hint.confidence}: {hint.culprit} ({hint.subject})")
    for evidence in hint.evidence:
        yield f"    {clean_line(evidence)}"
    if hint.remedy:
        yield f"    to try: {hint.remedy}"
