"""One paragraph on a log, to paste into a bug report: which device, what happened in which order, the probable cause
and what to try."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from plugpull.kernel.diagnosis.culprit import hints
from plugpull.kernel.diagnosis.device import Device
from plugpull.kernel.diagnosis.error_story import KERNEL, DeviceStory, ErrorStory, StoryStep
from plugpull.kernel.diagnosis.hint import Hint
from plugpull.kernel.diagnosis.log_reader import Readable
from plugpull.kernel.diagnosis.restarts import DIED
from plugpull.plain import clean_line

WIDTH = 76
"""Columns of the paragraph: mail programs do not wrap it again."""
MOST_DEVICES = 3
MOST_STEPS = 6
"""Devices and steps of each that are written out. What follows is only counted."""

_WORDS = {
    "usb.connect": "it was detected",
    "usb.disconnect": "it disconnected",
    "usb.reset": "it was reset",
    "usb.enumeration-error": "it failed to enumerate",
    "usb.link-error": "its link failed",
    "usb.overcurrent": "its port reported an over-current",
    "hcd.error": "the host controller reported errors",
    "hcd.died": "the host controller died",
    "uas.error": "UAS commands were aborted",
    "scsi.error": "SCSI commands failed",
    "scsi.reset": "it reported a reset",
    "scsi.offline": "it was taken offline",
    "storage.cache-error": "its write cache could not be flushed",
    "block.error": "I/O failed",
    "fs.error": "its filesystem reported errors",
    "fs.readonly": "its filesystem became read-only",
    "fs.recovery": "its filesystem was recovered",
    "md.failure": "the array reported failures",
    "md.recovery": "the array was rebuilt",
    "ata.error": "its link or a command failed",
    "nvme.error": "its controller or a command failed",
    "dm.error": "it reported errors",
    "pci.error": "PCI Express reported errors",
    "thunderbolt.error": "Thunderbolt reported errors",
    "hw.corrected": "hardware errors were corrected",
    "hw.undervoltage": "the supply voltage was too low",
    "cpu.hog": "a work item held a CPU for too long",
    "log.lost": "messages were lost",
}
_QUIET = frozenset({"storage.attach", "storage.cache", "storage.quirk"})
"""Kinds that are no part of a bug report unless they go wrong."""
_ONCE = frozenset({"hcd.died"})
"""Kinds of which one event is several lines."""
_PLAIN = (
    "almost", "probably", "possibly", "hub ", "root hub", "array", "controller", "hardware", "device mapper",
    "block device", "filesystem",
)  # fmt: skip
"""Words at the beginning of a sentence that are no names of devices."""
_VERSION = re.compile(rb"Linux version (\d\S+) \(")


def summary_of(story: ErrorStory, kernel: str = "") -> str:
    """The paragraph, wrapped. ``kernel`` is the release of the kernel, if known."""
    troubled = sorted(story.troubled, key=lambda one: (_corrected(one), _begins(one)))
    found = hints(story)
    if not troubled:
        return _wrapped(["No errors, neither of a device nor of the kernel itself.", _doubt(found)])
    parts = [f"Kernel {kernel}." if kernel else ""]
    parts += [_device(one) for one in troubled[:MOST_DEVICES]]
    if len(troubled) > MOST_DEVICES:
        names = ", ".join(one.device.name for one in troubled[MOST_DEVICES:])
        parts.append(f"There were also errors of {names}.")
    parts.append(_blame(found))
    parts.append(_remedy(found))
    return _wrapped(parts)


def _wrapped(parts: Sequence[str]) -> str:
    return textwrap.fill(clean_line(" ".join(part for part in parts if part)), WIDTH, break_on_hyphens=False)


class KernelNoting:
    """A log that is read through it, and the kernel's release in the first banner it had (init/version.c)."""

    def __init__(self, log: Readable) -> None:
        self._log = log
        self.kernel = ""

    def read(self, size: int, /) -> bytes:
        """The next bytes of the log."""
        block = self._log.read(size)
        found = None if self.kernel else _VERSION.search(block)
        if found:
            self.kernel = found.group(1).decode("ascii", "replace")
        return block


def _begins(story: DeviceStory) -> int:
    return min((step.place for step in story.steps if step.kind not in _QUIET), default=0)


def _corrected(story: DeviceStory) -> bool:
    """Whether the hardware corrected all of a device's errors itself: those of others matter more."""
    return all(step.kind == "hw.corrected" for step in story.steps if step.kind not in _QUIET)


def _device(story: DeviceStory) -> str:
    steps = [step for step in story.steps if step.kind not in _QUIET]
    if story.device.key == KERNEL:
        return f"The kernel{_since(steps)}: {_joined(_quoted(step) for step in steps[:MOST_STEPS])}."
    clauses = [_clause(step, first=not number) for number, step in enumerate(_merged(steps)[:MOST_STEPS])]
    rest = len(_merged(steps)) - len(clauses)
    more = f", and {rest} more" if rest > 0 else ""
    return f"{_capital(_named(story.device))}{_since(steps)}: {', then '.join(clauses)}{more}."


def _named(device: Device) -> str:
    known = (
        f"USB port {device.port}" if device.port else "",
        device.ids,
        f"driver {device.driver}" * bool(device.driver),
    )
    details = ", ".join(part for part in known if part)
    return f"{device.name} ({details})" if details and f"usb {device.port}" != device.name else device.title


def _since(steps: Sequence[StoryStep]) -> str:
    at = next((step.at for step in steps if step.at is not None), None)
    return f", from {at:.1f} s after boot" if at is not None else ""


def _merged(steps: Sequence[StoryStep]) -> list[StoryStep]:
    """The steps, with those of one kind that alternate with another combined: abort, reset, abort, reset."""
    merged: list[StoryStep] = []
    for step in steps:
        same = next((one for one in merged[-2:] if one.kind == step.kind), None)
        if same is None:
            merged.append(StoryStep(step.kind, step.place, step.at, step.until, step.text, step.count))
        else:
            same.count += step.count
            same.until = step.until
    return merged


def _clause(step: StoryStep, *, first: bool) -> str:
    what = _WORDS.get(step.kind, step.kind)
    count = f" {step.count} times" if step.count > 1 and step.kind not in _ONCE else ""
    return f'{what}{count} ("{_bare(step.text)}")' if first else f"{what}{count}"


def _quoted(step: StoryStep) -> str:
    again = f" ({step.count} times)" if step.count > 1 else ""
    return f"{_bare(step.text)}{again}" if step.kind == DIED else f'"{_bare(step.text)}"{again}'


def _joined(parts: Iterable[str]) -> str:
    return "; then ".join(parts)


def _blame(found: Sequence[Hint]) -> str:
    if not found:
        return "The log has no evidence for a cause."
    first = found[0]
    others = ", or ".join(_accused(hint) for hint in found[1:3])
    also = f" It may also be {others}." if others else ""
    return f"{_capital(first.confidence)} to blame: {_accused(first)}, because {_bare(first.evidence[0])}.{also}"


def _doubt(found: Sequence[Hint]) -> str:
    """What a log without errors has to say of a cause: a device that disconnected and came back by itself."""
    if not found:
        return ""
    return f"But look at {_accused(found[0])}: {_bare(found[0].evidence[0])}."


def _accused(hint: Hint) -> str:
    return hint.subject if hint.culprit in hint.subject else f"the {hint.culprit} ({hint.subject})"


def _bare(message: str) -> str:
    """A message without the full stop or comma it may end with."""
    return message.rstrip().rstrip(".,")


def _remedy(found: Sequence[Hint]) -> str:
    remedies = list(dict.fromkeys(hint.remedy for hint in found if hint.remedy))
    if not remedies:
        return ""
    return f"To try, on the kernel's command line: {remedies[0]}."


def _capital(text: str) -> str:
    """Names of devices stay as they are."""
    return text[:1].upper() + text[1:] if text.startswith(_PLAIN) else text
