"""Whether the witnesses of one scenario contradict each other.

Two witnesses record which disks are attached: the kernel's announcements (``DiskAttached``, ``DiskDetached``), and the
agent's samples, which list every disk in ``/sys/block``. If the two disagree for long, a part of the record is missing,
doubled or wrong, and no conclusion from it is reliable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from plugpull.checks.base import Check, Judgement
from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.collector import Collector
from plugpull.checks.data.opinions import sampler_stood_still
from plugpull.checks.limits import bench_kind
from plugpull.checks.raid.array_doubts import array_doubts
from plugpull.checks.record.companions import companions_missing
from plugpull.checks.record.counters_fit import counters_doubted
from plugpull.checks.record.counts import negative_counts
from plugpull.checks.record.disk_record import disk_doubts
from plugpull.checks.record.dut_record import dut_doubts
from plugpull.checks.record.impossible import impossible
from plugpull.checks.record.line_order import lines_out_of_order
from plugpull.checks.record.load_ends import load_doubts
from plugpull.checks.record.log_arrivals import arrivals_doubted
from plugpull.checks.record.number_order import numbers_fall
from plugpull.checks.record.order import disorder
from plugpull.checks.record.outside_counts import counted_otherwise, not_counted, read_otherwise
from plugpull.checks.record.resets_logged import resets_unlogged
from plugpull.checks.record.rig_record import rig_doubts
from plugpull.checks.record.said_twice import said_otherwise
from plugpull.checks.record.sample_holes import holes
from plugpull.checks.record.strange_writes import strange_writes
from plugpull.checks.record.study_record import study_doubts
from plugpull.checks.record.uevent_record import uevents_doubted
from plugpull.checks.record.witness_times import witnesses_apart
from plugpull.checks.victims.log_identity import other_speeds, reset_otherwise
from plugpull.history.events import DiskAttached, DiskDetached
from plugpull.history.reader import Story
from plugpull.history.samples import CounterStream, Key

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


class Coherent(Check, frozen=True, tag="coherent"):
    """Each attachment begins once and ends once, and the samples list a disk exactly while it is attached."""

    def judge(self, story: Story) -> Judgement:
        said = Collector(self)
        witnesses = (*_pairs(story), *_samples(story), *_counters(story))
        for what in (*witnesses, *disorder(story), *load_doubts(story), *arrivals_doubted(story)):
            said.doubt(f"the record contradicts itself: {what}")
        for what in (*rig_doubts(story), *other_speeds(story), *uevents_doubted(story), *array_doubts(story)):
            said.doubt(f"the record contradicts itself: {what}")
        for what in companions_missing(story):
            said.doubt(f"the record contradicts itself: {what}")
        for what in (*disk_doubts(story), *dut_doubts(story), *study_doubts(story), *negative_counts(story)):
            said.doubt(f"the record contradicts itself: {what}")
        for what in (
            *counted_otherwise(story),
            *not_counted(story),
            *read_otherwise(story),
            *counters_doubted(story),
            *sampler_stood_still(story),
        ):
            said.doubt(f"the record contradicts itself: {what}")
        for what in (*resets_unlogged(story), *reset_otherwise(story), *sampler_stood_still(story)):
            said.doubt(f"the record contradicts itself: {what}")
        for what in (
            *numbers_fall(story),
            *lines_out_of_order(story),
            *said_otherwise(story),
            *impossible(story),
            *strange_writes(story),
        ):
            said.doubt(f"the record contradicts itself: {what}")
        said.doubt(*witnesses_apart(story), *holes(story))
        return said.judgement()

    def claims(self, story: Story) -> Iterable[Claim]:
        """No result is valid if the clocks contradict each other, and none about cuts if the agent was lost."""
        if story.span:
            what, sources = "the times on record are right", (Evidence.CLOCK, Evidence.UEVENTS)
            needed = sources if story.cut_records else sources[:1]
            yield Claim(what=what, evidence=needed, begin=story.span[0], end=_last(story))


def coherent() -> Coherent:
    """The witnesses of a scenario must not contradict each other."""
    return Coherent()


def _last(story: Story) -> float:
    """The time of the last event from the agent. Each check asks for later evidence itself."""
    return story.heard_until or 0.0


def _pairs(story: Story) -> Iterator[str]:
    attached = Counter(key for event in story.all_attachments if (key := _key_of(story, event))[1])
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
    stays = {key: one for one in story.all_attachments if (key := _key_of(story, one))[1]}
    known = {kname for kname, _ in stays}
    for key, stay in stays.items():
        yield from _stay(story, stay, key)
    strange = (
        one for key, one in story.samples.streams.items() if one.kname in known and one.diskseq and key not in stays
    )
    for stream in strange:
        if any(story.samples.time(row) is not None for row in stream.rows()):
            yield f"{stream.kname} (diskseq {stream.diskseq}) was sampled and had never been attached"


def _counters(story: Story) -> Iterator[str]:
    """An attachment's counters only grow (Documentation/admin-guide/iostats.rst); they start again with the next."""
    ends = {_key(event): event.at for event in story.of(DiskDetached) if event.at is not None}
    emulated, known = bench_kind(story) == "virtual", {_key_of(story, one) for one in story.all_attachments}
    found: list[tuple[float, str]] = []
    for key, stream in story.samples.streams.items():
        # What never falls does not go back either, unless the samples are out of order.
        if stream.diskseq and not (stream.only_grows and story.samples.ordered):
            end = ends.get(key, float("inf")) - DYING
            found += _went_back(story, stream, end)
            if emulated and key in known:  # those of an array begin again when it is made
                found += _fell(story, stream, end)
    yield from dict.fromkeys(said for _, said in sorted(found, key=lambda one: one[0]))
    yield from (said for _, said in sorted(_by_nobody(story), key=lambda one: one[0]))


def _went_back(story: Story, stream: CounterStream, end: float) -> Iterator[tuple[float, str]]:
    """When the counters of an attachment fell, up to ``end``."""
    readings = ((story.samples.time(row), stream.moved(index)) for index, row in enumerate(stream.rows()))
    most = below = 0
    for at, moved in sorted(((at, moved) for at, moved in readings if at is not None), key=lambda one: one[0]):
        if at > end:
            break
        below = below + 1 if moved < most / 2 else 0
        if below == FEW:
            yield at, f"the counters of {stream.kname} went back at {at:.2f} s"
        most = max(moved, most)


def _fell(story: Story, stream: CounterStream, end: float) -> Iterator[tuple[float, str]]:
    """When a counter of bytes or requests of an emulated DUT was lower than before, up to ``end``: never, in 200,000
    samples. What is lower by more than half may be a reading error (``FEW``)."""
    times = ((story.samples.time(row), index) for index, row in enumerate(stream.rows()))
    most = (0, 0, 0, 0)
    for at, index in sorted((at, index) for at, index in times if at is not None and at <= end):
        now = stream.counters(index)[1:5]
        if sum(now[:2]) < sum(most[:2]) / 2:
            continue
        if any(two < one for one, two in zip(most, now, strict=True)):
            yield at, f"the counters of {stream.kname} went back at {at:.2f} s"
            return
        most = now


def _by_nobody(story: Story) -> Iterator[tuple[int, str]]:
    """Bytes that were transferred although no request was completed."""
    for stream in story.samples.streams.values():
        # Only where no request was completed since the sample before can bytes be nobody's.
        if stream.only_grows and all(stream.moved(index) == stream.moved(index - 1) for index in stream.quiet):
            continue
        since = (stream.completed(0), stream.moved(0))
        for index in range(len(stream)):
            completed, moved = stream.completed(index), stream.moved(index)
            if completed != since[0] or moved < since[1]:
                since = (completed, moved)
            elif completed and moved > since[1] + BY_NOBODY:
                yield stream.row(index), f"{stream.kname} transferred {moved - since[1]} bytes and completed no request"
                break


def _stay(story: Story, stay: DiskAttached, key: Key) -> Iterator[str]:
    """Whether one attachment is in the samples from its beginning to its end, and not after it."""
    gone, table = story.detached_at(stay), story.samples
    name = f"{stay.disk or 'a disk'} ({key[0]})"
    first = stay.at if stay.at is not None else float("-inf")
    stream = table.streams.get(key) or CounterStream(key)
    last = float("inf") if gone is None else gone - APART
    between = stream.absent(table.between(first + APART, last))
    inside = [at for row in between if first + APART < (at := table.at[row]) and (gone is None or at < last)]
    if len(inside) > 1 and inside[-1] - inside[0] > APART:
        yield f"{name} was attached and is not in the samples from {inside[0]:.2f} s on"
    if gone is not None:
        later = (table.time(row) or 0.0 for row in stream.rows_after(gone + LATE, table))
        late = [at for at in later if at > gone + LATE]
        if len(late) > 1:
            yield f"{name} was removed at {gone:.2f} s and was sampled until {late[-1]:.2f} s"


def _key_of(story: Story, attached: DiskAttached) -> Key:
    return attached.kname, story.number_of(attached)


def _key(event: DiskDetached) -> Key:
    return event.kname, event.diskseq
