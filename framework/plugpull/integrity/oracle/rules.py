"""Decides what a disk may hold after a cut, and describes the content that it may not hold.

Pure: a ledger, the earlier content and the content read back go in; an opinion comes out.

The rules, sector by sector. A write is *durable* once it completed without an error before the submission of a flush
that then succeeded, or completed without an error with FUA. A write *precedes* another if it was over (completed, with
or without an error) before the other was issued. Two writes that were in flight together have no order.

- A sector holds its earlier content or one of the versions issued for it. It must not hold anything that precedes a
  durable version of it. The earlier content precedes every version.
- A write that failed or never completed may be on the disk or not, and so may one that no successful flush followed. A
  flush that failed or was not answered promises nothing.
- A write of several sectors may be there in part. A mix of versions inside one logical block is always wrong.
- If completion itself is the promise (``completed``: the disk kept its power, or reports write-through), a write is
  durable once it completed without an error.
- If the earlier content is unknown and nothing was promised of it (``blank``), a sector without a durable version may
  hold anything, except data of this run that belongs elsewhere.

These are the promises of the block layer (Documentation/block/writeback_cache_control.rst) and of SBC-3's SYNCHRONIZE
CACHE. Shipping drives were found that tear, misdirect or lose sectors in spite of them (Zheng et al., FAST'13).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from plugpull.integrity.oracle.ledger import Flush, Ledger, Write
from plugpull.integrity.oracle.readback import ContentKind, Found, SectorRun
from plugpull.integrity.oracle.wrong import Damage, Version, Wrong, content, describe_damage, merge, outside

Extents = Sequence[tuple[int, int]]
SECTOR = 512
UNKNOWN_BEFORE = "the content from before the session is unknown"


@dataclass
class Opinion:
    """The oracle's result for one disk after one session.

    ``wrong`` is in rising order. ``checked`` sectors were compared, ``unjudged`` could not be. ``unflushed`` sectors do
    not hold their last completed write, which nothing had promised to keep. ``beyond`` sectors hold writes that the
    ledger lacks because its end is missing. ``unclaimed`` sectors were read, but nothing had been promised of them.
    ``in_hole`` sectors are wrong in stripes of an array that were being written when it failed (``write_hole.py``).
    ``promised`` writes beyond the fill are durable. ``problems`` are the reasons why this opinion cannot be a PASS.
    """

    wrong: list[Wrong] = field(default_factory=list)
    checked: int = 0
    unjudged: int = 0
    unflushed: int = 0
    beyond: int = 0
    unclaimed: int = 0
    in_hole: int = 0
    promised: int = 0
    writes: int = 0
    flushes: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Sectors by kind of damage."""
        counts: Counter[str] = Counter()
        for wrong in self.wrong:
            counts[wrong.kind.value] += wrong.sectors
        return dict(counts)

    @property
    def intact(self) -> bool:
        """True if every sector was compared and none is wrong."""
        return not self.wrong and not self.problems and not self.unjudged and self.checked > 0

    @property
    def first(self) -> Wrong | None:
        return self.wrong[0] if self.wrong else None

    @property
    def worst(self) -> Wrong | None:
        """The longest stretch of the worst kind."""
        order = list(Damage)
        return min(self.wrong, key=lambda wrong: (order.index(wrong.kind), -wrong.sectors), default=None)


@dataclass(frozen=True)
class Terms:
    """The promises that apply to a disk: the keywords of ``judge``."""

    logical_block: int
    completed: bool
    blank: bool


def judge(
    ledger: Ledger,
    found: Found,
    extents: Extents,
    before: Iterable[SectorRun] | None = None,
    *,
    logical_block: int = SECTOR,
    completed: bool = False,
    blank: bool = False,
) -> Opinion:
    """Judge a disk's content after a session.

    ``before`` is the content read back before the session (durable by the session's first flush), None if unknown.
    ``extents`` are the covered (first sector, sectors). ``logical_block`` is in bytes. For ``completed`` and ``blank``
    see the module's docstring.
    """
    terms = Terms(logical_block, completed, blank)
    return _Judge(ledger, found, extents, before, terms).opinion()


class _Judge:
    def __init__(
        self, ledger: Ledger, found: Found, extents: Extents, before: Iterable[SectorRun] | None, terms: Terms
    ) -> None:
        self._ledger = ledger
        self._found = found
        self._extents = extents
        self._before = None if before is None else list(before)
        self._terms = terms
        self._logical = terms.logical_block // SECTOR
        self._by_number = {write.number: write for write in ledger.writes}
        self._last = ledger.session << 32 | len(ledger.writes)
        good = [flush for flush in ledger.flushes if flush.completed is not None and not flush.error]
        self._flushes = sorted(good, key=lambda flush: flush.submitted)
        self._submitted = [flush.submitted for flush in self._flushes]
        self._promised = {write.number for write in ledger.writes if self._is_durable(write)}
        promised = sum(write.number in self._promised and not write.fill for write in ledger.writes)
        self._opinion = Opinion(writes=len(ledger.writes), flushes=len(good), promised=promised)
        self._newest = 0

    # --- promises ---------------------------------------------------------------------------------------------------

    def _promise(self, write: Write) -> Flush | None:
        """The first flush that makes a write durable."""
        if write.completed is None or write.error:
            return None
        at = bisect_left(self._submitted, write.completed)
        return self._flushes[at] if at < len(self._flushes) else None

    def _is_durable(self, write: Write) -> bool:
        if write.completed is None or write.error:
            return False
        flushed = bool(self._submitted and self._submitted[-1] > write.completed)
        return self._terms.completed or write.fua or flushed

    # --- pieces -----------------------------------------------------------------------------------------------------

    def opinion(self) -> Opinion:
        opinion = self._opinion
        opinion.problems += [f"ledger: {problem}" for problem in self._ledger.problems]
        opinion.problems += [f"read-back: {problem}" for problem in self._found.problems]
        if self._found.runs:
            numbers = [run.number for run in self._found.runs if run.kind is ContentKind.STAMPED]
            self._newest = max(numbers, default=0)
        for piece in self._pieces():
            self._judge(*piece)
        if self._logical > 1:
            torn = self._torn_blocks(opinion.wrong)
            opinion.wrong = [*outside(opinion.wrong, torn), *torn]
        opinion.wrong = merge(opinion.wrong)
        seen = opinion.checked + opinion.unjudged + opinion.unclaimed
        missing = sum(count for _, count in self._extents) - seen
        if missing > 0:
            opinion.unjudged += missing
            opinion.problems.append(f"{missing} sectors were not read back")
        return opinion

    def _pieces(self) -> Iterable[tuple[int, int, list[Write], SectorRun, SectorRun | None]]:
        """(first, sectors, writes, found, before) of stretches over which all of these are the same."""
        before = self._before or []
        runs = [run for run in self._found.runs if self._covered(run)]
        cuts = {edge for run in (*runs, *before) for edge in (run.first, run.end)}
        cuts |= {edge for write in self._ledger.writes for edge in (write.sector, write.end)}
        cuts |= {edge for first, count in self._extents for edge in (first, first + count)}
        edges = sorted(cuts)
        index = {edge: number for number, edge in enumerate(edges)}
        written: list[list[Write]] = [[] for _ in edges]
        for write in self._ledger.writes:
            for number in range(index[write.sector], index[write.end]):
                written[number].append(write)
        was: list[SectorRun | None] = [None] * len(edges)
        for run in before:
            for number in range(index[run.first], index[run.end]):
                was[number] = run
        for run in runs:
            for number in range(index[run.first], index[run.end]):
                first = edges[number]
                if any(begin <= first < begin + count for begin, count in self._extents):
                    yield first, edges[number + 1] - first, written[number], run, was[number]

    def _covered(self, run: SectorRun) -> bool:
        return any(run.first < begin + count and begin < run.end for begin, count in self._extents)

    # --- one stretch ------------------------------------------------------------------------------------------------

    def _judge(self, first: int, sectors: int, writes: list[Write], run: SectorRun, before: SectorRun | None) -> None:
        durable = [write for write in writes if write.number in self._promised]
        if run.kind is ContentKind.STAMPED:
            verdict = self._stamped(run, first, sectors, durable, before)
        elif not durable and self._same(run, before, first):
            verdict = None
        elif not durable and before is None and run.kind is not ContentKind.UNREADABLE:
            verdict = UNKNOWN_BEFORE
        else:
            verdict = _KINDS[run.kind]
            if run.kind is ContentKind.ELSEWHERE and (run.run, run.device) == (self._ledger.run, self._ledger.device):
                verdict = Damage.MISDIRECTED
        if verdict == UNKNOWN_BEFORE and self._terms.blank:
            stray = self._stray(first, sectors, writes, run)
            if stray is None:
                self._opinion.unclaimed += sectors
            else:
                self._opinion.checked += sectors
                self._opinion.wrong.append(stray)
            return
        if isinstance(verdict, str) and not isinstance(verdict, Damage):
            self._opinion.unjudged += sectors
            self._note(verdict)
            return
        self._opinion.checked += sectors
        if verdict is None:
            self._count_unflushed(run, sectors, writes, durable)
        else:
            self._opinion.wrong.append(self._wrong(verdict, first, sectors, writes, durable, run, before))

    def _stray(self, first: int, sectors: int, writes: list[Write], run: SectorRun) -> Wrong | None:
        """Data of this run that was put in a place with unknown earlier content: it is wrong in any case."""
        if run.kind is ContentKind.ELSEWHERE and run.run == self._ledger.run:
            kind = Damage.MISDIRECTED if run.device == self._ledger.device else Damage.FOREIGN
            return self._wrong(kind, first, sectors, writes, [], run, None)
        if run.kind is ContentKind.DAMAGED:
            wrong = self._wrong(Damage.CORRUPT, first, sectors, writes, [], run, None)
            return wrong if wrong.detail else None
        return None

    def _note(self, why: str) -> None:
        if why not in self._opinion.problems:
            self._opinion.problems.append(why)

    @staticmethod
    def _same(run: SectorRun, before: SectorRun | None, first: int) -> bool:
        """True if a stretch holds its earlier content. ``first`` is its first sector."""
        if before is None or run.kind is not before.kind or run.kind is ContentKind.UNREADABLE:
            return False
        if run.kind is ContentKind.ELSEWHERE:
            one = (run.run, run.device, run.number, run.origin + first - run.first)
            return one == (before.run, before.device, before.number, before.origin + first - before.first)
        return run.raw == before.raw and run.number == before.number and run.kind is not ContentKind.MORE_DAMAGED

    def _stamped(
        self, run: SectorRun, first: int, sectors: int, durable: list[Write], before: SectorRun | None
    ) -> Damage | str | None:
        """The damage, if any, of a stretch with complete stamps of its own; a sentence if it cannot be judged."""
        write = self._by_number.get(run.number)
        if write is not None:
            if not write.sector <= first < write.end:
                return Damage.NEVER_WRITTEN
            return _degree(sum(precedes(write, other) for other in durable))
        if run.number >> 32 == self._ledger.session or run.number > self._last:
            if self._ledger.whole:
                return Damage.NEVER_WRITTEN
            if run.number <= self._last:
                return "part of the ledger is missing"
            self._opinion.beyond += sectors
            return None
        if before is None:
            return _degree(len(durable)) if durable else UNKNOWN_BEFORE
        is_before = before.kind is ContentKind.STAMPED and before.number == run.number
        return _degree(len(durable)) if is_before else Damage.STALE

    def _count_unflushed(self, run: SectorRun, sectors: int, writes: list[Write], durable: list[Write]) -> None:
        completed = [write for write in writes if write.completed is not None and not write.error]
        if completed and completed[-1] not in durable[-1:]:
            newest = completed[-1]
            held = self._by_number.get(run.number) if run.kind is ContentKind.STAMPED else None
            if held is None or (held is not newest and precedes(held, newest)):
                self._opinion.unflushed += sectors

    # --- wrong sectors in detail -------------------------------------------------------------------------------------

    def _wrong(
        self,
        kind: Damage,
        first: int,
        sectors: int,
        writes: list[Write],
        durable: list[Write],
        run: SectorRun,
        before: SectorRun | None,
    ) -> Wrong:
        ledger = self._ledger
        promised = [write for write in durable if not any(precedes(write, other) for other in durable)]
        candidates = [Version(ledger.run, ledger.device, write) for write in writes]
        wrong = Wrong(
            kind=kind,
            first=first,
            sectors=sectors,
            run=run,
            before=before,
            promised=tuple(Version(ledger.run, ledger.device, write, self._promise(write)) for write in promised),
            held=self._by_number.get(run.number) if run.kind is ContentKind.STAMPED else None,
            later=bool(promised) and self._later_is_there(promised[-1]),
            own=(ledger.run, ledger.device),
        )
        return describe_damage(wrong, candidates) if run.kind is ContentKind.DAMAGED else wrong

    def _later_is_there(self, write: Write) -> bool:
        """True if the disk holds something issued after the submission of the flush that made ``write`` durable."""
        flush, newest = self._promise(write), self._by_number.get(self._newest)
        after = flush.submitted if flush is not None else write.completed
        return newest is not None and after is not None and newest.issued > after

    def _torn_blocks(self, wrong: Sequence[Wrong]) -> list[Wrong]:
        """Logical blocks that hold more than one version: no write ends inside a block."""
        blocks: dict[int, list[SectorRun]] = {}
        for one, two in pairwise(self._found.runs):
            if one.end == two.first and two.first % self._logical and self._covered(two):
                block = two.first - two.first % self._logical
                blocks.setdefault(block, [one]).append(two)
        return [self._torn(block, runs, wrong) for block, runs in blocks.items() if self._is_mix(block, runs)]

    def _is_mix(self, block: int, runs: Sequence[SectorRun]) -> bool:
        """Damaged, stray and unreadable sectors are reported themselves; a mix from before the session is not new."""
        if len({(run.kind, run.number) for run in runs if run.kind in (ContentKind.STAMPED, ContentKind.ZEROED)}) < 2:
            return False
        ends = [(max(run.first, block), min(run.end, block + self._logical), run) for run in runs]
        was = self._before or []
        return not all(
            any(old.first <= first and end <= old.end and self._same(run, old, first) for old in was)
            for first, end, run in ends
        )

    def _torn(self, block: int, runs: Sequence[SectorRun], wrong: Sequence[Wrong]) -> Wrong:
        lost = [one for one in wrong if one.first < block + self._logical and block < one.first + one.sectors]
        parts = [f"from sector {max(run.first, block)} on {content(run, max(run.first, block))}" for run in runs[1:]]
        return Wrong(
            Damage.TORN,
            block,
            self._logical,
            runs[0],
            None,
            promised=lost[0].promised if lost else (),
            own=(self._ledger.run, self._ledger.device),
            detail=", ".join(parts),
        )


def _degree(replaced: int) -> Damage | None:
    """The kind of damage if that many durable versions have replaced the one found."""
    return (None, Damage.LOST, Damage.STALE)[min(replaced, 2)]


def precedes(one: Write, other: Write) -> bool:
    """True if ``one`` was over before ``other`` was issued."""
    return one.completed is not None and one.completed < other.issued


_KINDS = {
    ContentKind.ZEROED: Damage.ZEROED,
    ContentKind.UNREADABLE: Damage.UNREADABLE,
    ContentKind.ELSEWHERE: Damage.FOREIGN,
    ContentKind.DAMAGED: Damage.CORRUPT,
    ContentKind.MORE_DAMAGED: Damage.CORRUPT,
}
