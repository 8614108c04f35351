"""Whether what was recorded has contents. A census that could not count anything looks like one that found nothing.

The two ends of a scenario are counted and read in the same way, so what one of them lacks is missing evidence. A kind
of which nothing was found is on record as an empty list.
"""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.checks.record.watched import recorded
from plugpull.checks.victims.properties import undivided
from plugpull.history.events import Census, DiskProperties, DutDied, DutReady, DutState
from plugpull.history.story import Story

FIELDS = {
    "boot_id": "its boot id",
    "kernel": "its version",
    "modules": "its modules",
    "memory": "its memory",
    "interrupts": "its interrupts",
}
"""The wording of the parts of a ``DutState``. Pressure is recorded by some kernels only, and not judged."""
ALWAYS = frozenset({"boot_id", "kernel", "memory"})
"""Those that every kernel has. One without modules is in use as well."""
STAYED = 3.0
"""Seconds for which a disk that was just announced must stay, so that all of it was read."""
READ = frozenset({"read_ms", "read_error"})
"""Properties that not every look has: they are of short reads."""
BINDING = frozenset({"driver"})
"""Properties that may be missing: 23 of 6,154 healthy records were read before the driver was bound."""


def missing_contents(story: Story) -> Iterator[str]:
    """What records lack that others of the same kind have, a sentence each."""
    yield from _censuses(story)
    yield from _states(story)
    yield from _another_kernel(story)
    yield from _properties(story)


def _censuses(story: Story) -> Iterator[str]:
    taken = story.of(Census)
    kinds = dict.fromkeys(kind for census in taken for kind in census.things)
    lines = dict.fromkeys(line for census in taken for line in census.memory)
    if taken and not kinds and recorded(story, "state"):
        yield "the censuses counted nothing, not even USB root hubs"
    for census in taken:
        missing = [kind for kind in kinds if kind not in census.things]
        missing += [f"{line} in /proc/meminfo" for line in lines if line not in census.memory]
        if not census.slab and any(other.slab for other in taken):
            missing.append("what its caches hold")
        if missing:
            yield f"the census of {census.at or 0.0:.2f} s ({census.moment}) lacks {', '.join(missing)}"


def _states(story: Story) -> Iterator[str]:
    states = story.of(DutState)
    for state in states:
        has = [name for name in FIELDS if name in ALWAYS or any(getattr(other, name) for other in states)]
        missing = [FIELDS[name] for name in has if not getattr(state, name)]
        if missing:
            yield f"the state of the kernel at the {_end(state)} lacks {', '.join(missing)}"


def _end(state: DutState) -> str:
    return "beginning" if state.moment == "begin" else "end"


def _another_kernel(story: Story) -> Iterator[str]:
    """A kernel or boot that is not the one whose agent answered. Other checks report a DUT that died."""
    if story.of(DutDied):
        return
    ready: DutReady | None = None
    for event in (*story.before, *story.among(DutReady, DutState)):
        if isinstance(event, DutReady):
            ready = event
        elif isinstance(event, DutState) and event.moment == "begin" and ready is not None:
            if not ready.kernel:
                yield "which kernel the DUT's agent runs on is not on record"
            for name in ("kernel", "boot_id"):
                one, two = getattr(ready, name), getattr(event, name)
                if one and two and one != two:
                    yield f"the DUT's {FIELDS[name][4:]} was {one} when its agent answered, and {two} at the beginning"


def _properties(story: Story) -> Iterator[str]:
    """Properties that one look at a disk has and another does not: of 1,383 scenarios in none. Right after a disk was
    attached, it may go again while it is read, so single properties may be missing then."""
    names: dict[str, dict[str, None]] = {}
    looks = [read for read in story.of(DiskProperties) if read.moment != "attached" or _stayed(story, read)]
    for read in looks:
        names.setdefault(read.disk, {}).update({name: None for name, value in read.values.items() if value})
    for read in looks:
        missing = [name for name in names[read.disk] if name not in READ and not read.values.get(name)]
        missing = [name for name in missing if name not in BINDING or read.moment == "end"]
        if (not read.values or missing) and undivided(story, read):
            what = ", ".join(missing) or "all of its properties"
            yield f"the properties of {read.disk} at {read.at or 0.0:.2f} s ({read.moment}) lack {what}"


def _stayed(story: Story, read: DiskProperties) -> bool:
    """Whether a disk was there long enough to be read."""
    at = read.at or 0.0
    stay = story.attachment_at(read.disk, at)
    gone = None if stay is None else story.detached_at(stay)
    cuts = (cut.off.commanded_at for cut in story.cuts_of(read.disk))
    return (gone is None or gone > at + STAYED) and not any(at <= (off or at) <= at + STAYED for off in cuts)
