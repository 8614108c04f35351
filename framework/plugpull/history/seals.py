"""Numbers and seals: how lost, doubled, moved and altered lines of a history are noticed.

Every line carries its number in the field ``n``. A ``seal`` line carries the SHA-256 of everything in the file since
the seal before it, chained with that one's digest. Both belong to the file and not to what happened: they reach
neither subscribers nor checks. The recorder writes them; the reader compares them, unless the history
was edited on purpose. They guard against accidents and careless edits, not against a forged history.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import msgspec

from plugpull.history.events import Seal
from plugpull.history.packs import SealedPart

SEAL_EVERY = 200
"""Lines after which a seal is written at the latest."""

Scope = int | None
"""What a line belongs to: the index of a scenario in the history, or ``None`` for the run itself."""


class Label(msgspec.Struct):
    """What the file says about a line. Lines of histories that are not numbered have no ``n``."""

    type: str = ""
    n: int | None = None
    digest: str = ""


_labels: msgspec.json.Decoder[Label] = msgspec.json.Decoder(Label)


def label_of(line: bytes) -> Label:
    """The label of a line; an empty one if it cannot be read."""
    try:
        return _labels.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Label()


def numbered(body: bytes, number: int) -> bytes:
    """The line of an encoded event, with its number and its newline."""
    return b'%b,"n":%d}\n' % (body[:-1], number)


class Chain:
    """The digest of everything since the last seal."""

    def __init__(self) -> None:
        self.lines = 0
        self._hash = hashlib.sha256()

    def add(self, raw: bytes, lines: int = 1) -> None:
        """Add bytes as they are in the file."""
        self.lines += lines
        self._hash.update(raw)

    def after(self, raw: bytes, lines: int) -> Chain:
        """The chain with these bytes added."""
        chain = Chain()
        chain.lines, chain._hash = self.lines + lines, self._hash.copy()
        chain._hash.update(raw)
        return chain

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def restart(self, digest: str, seal: bytes) -> None:
        """Begin a new segment after a seal: with its digest, and with its line, which is not counted."""
        self.lines = 0
        self._hash = hashlib.sha256(digest.encode() + b"\n" + seal)


@dataclass
class _Flaws:
    """What is wrong with the lines of one scope: how many lines of each kind, and the first of them."""

    doubled: list[int] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    unnumbered: int = 0
    altered: list[tuple[int, int]] = field(default_factory=list)
    unsealed: int = 0


@dataclass
class Audit:
    """Compares a history's lines with their numbers and seals, in the order in which they are in the file."""

    numbered: bool = False
    _chain: Chain = field(default_factory=Chain)
    _expected: int = 1
    _unplaced: int = 0
    """Lines without a readable number since the last line that had one."""
    _gaps: list[list[int]] = field(default_factory=list)
    """[first missing number, how many are missing, number after the gap]."""
    _gap_scopes: list[Scope] = field(default_factory=list)
    _flaws: dict[Scope, _Flaws] = field(default_factory=dict)
    _segment: dict[Scope, int] = field(default_factory=dict)
    """Lines since the last seal, by scope."""
    _segment_first: int = 1
    _segment_explained: bool = False

    def line(self, raw: bytes, number: int | None, before: Scope, inside: Scope) -> bool:
        """Take one line that could be read. Returns whether it is the second copy of a line that was there already.

        ``before`` is what a line would belong to that is missing just before it, ``inside`` what it belongs to itself.
        """
        self._chain.add(raw)
        self._segment[inside] = self._segment.get(inside, 0) + 1
        return self._count(number, before)

    def lines(self, raws: Sequence[bytes], numbers: Sequence[int | None], scope: Scope) -> bool:
        """Take lines of one scope that could be read, if they have exactly the numbers that come next. Returns whether
        they were taken; otherwise each has to be taken by itself."""
        count = len(raws)
        if (
            not count
            or numbers[0] != self._expected
            or list(numbers) != list(range(self._expected, self._expected + count))
        ):
            return False
        self._chain.add(b"".join(raws), count)
        self._placed(count, scope)
        return True

    def sealed(self, text: bytes, first: int, sections: Sequence[SealedPart], scope: Scope) -> bool:
        """Take the sections of a text, numbered from ``first`` on, all but the last with their seals, if these are the
        next lines and have the digests that the sections have. Returns whether they were taken."""
        chain, expected, place, digest = self._chain, self._expected, 0, ""
        if first != expected:
            return False
        for number, section in enumerate(sections):
            seal = text[place : section.begin]
            if number and digest.encode() in seal:
                chain, first = Chain(), expected + 1
                chain.restart(digest, seal)
                expected = first
            elif number or seal:
                return False
            chain, digest = chain.after(text[section.begin : section.end], section.lines), section.digest
            if chain.digest != digest:
                return False
            expected, place = expected + section.lines, section.end
        if place != len(text):
            return False
        if len(sections) > 1:
            self._segment, self._segment_explained, self._segment_first = {}, False, first
        self._chain = chain
        self._placed(sections[-1].lines, scope)
        self._expected = expected
        return True

    def _placed(self, count: int, scope: Scope) -> None:
        """So many lines were taken, numbered as expected."""
        self._segment[scope] = self._segment.get(scope, 0) + count
        self.numbered, self._expected, self._unplaced = True, self._expected + count, 0

    def damaged(self, raw: bytes) -> None:
        """Take a line that could not be read: its loss is counted elsewhere."""
        self._chain.add(raw)
        self._unplaced += 1
        self._segment_explained = True

    def blank(self, raw: bytes) -> None:
        """Take an empty line."""
        self._chain.add(raw)

    def seal(self, raw: bytes, seal: Seal, number: int | None, scope: Scope) -> None:
        """Take a seal: everything since the one before it must have its digest."""
        expected, found = seal.digest, self._chain.digest
        doubled = self._count(number, scope)
        if doubled:
            self._chain.add(raw)
            return
        if expected != found and not self._segment_explained:
            for touched in self._segment or {scope: 0}:
                self._of(touched).altered.append((self._segment_first, (number or self._expected) - 1))
        self._chain.restart(expected, raw)
        self._segment, self._segment_explained, self._segment_first = {}, False, self._expected

    def finish(self, cut_short: Collection[Scope]) -> dict[Scope, tuple[str, ...]]:
        """The flaws of each scope in words; none if the history is not numbered.

        Scopes that are ``cut_short`` have no last seal, and need none: that they lack their end is known."""
        if not self.numbered:
            return {}
        for scope, lines in self._segment.items():
            if scope not in cut_short:
                self._of(scope).unsealed += lines
        missing: dict[Scope, list[tuple[int, int]]] = {}
        for (first, count, _), scope in zip(self._gaps, self._gap_scopes, strict=True):
            if count > 0:
                missing.setdefault(scope, []).append((first, count))
        scopes = dict.fromkeys([*missing, *self._flaws])
        words = {scope: _words(missing.get(scope, []), self._of(scope)) for scope in scopes}
        return {scope: tuple(said) for scope, said in words.items() if said}

    def _of(self, scope: Scope) -> _Flaws:
        return self._flaws.setdefault(scope, _Flaws())

    def _count(self, number: int | None, scope: Scope) -> bool:
        """Compare a line's number with the expected one. Returns whether the line was there before."""
        if number is None:
            self._of(scope).unnumbered += 1
            self._unplaced += 1
            self._segment_explained = True
            return False
        self.numbered = True
        if number >= self._expected:
            if number > self._expected:
                lost = max(0, number - self._expected - self._unplaced)
                self._gaps.append([self._expected, lost, number])
                self._gap_scopes.append(scope)
                self._segment_explained = True
            self._expected, self._unplaced = number + 1, 0
            return False
        self._segment_explained = True
        place = bisect_right(self._gaps, number, key=lambda gap: gap[0]) - 1
        if place >= 0 and number < self._gaps[place][2] and self._gaps[place][1] > 0:
            self._gaps[place][1] -= 1
            self._of(scope).moved.append(number)
            return False
        self._of(scope).doubled.append(number)
        return True


def _words(missing: list[tuple[int, int]], flaws: _Flaws) -> list[str]:
    said = []
    if missing:
        count = sum(lines for _, lines in missing)
        where = f"line {missing[0][0]}" if count == 1 else f"the first is line {missing[0][0]}"
        said.append(f"{_lines(count)} missing from the history ({where})")
    if flaws.doubled:
        said.append(f"{_lines(len(flaws.doubled))} in the history twice (the first is line {flaws.doubled[0]})")
    if flaws.moved:
        said.append(f"{_lines(len(flaws.moved))} out of order in the history (the first is line {flaws.moved[0]})")
    if flaws.unnumbered:
        said.append(f"{_lines(flaws.unnumbered)} without a number in a numbered history")
    if flaws.altered:
        first, last = flaws.altered[0]
        more = f" (and {len(flaws.altered) - 1} more parts)" if len(flaws.altered) > 1 else ""
        said.append(
            f"the history was altered after it was written: lines {first} to {last} do not match their digest{more}"
        )
    if flaws.unsealed:
        said.append(f"the last {_lines(flaws.unsealed)} not covered by a digest: the end of the history is missing")
    return said


def _lines(count: int) -> str:
    return "1 line is" if count == 1 else f"{count} lines are"
