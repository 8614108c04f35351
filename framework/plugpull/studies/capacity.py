"""What the path to a disk can carry, and rates that are higher than that."""

from __future__ import annotations

from typing import NamedTuple

from plugpull.checks.collector import Collector
from plugpull.checks.limits import bench_kind
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion
from plugpull.measure.estimate import Estimate
from plugpull.studies.figures import interval, rate
from plugpull.studies.places import parts_of

LINKS = {"1.5": 0.15e6, "12": 1.216e6, "480": 53.25e6, "5000": 500e6, "10000": 1212e6, "20000": 2424e6}
"""Bytes per second that a USB link of so many Mb/s can carry: 19 packets of 64 bytes per frame of 1 ms at full speed,
13 of 512 bytes per microframe at high speed (USB 2.0, 5.8.4); 8b/10b coding at 5 Gb/s and 128b/132b above (USB 3.2)."""
MARGIN = 1.05
"""A rate is impossible if its whole interval is above the capacity by this factor."""


class Capacity(NamedTuple):
    """``limit`` in bytes per second, and the part of the rig that is limited."""

    limit: float
    part: str


def capacity(story: Story, disks: tuple[str, ...]) -> Capacity | None:
    """The most that these disks can transfer together; ``None`` if nothing limits all of them as far as is known.

    A virtual bench has the limits of its rig file: QEMU does not enforce the speed of emulated links. A real disk has
    the speed of its link.
    """
    if bench_kind(story) == "virtual":
        return _declared(story, disks)
    limits = []
    for disk in disks:
        attached = next(iter(story.attachments(disk)), None)
        limit = LINKS.get(attached.speed) if attached is not None else None
        if limit is None:
            return None
        limits.append(limit)
    speed = story.attachments(disks[0])[0].speed
    part = f"the {speed} Mb/s link of {disks[0]}" if len(disks) == 1 else f"the links of {', '.join(disks)}"
    return Capacity(sum(limits), part)


def impossible(story: Story, disks: tuple[str, ...], mode: str, found: Estimate, said: Collector) -> None:
    """Accuse the disks, and conclude, if they moved more than their path can carry. The rates are from the kernel's
    own counters of completed requests: data that is counted there cannot have reached a disk any faster."""
    most = capacity(story, disks)
    lowest = found.mean if found.low is None else found.low
    if most is None or lowest <= MARGIN * most.limit:
        return
    subject = ", ".join(disks)
    text = (
        f"{subject}: a {mode} rate of {rate(found.mean)} is impossible, {most.part} can carry {rate(most.limit)}. "
        "The requests were reported as completed without reaching the disk."
    )
    said.accuse(subject, text, evidence=(interval(found),))
    said.conclude(
        Conclusion(
            kind="impossible-rate",
            subject=subject,
            text=text,
            value=round(found.mean, 3),
            unit="B/s",
            evidence=(f"measured: {interval(found)}", f"{most.part}: {rate(most.limit)}"),
        )
    )


def _declared(story: Story, disks: tuple[str, ...]) -> Capacity | None:
    own = {str(one.get("name")): one.get("rate") for one in story.rig.get("disk", ())}
    limits = [(float(part.rate), part.name) for part in parts_of(story) if part.rate and set(disks) <= set(part.disks)]
    rates = [own.get(disk) for disk in disks]
    if all(rates):
        limits.append((float(sum(rate or 0 for rate in rates)), f"the declared rate of {', '.join(disks)}"))
    return Capacity(*min(limits)) if limits else None
