"""Whether a member that came back got what it had missed, and not everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from plugpull.checks.base import Check, Disks, Judgement, Named, disk_names
from plugpull.checks.collector import Collector
from plugpull.checks.data.opinions import every_round
from plugpull.checks.raid.arrays import ArrayRecord, MemberAbsence, arrays_of
from plugpull.history.events import ArrayActed, ArrayState
from plugpull.history.reader import Story
from plugpull.history.samples import CounterStream
from plugpull.integrity.oracle.decode import decode_ledger
from plugpull.judging.results import Measurement

LAG = 15.0
"""Seconds before a loss in which written places may still be marked in the bitmap: its bits are cleared every 5 s, in
two steps (drivers/md/md-bitmap.c, md_bitmap_daemon_work; mdadm's default --delay)."""
MOST, LITTLE = 0.9, 0.5
"""A resync of this share of a member is a full one; it is a finding if less than the second share had to be copied."""


class ResyncedByBitmap(Check, frozen=True, tag="resynced_by_bitmap"):
    """A member of an array with a bitmap that was put back got no full copy, if little was written while it was away.

    It is judged by the bytes that were written to the disk, less those that the load wrote to it meanwhile. What had to
    be copied is at most what the bitmap marks for the writes on record."""

    arrays: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.arrays)
        words: list[str] = []
        for name in self.arrays:
            record = arrays_of(story).get(name)
            if record is None or not record.made.bitmap:
                said.doubt(f"no array {name} with a bitmap is on record")
                continue
            judged = [one for act in record.done("readd") if act.ok for one in _absences(record, act)]
            if not judged:
                said.doubt(f"no member was put back into {name} and was in sync after that")
            for act, absence in judged:
                words.extend(_judge(story, record, act, absence, said))
        return said.judgement("; ".join(words) if said.clean else "")


def resynced_by_bitmap(arrays: Disks | Named) -> ResyncedByBitmap:
    """Members that were put back must have been given what their bitmap marks as missed, and not everything."""
    return ResyncedByBitmap(disk_names(arrays))


def _absences(record: ArrayRecord, act: ArrayActed) -> Iterator[tuple[ArrayActed, MemberAbsence]]:
    """The absence that this return ended."""
    at = act.at or 0.0
    for one in record.absences:
        if one.disk in act.disks and one.back is not None and one.gone <= at and one.back >= at - act.seconds - 1.0:
            yield act, one
            return


def _judge(
    story: Story, record: ArrayRecord, act: ArrayActed, absence: MemberAbsence, said: Collector
) -> Iterator[str]:
    assert absence.back is not None
    disk, begin = absence.disk, (act.at or 0.0) - act.seconds
    copied = _written(story, disk, begin, absence.back)
    if copied is None:
        said.doubt(f"how much was written to {disk} when it was put back is not on record")
        return
    copied = max(0, copied - _by_load(story, record.made.kname, begin, absence.back))
    marked = _marked(story, record, absence.gone - LAG, act.at or 0.0)
    whole = record.made.component
    said.measure(
        Measurement(name="bytes copied to a member", subject=disk, value=float(copied), unit="B", better="down", n=1)
    )
    if whole and copied >= MOST * whole and marked < LITTLE * whole:
        what = f"{disk} got a full copy of {copied} bytes when it was put back into {record.name}"
        why = f"at most {marked} bytes were written while it was away, by the ledger and the bitmap's chunks"
        said.accuse(disk, f"{what}; {why}", absence.back)
    yield f"{disk} got {copied >> 10} KiB of {whole >> 10} KiB (at most {marked >> 10} KiB were marked)"


def _written(story: Story, disk: str, begin: float, end: float) -> int | None:
    """Bytes written to a disk from its last sample before ``begin`` to its first one after ``end``."""
    before = story.readings(disk).between(float("-inf"), begin)
    after = story.readings(disk).between(end, float("inf"))
    if not before or not after or before[-1].diskseq != after[0].diskseq:
        return None
    return after[0].written - before[-1].written


def _by_load(story: Story, kname: str, begin: float, end: float) -> int:
    """Bytes that were written to the array itself, at most."""
    table = story.samples
    streams = [stream for stream in table.streams.values() if stream.kname == kname]
    before = _first_written(streams, reversed(table.between(float("-inf"), begin)))
    after = _first_written(streams, table.between(end, float("inf")))
    return max(0, after - before) if before is not None and after is not None else 0


def _first_written(streams: Sequence[CounterStream], rows: Iterable[int]) -> int | None:
    """The bytes written by the first of these samples that lists one of these attachments."""
    for row in rows:
        for stream in streams:
            if stream.has(row):
                return stream.columns[1].numbers[stream.index(row)]
    return None


def _marked(story: Story, record: ArrayRecord, begin: float, end: float) -> int:
    """The bytes of the bitmap's chunks that the writes of this time are in; everything if a ledger is not complete, or
    if the array was resynced then: that marks all of it."""
    chunk, chunks = record.made.bitmap, set[int]()
    gone = begin + LAG
    at_begin = record.state_at(begin)
    states = [*([at_begin] if at_begin else []), *(one for one in record.states if begin <= (one.at or 0.0) <= gone)]
    if any(_copying(state) for state in states):
        return record.made.size
    for one in every_round(story):
        if one.round.disk != record.name:
            continue
        ledger = decode_ledger(one.round.parts)
        if not ledger.whole or not ledger.begun_ns:
            return record.made.size
        origin = ledger.begun_ns / 1e9
        for write in ledger.writes:
            done = origin + (write.completed_at if write.completed_at is not None else float("inf"))
            if origin + write.issued_at <= end and done >= begin:
                chunks.update(range(write.sector * 512 // chunk, (write.end * 512 - 1) // chunk + 1))
    return len(chunks) * chunk


def _copying(state: ArrayState) -> bool:
    """Whether a resync or a rebuild was under way. md also says "recover" for the moment in which it looks whether a
    member that failed can be replaced (md.c, action_show); then nothing is completed or about to be."""
    return state.values.get("sync_action") in ("resync", "recover") and state.values.get("sync_completed") != "none"
