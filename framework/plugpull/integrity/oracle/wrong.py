"""Describes wrong sectors: what was promised, what was found, and the evidence for a cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from plugpull.integrity.oracle.ledger import Flush, Write
from plugpull.integrity.oracle.readback import ContentKind, SectorRun
from plugpull.integrity.oracle.stamp import SECTOR, Stamp, claimed

FLIPPED = 16
"""The maximum number of flipped bits in a sector for the damage to be called bit flips."""
_WORD = 8


class Damage(StrEnum):
    """Kinds of damage, the worst first."""

    LOST = "durable lost"
    """Promised data is gone. The version before it is there, or the content from before the session."""
    STALE = "stale"
    """Promised data is gone, and the content is older still: a version that a later promise had replaced, or one that
    an earlier read-back had shown to be gone."""
    CORRUPT = "corrupt"
    """Neither a stamp nor a mix of stamps."""
    TORN = "torn"
    """A mix of versions inside one logical block."""
    MISDIRECTED = "misdirected"
    """A stamp of this run and disk that belongs to another sector."""
    FOREIGN = "foreign"
    """A stamp of another disk or another run."""
    ZEROED = "zeroed"
    UNREADABLE = "unreadable"
    NEVER_WRITTEN = "never written"
    """A stamp of this run, disk and place that no write of a complete ledger can have put there."""


@dataclass(frozen=True)
class Version:
    """The content that a write put on its sectors; ``flush`` is the flush that made it durable."""

    run: int
    device: int
    write: Write
    flush: Flush | None = None

    def stamp(self, sector: int) -> Stamp:
        write = self.write
        return Stamp(self.run, self.device, sector, write.number, sector - write.sector, write.sectors)

    def text(self) -> str:
        """Such as "write 812, completed at 3.214 s and flushed by 3.301 s" (seconds since the session began)."""
        write = self.write
        if write.completed_at is None:
            return f"{name_of(write.number)}, issued at {write.issued_at:.3f} s and never completed"
        if write.error:
            return f"{name_of(write.number)}, which failed at {write.completed_at:.3f} s (errno {write.error})"
        kept = ", with FUA" if write.fua else ""
        if self.flush is not None and self.flush.completed_at is not None:
            kept += f", flushed from {self.flush.submitted_at:.3f} s to {self.flush.completed_at:.3f} s"
        return f"{name_of(write.number)}, completed at {write.completed_at:.3f} s{kept}"


@dataclass(frozen=True)
class Wrong:
    """``sectors`` sectors from ``first`` on whose content is not allowed.

    ``promised`` are the versions that should be there, ``before`` the content from before the session, ``run`` the
    content found (``held``: its write, if it is one of this session). ``later``: something that was issued after the
    promise was given is on the disk. ``own`` is the run and the device of the session.
    """

    kind: Damage
    first: int
    sectors: int
    run: SectorRun
    before: SectorRun | None
    promised: tuple[Version, ...] = ()
    held: Write | None = None
    later: bool = False
    own: tuple[int, int] = (0, 0)
    detail: str = ""

    @property
    def distance(self) -> int:
        """Sectors from the place where misdirected data belongs to where it was found."""
        return self.first - (self.run.origin + self.first - self.run.first)

    def expected(self) -> str:
        """In words."""
        if self.promised:
            return " or ".join(version.text() for version in self.promised)
        if self.before is not None:
            return f"the content from before the session: {content(self.before, self.before.first)}"
        return "one of the versions that were written"

    def found(self) -> str:
        """In words."""
        if self.held is not None:
            return Version(*self.own, self.held).text()
        return content(self.run, self.first) + (f": {self.detail}" if self.detail else "")

    def expected_bytes(self) -> bytes:
        """The expected bytes of the first sector; empty if unknown."""
        return self.promised[-1].stamp(self.first).encode() if self.promised else b""

    def found_bytes(self) -> bytes:
        """The bytes found in the first sector; empty if unknown."""
        if self.run.kind is ContentKind.DAMAGED:
            return self.run.raw
        if self.run.kind is ContentKind.ZEROED:
            return bytes(SECTOR)
        # A write whose number stands where it did not write: what the sector holds is not known from its number.
        if self.held is None or not self.held.sector <= self.first < self.held.end:
            return b""
        return Version(*self.own, self.held).stamp(self.first).encode()

    def evidence(self) -> tuple[str, ...]:
        """The evidence for a cause, one sentence each."""
        said = []
        if self.kind in (Damage.LOST, Damage.STALE, Damage.ZEROED) and self.promised:
            if self.later:
                said.append("writes issued after that promise are on the disk: the flush did not keep the order")
            else:
                said.append("nothing that was issued after that promise is on the disk")
        if self.kind is Damage.MISDIRECTED:
            away = self.distance
            said.append(f"{abs(away)} sectors {'above' if away > 0 else 'below'} its place{_power(abs(away))}")
        return tuple(said)


def name_of(number: int) -> str:
    """A write's number as people say it: with its session only if that is not the first."""
    session, write = number >> 32, number & 0xFFFFFFFF
    return f"write {write}" if session == 1 else f"write {write} of session {session}"


def _power(sectors: int) -> str:
    if sectors and sectors & (sectors - 1) == 0:
        return f", a power of two ({sectors * SECTOR / (1 << 20):g} MiB): addresses wrap around"
    return ""


def content(run: SectorRun, first: int) -> str:
    """A description of a run's content at a sector."""
    if run.kind is ContentKind.STAMPED:
        return name_of(run.number)
    if run.kind is ContentKind.ZEROED:
        return "zeros"
    if run.kind is ContentKind.UNREADABLE:
        return f"nothing readable (errno {run.errno})"
    if run.kind is ContentKind.ELSEWHERE:
        origin = run.origin + first - run.first
        return f"{name_of(run.number)} of sector {origin}, run {run.run:016x}, device {run.device:016x}"
    return "damaged data"


def outside(wrong: Iterable[Wrong], others: Sequence[Wrong]) -> list[Wrong]:
    """The parts of ``wrong`` that do not overlap with ``others``."""
    return outside_of(wrong, [(other.first, other.sectors) for other in others])


def outside_of(wrong: Iterable[Wrong], extents: Sequence[tuple[int, int]]) -> list[Wrong]:
    """The parts of ``wrong`` that are in none of these (first sector, sectors)."""
    left = list(wrong)
    for first, count in extents:
        left = [part for one in left for part in _apart(one, first, first + count)]
    return left


def _apart(wrong: Wrong, begin: int, end: int) -> Iterable[Wrong]:
    last = wrong.first + wrong.sectors
    if end <= wrong.first or last <= begin:
        yield wrong
        return
    if wrong.first < begin:
        yield replace(wrong, sectors=begin - wrong.first)
    if end < last:
        yield replace(wrong, first=end, sectors=last - end)


def merge(wrong: Iterable[Wrong]) -> list[Wrong]:
    """In rising order, with neighbours of the same kind merged."""
    made: list[Wrong] = []
    for one in sorted(wrong, key=lambda each: each.first):
        last = made[-1] if made else None
        if last is not None and last.kind is one.kind and last.first + last.sectors == one.first:
            made[-1] = replace(last, sectors=last.sectors + one.sectors)
        elif last is None or one.first >= last.first + last.sectors:
            made.append(one)
    return made


# --- damaged sectors -------------------------------------------------------------------------------------------------


def describe_damage(wrong: Wrong, candidates: Sequence[Version]) -> Wrong:
    """Analyse a damaged sector: bit flips in a version, a mix of two (torn), or neither (corrupt)."""
    raw = wrong.run.raw
    if len(raw) != SECTOR:
        return wrong
    known = {version.write.number: version.stamp(wrong.first).encode() for version in candidates}
    claim = claimed(raw)
    if claim is not None and (claim.run, claim.device, claim.sector) == (*wrong.own, wrong.first):
        known.setdefault(claim.number, claim.encode())
    flips = min(((_bits(raw, data), number) for number, data in known.items()), default=None)
    if flips is not None and flips[0] <= FLIPPED:
        what = f"{flips[0]} bit{'s' * (flips[0] != 1)} flipped in {name_of(flips[1])}"
        return replace(wrong, kind=Damage.CORRUPT, detail=what)
    mix = _mix(raw, known)
    return replace(wrong, kind=Damage.TORN, detail=mix) if mix else wrong


def _bits(one: bytes, two: bytes) -> int:
    return (int.from_bytes(one, "little") ^ int.from_bytes(two, "little")).bit_count()


def _mix(raw: bytes, known: dict[int, bytes]) -> str:
    """Which bytes belong to which version, if the sector consists of versions and zeros; otherwise empty."""
    owners: list[tuple[int, int]] = []  # (offset, number; -1: zeros)
    at = 0
    while at < SECTOR:
        number, length = max(
            ((number, _common(raw, data, at)) for number, data in (*known.items(), (-1, bytes(SECTOR)))),
            key=lambda pair: pair[1],
        )
        if length < _WORD:
            # The rest was never one of ours: if the sector begins with a version, perhaps the earlier content.
            if owners and all(owner >= 0 for _, owner in owners) and at >= _WORD * 8:
                owners.append((at, -2))
                break
            return ""
        owners.append((at, number))
        at += length
    if len({number for _, number in owners}) < 2:
        return ""
    names = {-1: "zeros", -2: "something else"}
    return ", ".join(f"from byte {at} on {names.get(number) or name_of(number)}" for at, number in owners)


def _common(one: bytes, two: bytes, at: int) -> int:
    """The number of equal bytes from ``at`` on."""
    if one[at:] == two[at:]:
        return SECTOR - at
    return next(length for length in range(SECTOR - at) if one[at + length] != two[at + length])
