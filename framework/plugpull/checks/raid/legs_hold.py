"""Whether every member of an array holds what was written to the array."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Disks, Judgement, Named, disk_names
from plugpull.checks.collector import Collector
from plugpull.checks.data.opinions import JudgedRound, counted, every_round
from plugpull.checks.data.power import Power
from plugpull.checks.raid.array_doubts import misread, other_members
from plugpull.checks.raid.array_promises import promised
from plugpull.checks.raid.array_survived import mismatches
from plugpull.checks.raid.arrays import ArrayRecord, arrays_of
from plugpull.checks.raid.write_hole import hole_of
from plugpull.history.events import LedgerBegun, LegReadBegun, LegReadEnded, LegReadPart
from plugpull.history.reader import Story
from plugpull.integrity.oracle.agreement import Disagreement, disagreements
from plugpull.integrity.oracle.array_layout import copies_of
from plugpull.integrity.oracle.decode import decode_found, decode_ledger
from plugpull.integrity.oracle.readback import Found
from plugpull.integrity.oracle.rules import Opinion, judge
from plugpull.integrity.oracle.write_hole import without_hole
from plugpull.integrity.oracle.wrong import content

RESYNC_START = "resync_start"
"""Where a resync that is due begins, or "none" (Documentation/admin-guide/md.rst)."""
SHOWN = 6
"""The most wrong ranges given as evidence."""


class LegsHold(Check, frozen=True, tag="legs_hold"):
    """Each member that was in sync when the array was stopped holds its part of what the array must hold. The copies of
    a mirror that was in sync are the same, also where either of two versions may be there.

    Reading the array alone does not show a stale member: a mirror is read from one of its members. Sectors of a striped
    array are judged where the data is; its parity is what ``array_survived`` has compared."""

    arrays: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.arrays)
        checked = 0
        for name in self.arrays:
            record = arrays_of(story).get(name)
            if record is None:
                said.doubt(f"no array {name} is on record")
                continue
            for opinion in _judge(story, record, said):
                checked += opinion.checked
        worst = f"the members hold what was written ({checked} sectors)" if said.clean else ""
        return said.judgement(worst)


def legs_hold(arrays: Disks | Named) -> LegsHold:
    """Each member of these arrays must hold its part of what was written to the array."""
    return LegsHold(disk_names(arrays))


@dataclass
class _Leg:
    """One reading of a member."""

    begun: LegReadBegun
    parts: list[tuple[int, bytes]] = field(default_factory=list)
    ended: LegReadEnded | None = None

    def found(self) -> Found:
        """What was read. Anything that is missing of it is among its problems."""
        found = decode_found(self.parts)
        received = sum(len(data) for _, data in self.parts)
        if self.ended is None:
            found.problems.append("the end of the reading is not on record")
        elif self.ended.received != received:
            found.problems.append(f"{self.ended.received} bytes of the reading arrived, {received} are on record")
        elif self.ended.stuck or self.ended.status != 0:
            found.problems.append(f"the reading failed: {self.ended.why or f'status {self.ended.status}'}")
        return found


def _legs(story: Story, array: str) -> dict[str, _Leg]:
    legs = {one.disk: _Leg(one) for one in story.of(LegReadBegun) if one.array == array}
    by_job = {leg.begun.job: leg for leg in legs.values() if leg.begun.job}
    for part in story.of(LegReadPart):
        if part.job in by_job:
            by_job[part.job].parts.append((part.offset, _bytes(part.data)))
    for ended in story.of(LegReadEnded):
        if ended.job in by_job:
            by_job[ended.job].ended = ended
    return legs


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""  # noticed as a gap


def _judge(story: Story, record: ArrayRecord, said: Collector) -> Iterator[Opinion]:
    legs = _legs(story, record.name)
    rounds = [one for one in every_round(story) if one.round.disk == record.name]
    if not legs or not rounds:
        said.doubt(f"the members of {record.name} were not read" if rounds else f"nothing was stamped on {record.name}")
        return
    last = rounds[-1]
    if last.opinion is None:
        said.doubt(*(last.unknowns or (f"what {record.name} holds is not known",)))
        return
    slots = {disk: slot for slot, disk in enumerate(record.made.members)}
    current = [disk for disk in slots if disk in _in_sync(record)]
    usable = {disk: legs[disk] for disk in current if disk in legs and not legs[disk].begun.error}
    for disk in current:
        if disk not in usable:
            why = legs[disk].begun.error if disk in legs else "its reading is not on record"
            said.doubt(f"what {disk} holds of {record.name} is not known: {why}")
    begun = last.round.begun
    if doubts := list(_others(story, record, usable, begun)):
        said.doubt(*doubts)
        return
    found = {slots[disk]: leg.found() for disk, leg in usable.items()}
    offsets = {slots[disk]: leg.begun.offset for disk, leg in usable.items()}
    layout = record.layout
    wrong, copies = False, copies_of(layout, found, offsets, begun.extents)
    for copy, held in copies.items():
        if layout.level == "raid1" and copy not in found:
            continue
        if layout.level != "raid1" and len(found) < len(slots):
            said.doubt(f"{record.name} was not complete when it was stopped, so what its members hold is not compared")
            return
        opinion = _one(story, record, copy, held, last, said)
        wrong = wrong or bool(opinion.wrong)
        yield opinion
    if not wrong:
        read = [copy for copy in copies if layout.level != "raid1" or copy in found]
        said.take(*_agree(record, {copy: copies[copy] for copy in read}, _written_until(rounds)))


def _others(story: Story, record: ArrayRecord, legs: Mapping[str, _Leg], begun: LedgerBegun) -> Iterator[str]:
    """Why these readings are not of what was written last, or not known to be of which member."""
    if other := other_members(record):
        yield other
    elsewhere = [disk for disk, leg in legs.items() if misread(story, leg.begun)]
    if elsewhere:
        yield f"{', '.join(elsewhere)} was not read where the data of {record.name} begins"
    if any((leg.begun.run, leg.begun.session) != (begun.run, begun.session) for leg in legs.values()):
        yield f"the members of {record.name} were read before its last session"
    if any(leg.begun.device != begun.device for leg in legs.values()):
        yield f"the members of {record.name} were read for the stamps of another disk"
    read = {tuple((first - leg.begun.offset, size) for first, size in leg.begun.extents) for leg in legs.values()}
    if len(read) > 1 or () in read:
        yield f"not the same parts of each member of {record.name} were read"


def _agree(record: ArrayRecord, copies: Mapping[int, Found], written: float) -> Iterator[Accusation | str]:
    """What is wrong if the copies of a mirror differ. They may until its last resync is over. Nothing was written to it
    after ``written``."""
    whole = {copy: held for copy, held in copies.items() if held.complete and not held.problems}
    values = record.last.values if record.last is not None else {}
    if len(whole) < 2:
        return
    if values.get(RESYNC_START, "none") != "none" or values.get("sync_action") in ("resync", "recover"):
        if RESYNC_START in values:
            yield f"{record.name} was stopped before it was in sync, so its copies are not compared"
        return
    (one, first), *others = whole.items()
    compared = [((one, other), [*disagreements(first.runs, held.runs)]) for other, held in others]
    if RESYNC_START in values:
        yield from (_differ(record, pair, found) for pair, found in compared if found)
    if not any(found for _, found in compared):
        yield from _differ_elsewhere(record, written)


def _differ_elsewhere(record: ArrayRecord, written: float) -> Iterator[Accusation]:
    """Differences that md counted in a mirror whose copies agree in everything that was written to it, until
    ``written``. They lie where nobody wrote since its first resync. Two versions of a write that is under way are none
    (md(4), SCRUBBING AND MISMATCHES), so only a check after the last write counts."""
    for act in record.done("check"):
        count = mismatches(record, act) if act.ok and (act.at or 0.0) - act.seconds > written else None
        if count:
            what = f"a check of {record.name} found {count} sectors that differ between its members"
            why = "and they agree in everything that was written to it"
            yield Accusation(subject=record.name, summary=f"{what}, {why}", at=act.at)


def _differ(record: ArrayRecord, copies: tuple[int, int], found: Sequence[Disagreement]) -> Accusation:
    names = [_name(record, copy) for copy in copies]
    said = [(content(each.one, each.first), content(each.other, each.first)) for each in found[:SHOWN]]
    evidence = tuple(
        f"{each.sectors} from {each.first}: {one} on {names[0]}, {other} on {names[1]}"
        for each, (one, other) in zip(found, said, strict=False)
    )
    return Accusation(
        subject=record.name,
        summary=f"{names[0]} and {names[1]} differ in {sum(each.sectors for each in found)} sectors although "
        f"{record.name} was in sync, the first at sector {found[0].first} of the array: {' and '.join(said[0])}",
        evidence=evidence,
    )


def _written_until(rounds: Sequence[JudgedRound]) -> float:
    """When the last writer ended."""
    ended = [one.round.ended for one in rounds]
    return max((one.at or 0.0) if one is not None else float("inf") for one in ended)


def _name(record: ArrayRecord, copy: int) -> str:
    """A copy in words."""
    return record.made.members[copy] if record.layout.level == "raid1" else f"copy {copy + 1} of {record.name}"


def _in_sync(record: ArrayRecord) -> set[str]:
    """The members that were in sync when the array ran last."""
    last = record.last
    if last is None:
        return set()
    return {disk for disk, (slot, says) in last.members.items() if slot != "none" and "in_sync" in says.split(",")}


def _one(story: Story, record: ArrayRecord, copy: int, content: Found, last: JudgedRound, said: Collector) -> Opinion:
    begun, ledger = last.round.begun, promised(story, record.name, decode_ledger(last.round.parts))
    opinion = judge(
        ledger,
        content,
        begun.extents,
        last.round.before,
        logical_block=max(512, content.logical),
        completed=last.power is Power.KEPT,
        blank=begun.session == 1 and not begun.fill,
    )
    without_hole(opinion, hole_of(story, record.name, ledger, powered=last.power is Power.KEPT))
    what = _name(record, copy)
    if opinion.wrong:
        said.take(_accusation(record, what, copy, opinion))
    else:
        said.doubt(*(f"{what}: {problem}" for problem in opinion.problems))
    return opinion


def _accusation(record: ArrayRecord, what: str, copy: int, opinion: Opinion) -> Accusation:
    first = opinion.wrong[0]
    members = record.made.members
    evidence = []
    for wrong in opinion.wrong[:SHOWN]:
        where = f"{wrong.kind.value}, {wrong.sectors} from {wrong.first}"
        disk = members[record.layout.slot_of(copy, wrong.first)]
        evidence.append(f"{where}, on {disk}: expected {wrong.expected()}; found {wrong.found()}")
    said = f"expected {first.expected()}; found {first.found()}"
    return Accusation(
        subject=members[record.layout.slot_of(copy, first.first)],
        summary=f"{what} does not hold what {record.name} was given ({counted(opinion)}), the first {first.kind.value} "
        f"at sector {first.first} of the array: {said}",
        evidence=tuple(evidence),
    )
