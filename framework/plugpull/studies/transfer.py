"""Larger and larger requests: the largest size that a disk transfers without a stall, and how to enforce it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.events import LoadEnded, Measured
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.studies.figures import figure, time
from plugpull.studies.measured import READ_MODES, MeasuredRates, claims_of, held_up, series_of
from plugpull.studies.pauses import pauses

STALL = 2.0
"""Seconds without a completed request that are a stall."""
SLOWER = 4.0
"""And so many times as long as the request takes at the rate of smaller ones."""
REALLY = 0.02
"""The mean size of the requests that were really made may differ by this share from the intended one."""
COUNTED = 5
"""With fewer requests, their mean size says nothing."""
AGAIN = 2
"""Times that a size must have been safe when it was tried again."""
LEFT_OVER = 0.5
"""Seconds after a measurement in which an error of its load belongs to it."""
QUIRKS = ((120 << 10, "g"), (32 << 10, "m"))
"""Bytes that usb-storage transfers at most with a quirk, and its flag: US_FL_MAX_SECTORS_240 and _64
(drivers/usb/storage/usb.c, usb_stor_adjust_quirks; scsiglue.c)."""


def stall_limit(expected: float) -> float:
    """Seconds without a completed request that are a stall, if one takes about ``expected``."""
    return max(STALL, SLOWER * expected)


class Attempt(NamedTuple):
    """One size on one disk, tried once. ``failure`` says how it failed; empty if it did not. ``size`` is the mean size
    of the requests that were made, ``None`` if there were too few. ``spoilt``: it does not count."""

    block: int
    mode: str
    repeat: int
    failure: str
    size: float | None
    rate: float | None
    spoilt: str


class TransferSize(Check, frozen=True, tag="transfer_size"):
    """The largest transfer size at which each of ``disks`` does not stall is known."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        for disk in self.disks:
            self._disk(story, disk, attempts_of(story, disk), said)
        found = [f"{one.subject} up to {(one.value or 0) / 1024:g} KiB" for one in said.conclusions]
        return said.judgement("; ".join(found) or _largest(said))

    def claims(self, story: Story) -> Iterable[Claim]:
        return claims_of(story)

    def _disk(self, story: Story, disk: str, attempts: list[Attempt], said: Collector) -> None:
        if not attempts:
            said.doubt(f"no transfer size was tried on {disk}")
        by_size: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        for one in attempts:
            if one.rate is not None and not one.failure and not one.spoilt:
                by_size[one.mode, one.block].append(one.rate)
            said.doubt(_not_proved(disk, one))
        for (mode, block), rates in by_size.items():
            said.measure(figure(f"{mode} by size", disk, rates, {"block": block, "depth": 1}))
        failed = [one for one in attempts if one.failure and not one.spoilt]
        sweep = [one for one in attempts if one.repeat == 1]
        lost = [one for one in sweep if one.spoilt]
        said.doubt(*(f"{disk}: {one.block >> 10} KiB do not count: {one.spoilt}" for one in lost))
        if failed:
            # What failed only when it was tried again had hardly failed enough to be seen the first time.
            first = [one for one in failed if one.repeat == 1] or failed
            self._failing(story, disk, attempts, min(first, key=lambda one: one.block), said)

    def _failing(self, story: Story, disk: str, attempts: list[Attempt], first: Attempt, said: Collector) -> None:
        size = first.block
        tried = [one for one in attempts if not one.spoilt]
        at = [one for one in tried if one.block == size and one.mode == first.mode]
        failures = [one for one in at if one.failure]
        smaller = sorted({one.block for one in tried if one.block < size})
        if not smaller:
            said.doubt(f"{disk} fails with the smallest size, {size >> 10} KiB, too: {failures[0].failure}")
            return
        safe = [one for one in tried if one.block == smaller[-1]]
        why = f"{disk} failed with {size >> 10} KiB once ({failures[0].failure})"
        if sum(one.repeat > 1 for one in safe) < AGAIN or not any(one.repeat > 1 for one in at):
            said.doubt(f"{why}, which was not tried again")
        elif any(one.failure for one in safe):
            said.doubt(f"{why}, and with {smaller[-1] >> 10} KiB when that was tried again: it is not the size alone")
        elif not any(one.repeat > 1 for one in failures):
            said.doubt(f"{why}, and not when it was tried again")
        else:
            said.conclude(_conclusion(story, disk, smaller[-1], size, failures, len(at), len(safe)))


def transfer_size(disks: Disks) -> TransferSize:
    """The largest safe transfer size must be known: ``rig.sweep_sizes(disks)`` looks for it."""
    return TransferSize(disk_names(disks))


def attempts_of(story: Story, disk: str) -> list[Attempt]:
    """Every size that was tried on a disk, in order of time."""
    readings = [one for series in series_of(story) for one in series.readings if disk in one.event.disks]
    found: list[Attempt] = []
    usual = 0.0
    for reading in sorted(readings, key=lambda one: one.event.begin):
        expected = reading.event.block / usual if usual else 0.0
        found.append(_attempt(story, disk, reading, expected))
        usual = usual if found[-1].failure else found[-1].rate or usual
    return found


def _attempt(story: Story, disk: str, reading: MeasuredRates, expected: float) -> Attempt:
    """``expected``: about how long a request takes at the rate of the one before, seconds."""
    event = reading.event
    begin, end = event.begin, event.at or event.begin
    failure = _failure(story, disk, event, expected)
    # Whether requests completed is known on a busy host too. Its rate is not.
    spoilt = reading.spoilt if not reading.rates and not failure else ""
    rate = None if held_up(story, begin, end) else reading.rates.get(disk)
    return Attempt(event.block, event.mode, event.repeat, failure, _mean_size(story, disk, event), rate, spoilt)


def _mean_size(story: Story, disk: str, event: Measured) -> float | None:
    """Bytes of a request on average, from the counters; ``None`` if there were too few."""
    inside = story.readings(disk).between(event.begin, event.at or event.begin)
    if len(inside) < 2:
        return None
    one, two = inside[0].counters, inside[-1].counters
    if event.mode in READ_MODES:
        count, done = two.reads - one.reads, two.read_bytes - one.read_bytes
    else:
        count, done = two.writes - one.writes, two.written_bytes - one.written_bytes
    return done / count if count >= COUNTED else None


def _failure(story: Story, disk: str, event: Measured, expected: float) -> str:
    begin, end = event.begin, event.at or event.begin
    for ended in story.of(LoadEnded):
        if ended.disk == disk and not ended.asked and ended.at is not None and begin <= ended.at <= end + LEFT_OVER:
            return f"its load ended ({ended.message or 'no reason given'})"
    found = pauses(story, disk, begin, end, stall_limit(expected))
    return f"no request completed for {time(max(one.seconds for one in found))}" if found else ""


def _not_proved(disk: str, one: Attempt) -> str:
    if one.size is None or one.failure or abs(one.size / one.block - 1) <= REALLY:
        return ""
    return (
        f"requests of {one.block >> 10} KiB to {disk} were transferred as {one.size / 1024:.0f} KiB on average when "
        f"{one.mode}: their size is not proved"
    )


def _conclusion(
    story: Story, disk: str, safe: int, size: int, failures: list[Attempt], tried: int, passed: int
) -> Conclusion:
    mode = failures[0].mode
    return Conclusion(
        kind="largest-safe-size",
        subject=disk,
        text=f"The largest safe transfer size of {disk} is {safe >> 10} KiB. With {size >> 10} KiB it fails "
        f"({mode}: {failures[0].failure}). To enforce it: {remedy(story, disk, safe)}",
        value=float(safe),
        unit="bytes",
        evidence=(
            f"{size >> 10} KiB: {len(failures)} of {tried} attempts failed",
            f"{safe >> 10} KiB: none of {passed} attempts failed",
        ),
    )


def remedy(story: Story, disk: str, safe: int) -> str:
    """The udev rule that limits the transfers of a disk, and the quirk of usb-storage that does, if there is one."""
    attached = story.attachments(disk)
    serial = attached[-1].serial if attached else ""
    rule = f'ACTION=="add|change", SUBSYSTEM=="block", ENV{{ID_SERIAL_SHORT}}=="{serial}", '
    rule += f'ATTR{{queue/max_sectors_kb}}="{safe >> 10}"'
    flag = next((flag for most, flag in QUIRKS if most <= safe), "")
    if not attached or attached[-1].driver != "usb-storage" or not flag:
        return f"the udev rule {rule}"
    return f"the udev rule {rule}, or usb-storage.quirks=VID:PID:{flag} with the numbers that lsusb shows"


def _largest(said: Collector) -> str:
    tried = [float(one.parameters["block"]) for one in said.measurements]
    return f"no stall up to {max(tried) / 1024:g} KiB" if tried and not said.unknowns else ""
