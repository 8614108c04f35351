"""The oracle's opinion of every round of stamped writing, or why it cannot have one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from plugpull.checks.claims import Claim, Evidence
from plugpull.checks.data.belief import Belief, WriteCache, belief_at
from plugpull.checks.data.broken_off import completed_later, outlived
from plugpull.checks.data.ledger_fit import contradictions, misfits
from plugpull.checks.data.power import Power, power_over
from plugpull.checks.data.stamps import ReadBack, Round, missing_rounds, rounds_of
from plugpull.checks.raid.array_promises import promised
from plugpull.checks.raid.write_hole import hole_of
from plugpull.checks.record.stale_samples import Uncounted, stale_counters, stale_samples
from plugpull.checks.record.writer_ends import ended_otherwise
from plugpull.history.cut import Cut
from plugpull.history.story import Story
from plugpull.integrity.oracle.agreement import Disagreement, disagreements
from plugpull.integrity.oracle.decode import CUT_OFF, decode_found, decode_ledger
from plugpull.integrity.oracle.ledger import Ledger
from plugpull.integrity.oracle.readback import ContentKind, Found, SectorRun
from plugpull.integrity.oracle.rules import Opinion, judge
from plugpull.integrity.oracle.write_hole import without_hole
from plugpull.integrity.oracle.wrong import Wrong, outside


class FailedCommand(NamedTuple):
    """A write or a flush that ended with an error, at ``at``, DUT seconds."""

    what: str
    at: float
    errno: int


@dataclass(frozen=True)
class JudgedRound:
    """One round and the oracle's opinion of it.

    ``opinion`` is ``None`` if nothing can be concluded. ``unlike`` are right sectors that a second reading found to
    hold something else. ``owed`` are sectors that lack a completed, unflushed write on a disk that kept its power;
    ``opinion`` allows that. ``failed`` are the writes and flushes that ended with an error. ``slowest`` is the duration
    of the slowest write, in seconds. ``stale`` says which samples repeat one another while the disk was written,
    ``uncounted`` is set if its own counters stood still. ``contradicted`` says why the ledger cannot be of this round.
    ``outlived`` is when the last write or flush succeeded while the disk was removed, DUT seconds; ``None`` if the
    ledger is contradicted.
    """

    round: Round
    power: Power
    cuts: tuple[Cut, ...]
    belief: Belief
    opinion: Opinion | None = None
    owed: tuple[Wrong, ...] = ()
    unknowns: tuple[str, ...] = ()
    again: tuple[SectorRun, ...] = ()
    unlike: tuple[Disagreement, ...] = ()
    failed: tuple[FailedCommand, ...] = ()
    slowest: float | None = None
    stale: str = ""
    uncounted: Uncounted | None = None
    contradicted: tuple[str, ...] = ()
    outlived: float | None = None

    @property
    def is_wrong(self) -> bool:
        return self.opinion is not None and bool(self.opinion.wrong)

    @property
    def trial(self) -> bool:
        """Whether the cut of this round could have lost promised data: the disk lost its power, and had durable data
        beyond its fill."""
        return self.power is Power.LOST and self.opinion is not None and self.opinion.promised > 0

    @property
    def unpromised(self) -> bool:
        """Whether the disk lost its power, or may have, before any written data was promised."""
        made = self.opinion
        return made is not None and self.power is not Power.KEPT and _blank(self.round) and not made.promised

    def promise_words(self) -> str:
        """The kind of promise that the disk made, in the kernel's view."""
        cache = self.belief.write_cache
        if cache is WriteCache.UNKNOWN:
            return "what the kernel believed of the disk's write cache is not on record"
        sent = "flushes reach the disk" if self.belief.flushes_are_sent else "flushes never leave the kernel"
        fua = ", FUA too" if self.belief.fua and self.belief.flushes_are_sent else ""
        return f"the kernel believed the disk to be {cache}: {sent}{fua}"

    def read_again(self, opinion: Opinion) -> Iterable[str]:
        """Whether a second reading of the wrong sectors found the same, as evidence."""
        if not self.again:
            return
        same = other = 0
        for wrong in opinion.wrong:
            for run in self.again:
                begin, end = max(run.first, wrong.first), min(run.end, wrong.first + wrong.sectors)
                if begin < end:
                    if _holds_the_same(run, wrong.run, begin):
                        same += end - begin
                    else:
                        other += end - begin
        if same:
            yield f"read again, {same} of the wrong sectors hold the same: they were written wrong"
        if other:
            yield f"read again, {other} of the wrong sectors hold something else: they were read wrong"


def _holds_the_same(one: SectorRun, two: SectorRun, first: int) -> bool:
    if one.kind is not two.kind:
        return False
    if one.kind is ContentKind.ELSEWHERE:
        places = [(run.run, run.device, run.number, run.origin + first - run.first) for run in (one, two)]
        return places[0] == places[1]
    return (one.number, one.raw) == (two.number, two.raw)


@dataclass(frozen=True)
class JudgedRounds:
    """The judged rounds of stamped writing on ``disks``. ``missing`` are sentences about missing records, of any disk;
    ``unknowns`` are these and the doubts about the rounds."""

    disks: tuple[str, ...]
    rounds: tuple[JudgedRound, ...]
    unknowns: tuple[str, ...]
    missing: tuple[str, ...] = ()


def claims_of(record: JudgedRounds, what: str) -> Iterable[Claim]:
    """The time spans of ledgers and read-backs that a judgement of these rounds needs."""
    for one in record.rounds:
        ended = one.round.read.ended if one.round.read is not None else None
        begin, end = one.round.begun.at, ended.at if ended is not None else one.round.at
        if begin is not None and end is not None:
            evidence = (Evidence.LEDGER, Evidence.READ_BACK)
            yield Claim(what=f"{one.round.disk} {what}", evidence=evidence, begin=begin, end=end, disk=one.round.disk)


def judge_rounds(story: Story, disks: tuple[str, ...] | None = None) -> JudgedRounds:
    """Judge every round on ``disks``. ``None`` means all stamped disks, apart from the victims of permanent cuts."""
    missing, every = _every_round(story)
    stamped = tuple(dict.fromkeys(one.round.disk for one in every))
    wanted = stamped if disks is None else disks
    gone = gone_for_good(story) if disks is None else set()
    unknowns = [f"{disk} was not stamped" for disk in wanted if disk not in stamped and disk not in gone]
    judged = [
        one for one in every if one.round.disk in wanted and not (one.round.disk in gone and not one.round.read_back)
    ]
    unknowns += [unknown for one in judged for unknown in one.unknowns]
    return JudgedRounds(tuple(wanted), tuple(judged), tuple(dict.fromkeys([*missing, *unknowns])), tuple(missing))


def every_round(story: Story) -> tuple[JudgedRound, ...]:
    """All rounds of a story, judged."""
    return _every_round(story)[1]


def sampler_stood_still(story: Story) -> tuple[str, ...]:
    """When the samples stood still while disks were written, by their ledgers, a clause each."""
    return tuple(dict.fromkeys(one.stale for one in every_round(story) if one.stale))


def counters_stood_still(story: Story, disk: str) -> tuple[Uncounted, ...]:
    """The ledgers of this disk by which it was written while its counters stood still."""
    return tuple(one.uncounted for one in every_round(story) if one.round.disk == disk and one.uncounted)


def _every_round(story: Story) -> tuple[tuple[str, ...], tuple[JudgedRound, ...]]:
    """The missing records of a story's rounds, and all rounds judged. This is done once for all checks."""
    known = vars(story)
    if "_judged_rounds" not in known:
        known["_judged_rounds"] = _judge_every_round(story)
    judged: tuple[tuple[str, ...], tuple[JudgedRound, ...]] = known["_judged_rounds"]
    return judged


def _judge_every_round(story: Story) -> tuple[tuple[str, ...], tuple[JudgedRound, ...]]:
    rounds = rounds_of(story)
    judged = []
    last: dict[tuple[int, str], tuple[int, tuple[SectorRun, ...] | None]] = {}
    for one in rounds:
        key = (one.begun.run, one.disk)
        number, found = last.get(key, (0, None))
        if not one.begun.fill and number + 1 == one.begun.session and number:
            one.before = found
        opinion, runs = _judge_round(story, one)
        last[key] = (one.begun.session, runs)
        judged.append(opinion)
    return tuple(missing_rounds(story, rounds)), tuple(judged)


def gone_for_good(story: Story) -> set[str]:
    """Disks that a permanent cut took away and that did not come back."""
    cuts = [cut for cut in story.cut_records if cut.armed.permanent]
    return {times.disk for cut in cuts for times in cut.disks if not times.returned_at}


def _judge_round(story: Story, one: Round) -> tuple[JudgedRound, tuple[SectorRun, ...] | None]:
    """The opinion of a round, and what was found on its disk."""
    ledger = decode_ledger(one.parts)
    origin = ledger.begun_ns / 1e9 if ledger.begun_ns else one.begun.at or 0.0
    power, cuts = power_over(story, one.disk, origin, float("inf") if one.at is None else one.at)
    contradicted = tuple(contradictions(story, one, ledger))
    misfitting = [*one.doubts, *misfits(story, one, ledger)]
    judged = JudgedRound(
        one,
        power,
        cuts,
        belief_at(story, one.disk, origin),
        failed=() if misfitting else _failed(ledger, origin),
        slowest=None if misfitting else _slowest(ledger),
        stale="" if misfitting else stale_samples(story, one.disk, ledger),
        uncounted=None if misfitting else stale_counters(story, one.disk, ledger),
        contradicted=contradicted,
        outlived=None if one.doubts or contradicted else outlived(story, one.disk, ledger, origin),
    )
    read = one.read
    if read is None or read.begun.error:
        why = read.begun.error if read is not None else f"{one.disk} was not read back"
        return replace(judged, unknowns=(f"what was written to {one.disk} could not be compared: {why}",)), None
    found = decode_found(read.parts)
    doubts = [*misfitting, *_strange(one, found)]
    doubts += filter(None, (ended_otherwise(one.ended, ledger),))
    if doubts:
        sentences = [f"{one.disk}: session {one.begun.session} proves nothing: {doubt}" for doubt in doubts]
        return replace(judged, unknowns=tuple(sentences)), None
    ledger = _with_problems(one, promised(story, one.disk, ledger), found, read)
    block = _logical_block(story, one, ledger, found, judged.belief)
    readings = [decode_found(reading.parts).runs for reading in one.again]
    through = judged.belief.write_cache is WriteCache.THROUGH
    hole = hole_of(story, one.disk, ledger, powered=power is Power.KEPT)
    opinion = without_hole(_ask(one, ledger, found, block, completed=through), hole)
    owed: tuple[Wrong, ...] = ()
    if power is Power.KEPT and not through:
        strict = without_hole(_ask(one, ledger, found, block, completed=True), hole)
        owed = tuple(outside(strict.wrong, opinion.wrong))
        if strict.checked > opinion.checked and not opinion.wrong:
            # On a disk that kept its power, unflushed writes are compared as well.
            opinion.checked, opinion.unclaimed = strict.checked, strict.unclaimed
    others = (other for runs in readings for other in disagreements(found.runs, runs))
    unlike = [other for other in others if not any(_overlap(other, wrong) for wrong in (*opinion.wrong, *owed))]
    unknowns = [*_unknowns(one, opinion), *completed_later(story, one, ledger, cuts)]
    declared = _declared_block(story, one.disk)
    if declared > block and outside(_ask(one, ledger, found, declared, completed=through).wrong, opinion.wrong):
        unknowns.append(_mixed(one.disk, declared, block))
    again = tuple(run for runs in readings for run in runs)
    made = replace(judged, opinion=opinion, owed=owed, unknowns=tuple(unknowns), again=again, unlike=tuple(unlike))
    return made, tuple(found.runs)


def _overlap(other: Disagreement, wrong: Wrong) -> bool:
    return other.first < wrong.first + wrong.sectors and wrong.first < other.first + other.sectors


def _mixed(disk: str, declared: int, block: int) -> str:
    where = f"{declared} bytes, the logical block size in the rig file"
    return f"{disk} holds old and new data within {where}; the disk reports logical blocks of {block} bytes"


def _failed(ledger: Ledger, origin: float) -> tuple[FailedCommand, ...]:
    done = [("write", write.completed_at, write.error) for write in ledger.writes]
    done += [("flush", flush.completed_at, flush.error) for flush in ledger.flushes]
    return tuple(FailedCommand(what, origin + at, error) for what, at, error in done if error and at is not None)


def _slowest(ledger: Ledger) -> float | None:
    took = [write.completed_at - write.issued_at for write in ledger.writes if write.completed_at is not None]
    return max(took, default=None)


def _ask(one: Round, ledger: Ledger, found: Found, block: int, *, completed: bool) -> Opinion:
    extents, blank = one.begun.extents, _blank(one)
    return judge(ledger, found, extents, one.before, logical_block=block, completed=completed, blank=blank)


def _blank(one: Round) -> bool:
    """Whether nothing written before this round must still be there."""
    return one.begun.session == 1 and not one.begun.fill


def _unknowns(one: Round, opinion: Opinion) -> Iterable[str]:
    # A finding stands despite missing records; without one, the missing records are a doubt.
    nothing_claimed = _blank(one) and not opinion.problems and not opinion.unjudged
    if not opinion.wrong and not opinion.intact and not nothing_claimed:
        for problem in opinion.problems or ["nothing was compared"]:
            yield f"{one.disk}: {problem}"


def _strange(one: Round, found: Found) -> Iterable[str]:
    """Why the data that was read cannot belong to this round."""
    own = (one.begun.session, one.begun.run, one.begun.device)
    if found.device and (found.session, found.run, found.device) != own:
        yield "the reader looked for stamps of another session, disk or run"
    newest = max((run.number >> 32 for run in found.runs if run.kind is ContentKind.STAMPED), default=0)
    if newest > one.begun.session:
        yield f"what was read back holds stamps of session {newest}, which came later"


def _with_problems(one: Round, ledger: Ledger, found: Found, read: ReadBack) -> Ledger:
    """The ledger, which has the problems of its round now, as what was read has its own."""
    if one.ended is not None and one.ended.received != (had := sum(len(data) for _, data in one.parts)):
        ledger.problems.append(f"{one.ended.received} bytes of the ledger arrived, {had} are on record")
    if CUT_OFF in ledger.problems:
        ledger.problems.append(f"at most {one.begun.bound} bytes of it are missing at its end")
    ledger.problems += one.problems
    found.problems += read.problems
    return ledger


def _logical_block(story: Story, one: Round, ledger: Ledger, found: Found, belief: Belief) -> int:
    """The largest logical block size on record, bytes: old and new data within one block is an error. The size in the
    rig file counts only if the disk's own size is not on record."""
    read = one.read.begun.logical if one.read is not None else 0
    asked = max(ledger.logical, found.logical, belief.logical_block)
    said = max(read, asked, 0 if asked else _declared_block(story, one.disk))
    return max(512, said - said % 512)


def _declared_block(story: Story, disk: str) -> int:
    """The logical block size in the rig file, bytes; 0 if it has none."""
    tables = story.rig.get("disk", [])
    own = [table for table in tables if isinstance(table, dict) and table.get("name") == disk]
    declared = own[0].get("logical_block", 0) if own else 0
    return declared - declared % 512 if isinstance(declared, int) else 0


def counted(opinion: Opinion) -> str:
    """Such as "3 durable lost, 8 torn": sectors by kind of damage."""
    return ", ".join(f"{sectors} {kind}" for kind, sectors in opinion.counts.items())
