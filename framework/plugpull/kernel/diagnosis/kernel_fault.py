"""Which report of the kernel accuses the kernel itself, and which accuses memory, hardware or somebody's request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plugpull.kernel.diagnosis.error_story import KERNEL
from plugpull.kernel.diagnosis.evidence import Case
from plugpull.kernel.diagnosis.happening import Happening
from plugpull.kernel.diagnosis.hint import Confidence, Hint
from plugpull.kernel.diagnosis.restarts import DIED

SOUND = frozenset({"fatal.oops", "fatal.bug", "warn.sanitizer", "warn.lockdep"})
"""Kinds of reports that are faults of the kernel: no device can make it use freed memory."""
_ON_REQUEST = re.compile(r"sysrq[ _](?:triggered|handle_crash)", re.IGNORECASE)
_STORAGE = re.compile(r"usb|uas|xhci|ehci|scsi|\bsd_|blk|block|hub_|\bmd_|raid|ext4|jbd2|xfs|btrfs|fat_|queue_rq")


def kernel_fault(case: Case) -> Iterator[Hint]:
    """The kernel's worst report, and one of each kind that has a cause of its own."""
    reports = [one for one in case.happenings if KERNEL in one.devices and one.kind != DIED]
    own = {one.place: hint for one in reports if (hint := _cause_of_its_own(one))}
    yield from {hint.culprit: hint for hint in reversed(own.values())}.values()
    asked = [place for place, hint in own.items() if hint.culprit == "SysRq"]
    rest = [one for one in reports if one.place not in own and not any(place < one.place for place in asked)]
    if not rest:
        return
    one = min(rest, key=_rank)
    # A task that waits is as often the fault of its device.
    waits = one.kind in {"fatal.hung-task", "fatal.lockup"}
    sure = Confidence.PROBABLE if one.kind in SOUND or (_ours(one) and not waits) else Confidence.POSSIBLE
    count = len(rest) - 1
    more = f" (and {count} more report{'s' if count > 1 else ''})" if count else ""
    evidence = [f"{one.body}{more}"] + ([f"in {' < '.join(one.frames)}"] if one.frames else [])
    yield Hint("kernel", "the kernel", sure, tuple(evidence))


def _cause_of_its_own(one: Happening) -> Hint | None:
    """The hint for a report that memory, hardware or somebody's request caused; ``None`` for any other."""
    if wanted := next((text for text in (one.body, *one.frames) if _ON_REQUEST.search(text)), ""):
        return Hint("SysRq", "SysRq (a crash on request)", Confidence.CERTAIN, (f"somebody triggered it: {wanted}",))
    if one.kind == "warn.memory":
        return Hint("memory", "memory (too little, or a process took too much)", Confidence.POSSIBLE, (one.body,))
    if one.kind == "warn.hardware":
        return Hint("hardware", "the machine's hardware", Confidence.PROBABLE, (one.body,))
    return None


def _ours(one: Happening) -> bool:
    return any(_STORAGE.search(frame) for frame in one.frames)


def _rank(one: Happening) -> tuple[bool, bool, bool, bool, int]:
    """The order of reports: faults of the kernel in storage first, then those that stop it."""
    sound, fatal = one.kind in SOUND, one.kind.startswith("fatal.")
    return not (sound and _ours(one)), not fatal, not sound, not _ours(one), one.place
