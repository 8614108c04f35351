"""What the kernel reported to the users of a disk that was gone: an I/O error, or something that is not true of it.

The block layer names the status of a failed request in the log (``blk_errors`` in block/blk-core.c). A request to a
disk that is gone fails with an I/O error or because the device is offline. Another status, such as a full disk,
misleads whoever reads the log, and the program that gets its errno (ENOSPC, EREMOTEIO, ENODATA, EBADE, EILSEQ,
EOPNOTSUPP, ENOMEM, EBUSY, EAGAIN, EINVAL).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from errno import EILSEQ, EIO, ENODATA, ENODEV, ENOMEDIUM, ENOSPC, ENXIO, EREMOTEIO, ESHUTDOWN, ETIMEDOUT

from plugpull.checks.accusation import Accusation
from plugpull.checks.dut.complaints import explained_by_cuts
from plugpull.checks.limits import bench_kind
from plugpull.history.events import LoadBegun, LoadEnded, Phase
from plugpull.history.story import Story
from plugpull.kernel.diagnosis.scope import Level
from plugpull.kernel.diagnosis.story_log import TimedLine, log_of

_UNSUPPORTED = r"op 0x[39]:"
"""Discarding and writing zeroes. A disk that cannot do either fails them whether it is there or not."""
_NEVER = (
    "critical space allocation",
    "critical nexus",
    "reservation conflict",
    "protection",
    "operation not supported",
    "kernel resource",
    "device resource",
    "nonblocking retry",
    "dm internal retry",
    "open zones exceeded",
    "active zones exceeded",
    "duration limit exceeded",
    "invalid",
)
"""What no cut explains on a real DUT either. A bridge that outlives its disk may report errors of target and medium."""
_STATUS = re.compile(
    rf"(?:^|: )(({'|'.join(('critical (?:target|medium)', *_NEVER))}) error), dev (?!.*{_UNSUPPORTED})"
)
_MEANS = {
    "critical space allocation": ", which means a full disk (ENOSPC)",
    "operation not supported": ", which means a disk that cannot do this (EOPNOTSUPP)",
    "kernel resource": ", which means that there is no memory (ENOMEM)",
    "device resource": ", which means a busy disk (EBUSY)",
    "nonblocking retry": ", which means that it may be tried again (EAGAIN)",
    "invalid": ", which means a wrong request (EINVAL)",
}
LOST = frozenset({EIO, ENXIO, ENODEV, ESHUTDOWN, ETIMEDOUT, ENOMEDIUM})
"""The errors that a program gets of a disk that is gone: of 81 loads on disks that were cut, 60 had ENODEV, 21 EIO."""
BEHIND_A_BRIDGE = frozenset({EREMOTEIO, ENODATA})
"""The same if a bridge outlives its disk, and reports errors of target and medium."""
SHOWN = 5
"""Kernel lines given as evidence at most."""


def failed_as_something_else(story: Story) -> Iterator[Accusation]:
    """One accusation for each disk whose requests failed with a misleading status while it was cut."""
    expected, scope = explained_by_cuts(story)
    faulty = {str(defect.get("disk", "")) for defect in story.rig.get("defect", ())}
    found: dict[str, list[tuple[TimedLine, str]]] = {}
    for line in log_of(story).own_timed:
        status = _STATUS.search(line.body)
        if status is None or (bench_kind(story) != "virtual" and status[2] not in _NEVER):
            continue
        about = scope.about(line.names, line.at)
        if about.level is Level.DISK and expected.message(about, line.event.kind if line.event else "", line.at):
            for disk in set(about.disks) - faulty:
                found.setdefault(disk, []).append((line, status[2]))
    for disk, lines in found.items():
        first, status_of = lines[0]
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        article = "an" if status_of[0] in "aio" else "a"
        what = f"the kernel failed a request to {disk}, which was cut, with {article} {status_of} error"
        yield Accusation(
            subject=disk,
            summary=f"{what}{_MEANS.get(status_of, '')} instead of an I/O error{more}",
            at=first.at,
            evidence=tuple(line.text for line, _ in lines[:SHOWN]),
            kind="block.error",
        )


def not_of_a_loss(story: Story, ended: LoadEnded) -> str:
    """A sentence if a load on a disk that was cut ended with an error that the loss of a disk does not cause."""
    known = LOST if bench_kind(story) in ("virtual", "") else LOST | BEHIND_A_BRIDGE
    if not ended.errno or ended.errno in known or _beyond_its_end(story, ended):
        return ""
    what = "wrong data" if ended.errno == EILSEQ else "not that of a disk that is gone"
    return f"the load on {ended.disk} ended with errno {ended.errno}, which is {what}"


def _beyond_its_end(story: Story, ended: LoadEnded) -> bool:
    """Whether the error is ENOSPC of a load that wrote to the disk itself. A disk that was just marked as dead has no
    size any more (block/genhd.c, ``__blk_mark_disk_dead``), and a write beyond the end of a block device fails with it
    (block/fops.c, ``blkdev_write_iter``); a read there reads nothing, and in a file it means a full filesystem."""
    if ended.errno != ENOSPC or any(phase.name == "mkfs" for phase in story.of(Phase)):
        return False
    loads = (load for load in story.of(LoadBegun) if (load.disk, load.job) == (ended.disk, ended.job))
    return any(load.mode not in ("read", "randread") for load in loads)
