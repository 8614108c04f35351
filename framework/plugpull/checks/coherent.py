"""Whether the witnesses of one scenario contradict each other.

Two witnesses record which disks are attached: the kernel's announcements (``DiskAttached``, ``DiskDetached``), and the
agent's samples, which list every disk in ``/sys/block``. If the two disagree for long, a part of the record is missing,
doubled or wrong, and no conclusion from it is reliable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from plugpull.checks.base import Check, Judgement
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.load_ends import load_doubts
from plugpull.checks.log_arrivals import arrivals_doubted
from plugpull.checks.order import disorder
from plugpull.checks.witness_times import witnesses_apart
from plugpull.history.events import DiskAttached, DiskDetached, Sampled
from plugpull.history.reader import Story

APART = 1.0
"""Seconds by which the two may differ. The sampler runs ten times a second, and removing a disk takes time."""

LATE = 0.3
"""Seconds for which a sample may still list a removed disk. Uevents are read late, so this is rare: 3 samples in 372
scenarios, by 0.01 s at most."""
DYING = 2.0
"""Seconds before the removal of a disk in which its counters may be wrong because it is being torn down."""
BY_NOBODY = 4 << 20
"""Bytes that a disk may transfer before a request is completed: the kernel counts the parts of requests."""
FEW = 5
"""Consecutive samples with less than half of the earlier count that are not a reading error."""

Key = tuple[str, int]
"""Kernel name and diskseq."""


class Coherent(Check, frozen=True, tag="coherent"):
    """Each attachment begins once and ends once, and the samples list a disk exactly while it is attached."""

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        witnesses = (*_pairs(story), *_samples(story), *_counters(story))
        for what in (*witnesses, *disorder(story), *load_doubts(story), *arrivals_doubted(story)):
            said.doubt(f"the record contradicts itself: {what}")
        said.doubt(*witnesses_apart(story))
        return said.judgement()

    def claims(self, story: Story) -> Iterable[Claim]:
        """Results about cuts are not valid if the agent was lost or the clocks contradict each other."""
        times = [event.at for event in story.events if event.at is not None]
        if story.cut_records and times:
            what = "the times on record are right"
            yield Claim(what=what, evidence=(Evidence.CLOCK, Evidence.UEVENTS), begin=min(times), end=_last(story))


def coherent() -> Coherent:
    """The witnesses of a scenario must not contradict each other."""
    return Coherent()


def _last(story: Story) -> float:
    """The time of the last event from the agent. Each check asks for later evidence itself."""
    return story.heard_until or 0.0


def _pairs(story: Story) -> Iterator[str]:
    attached = Counter(_key(event) for event in story.all_attachments if event.diskseq)
    yield from (f"{kname} (diskseq {seq}) was attached {n} times" for (kname, seq), n in attached.items() if n > 1)
    detached = Counter(_key(event) for event in story.of(DiskDetached) if event.diskseq)
    yield from (f"{kname} (diskseq {seq}) was removed {n} times" for (kname, seq), n in detached.items() if n > 1)
    for key in detached:
        if key not in attached and any(event.kname == key[0] for event in story.all_attachments):
            yield f"{key[0]} (diskseq {key[1]}) was removed and had never been attached"
    yield from _same_name(story)


def _same_name(story: Story) -> Iterator[str]:
    """Kernel names that two disks had at the same time."""
    for later in story.of(DiskAttached):
        for earlier in story.all_attachments:
            if earlier is later or earlier.kname != later.kname or not _before(earlier, later):
                continue
            gone = story.detached_at(earlier)
            if gone is None or gone > (later.at or 0.0) + APART:
                holder = earlier.disk or "a disk"
                yield f"{later.kname} was announced at {later.at or 0.0:.2f} s while {holder} had that name"


def _before(one: DiskAttached, two: DiskAttached) -> bool:
    return one.at is None or (two.at is not None and one.at < two.at)


def _samples(story: Story) -> Iterator[str]:
    stays = {_key(one): one for one in story.all_attachments if one.diskseq}
    known = {kname for kname, _ in stays}
    samples = [event for event in story.of(Sampled) if event.at is not None]
    for key, stay in stays.items():
        yield from _stay(story, stay, key, samples)
    for event in samples:
        for kname, counters in event.disks.items():
            if kname in known and counters.diskseq and (kname, counters.diskseq) not in stays:
                yield f"{kname} (diskseq {counters.diskseq}) was sampled and had never been attached"


def _counters(story: Story) -> Iterator[str]:
    """An attachment's counters only grow (Documentation/admin-guide/iostats.rst); they start again with the next."""
    ends = {_key(event): event.at for event in story.of(DiskDetached) if event.at is not None}
    most: dict[Key, int] = {}
    below: Counter[Key] = Counter()
    for event in sorted(story.of(Sampled), key=lambda event: event.at or 0.0):
        for kname, counters in event.disks.items():
            key, moved = (kname, counters.diskseq), counters.moved
            if event.at is None or event.at > ends.get(key, float("inf")) - DYING:
                continue
            below[key] = below[key] + 1 if moved < most.get(key, 0) / 2 else 0
            if counters.diskseq and below[key] == FEW:
                yield f"the counters of {kname} went back at {event.at or 0.0:.2f} s"
            most[key] = max(moved, most.get(key, 0))
    yield from _by_nobody(story)


def _by_nobody(story: Story) -> Iterator[str]:
    """Bytes that were transferred although no request was completed."""
    since: dict[Key, tuple[int, int]] = {}
    seen: set[Key] = set()
    for event in story.of(Sampled):
        for kname, counters in event.disks.items():
            key = (kname, counters.diskseq)
            completed, moved = since.setdefault(key, (counters.completed, counters.moved))
            if counters.completed != completed or counters.moved < moved:
                since[key] = (counters.completed, counters.moved)
            elif completed and counters.moved > moved + BY_NOBODY and key not in seen:
                seen.add(key)
                yield f"{kname} transferred {counters.moved - moved} bytes and completed no request"


def _stay(story: Story, stay: DiskAttached, key: Key, samples: Sequence[Sampled]) -> Iterator[str]:
    """Whether one attachment is in the samples from its beginning to its end, and not after it."""
    gone = story.detached_at(stay)
    name = f"{stay.disk or 'a disk'} ({key[0]})"
    first = stay.at if stay.at is not None else float("-inf")
    absent = [event.at or 0.0 for event in samples if not _lists(event, key)]
    inside = [at for at in absent if first + APART < at and (gone is None or at < gone - APART)]
    if len(inside) > 1 and inside[-1] - inside[0] > APART:
        yield f"{name} was attached and is not in the samples from {inside[0]:.2f} s on"
    if gone is not None:
        late = [event.at or 0.0 for event in samples if (event.at or 0.0) > gone + LATE and _lists(event, key)]
        if len(late) > 1:
            yield f"{name} was removed at {gone:.2f} s and was sampled until {late[-1]:.2f} s"


def _lists(event: Sampled, key: Key) -> bool:
    counters = event.disks.get(key[0])
    return counters is not None and counters.diskseq == key[1]


def _key(event: DiskAttached | DiskDetached) -> Key:
    return event.kname, event.diskseq
