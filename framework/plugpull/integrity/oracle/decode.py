"""Decodes the received pieces of a stream into a ledger or a read-back. Nothing here raises, whatever the bytes.

Content that cannot be trusted is left out and named in ``problems``. The records that did arrive stay valid. But with
any problem, a caller must not call the data intact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from plugpull.integrity.oracle import ledger as led
from plugpull.integrity.oracle import readback as rb
from plugpull.integrity.oracle.ledger import Flush, Ledger, Reason, Write
from plugpull.integrity.oracle.readback import Found, SectorRun

Parts = Iterable[tuple[int, bytes]]
"""(offset in the stream, bytes)."""
CUT_OFF = "the ledger ends before its session did"
_TIME = 1 << 32
_MICRO = 1e-6


def assemble(parts: Parts, problems: list[str]) -> bytes:
    """The stream from its beginning up to the first gap. A piece that arrived twice is used once."""
    data = bytearray()
    for offset, piece in sorted(parts, key=lambda part: part[0]):
        if offset > len(data):
            problems.append(f"{offset - len(data)} bytes are missing at offset {len(data)}; the rest is not used")
            break
        known = data[offset : offset + len(piece)]
        if known != piece[: len(known)]:
            problems.append(f"two pieces differ in the byte at offset {offset}; the rest is not used")
            break
        if known and piece:
            problems.append(f"{len(known)} bytes at offset {offset} arrived twice")
        data += piece[len(known) :]
    return bytes(data)


def _records(data: bytes, sizes: Mapping[int, int], problems: list[str]) -> Iterator[tuple[int, int]]:
    """(kind, offset) of each whole record, up to the first invalid one."""
    at, end = 0, len(data)
    while at < end:
        size = sizes.get(data[at])
        if size is None:
            problems.append(f"the record at offset {at} has the unknown kind {data[at]}; the rest is not used")
            return
        if at + size > end:
            problems.append(f"the last record, at offset {at}, is cut off")
            return
        yield data[at], at
        at += size


# --- the ledger ------------------------------------------------------------------------------------------------------


def decode_ledger(parts: Parts) -> Ledger:
    """Decode the pieces of a ledger; what cannot be trusted is in ``problems``."""
    made = Ledger()
    data = assemble(parts, made.problems)
    reading = _Ledger(made)
    sizes = {int(kind): size for kind, size in led.SIZES.items()}
    for position, (kind, at) in enumerate(_records(data, sizes, made.problems)):
        reading.take(position, kind, data, at)
    if made.reason is None:
        made.problems.append(CUT_OFF)
    made.writes.sort(key=lambda write: write.issued)
    return made


class _Ledger:
    """Takes one record after the other."""

    def __init__(self, made: Ledger) -> None:
        self._made = made
        self._writes: dict[int, Write] = {}
        self._flushes: dict[int, Flush] = {}
        self._base = 0
        self._last = 0
        self._begun = False
        self._said: set[str] = set()

    def take(self, position: int, kind: int, data: bytes, at: int) -> None:
        if self._made.reason is not None:
            self._doubt("there are records after the end of the session")
        elif kind == led.LedgerKind.ISSUED:
            self._issued(position, led.ISSUED.unpack_from(data, at))
        elif kind == led.LedgerKind.COMPLETED:
            self._completed(position, led.SHORT.unpack_from(data, at))
        elif kind == led.LedgerKind.BEGUN:
            self._begin(led.BEGUN.unpack_from(data, at), led.LOGICAL.unpack_from(data, at + led.LOGICAL_AT)[0])
        elif kind == led.LedgerKind.ENDED:
            self._end(led.ENDED.unpack_from(data, at))
        else:
            self._flush(position, kind, led.SHORT.unpack_from(data, at))
        if not self._begun:
            self._doubt("the beginning of the ledger is missing")

    def _doubt(self, what: str) -> None:
        """Report each problem once: a broken ledger is broken in thousands of places."""
        if what not in self._said:
            self._said.add(what)
            self._made.problems.append(what)

    def _time(self, micros: int) -> float:
        """Seconds since the beginning. Records are made in order, so a time that decreases has wrapped around."""
        if micros < self._last:
            self._base += _TIME
        self._last = micros
        return (self._base + micros) * _MICRO

    def _begin(self, fields: tuple[int, ...], logical: int) -> None:
        made = self._made
        made.logical = logical
        _, version, _, made.session, made.run, made.device, made.begun_ns, made.sectors, made.block, made.depth = fields
        if version != led.VERSION:
            self._doubt(f"the ledger has the unknown version {version}")
        if self._begun:
            self._doubt("the session begins twice")
        self._begun = True

    def _issued(self, position: int, fields: tuple[int, ...]) -> None:
        _, flags, _, sectors, number, sector, micros = fields
        if number != len(self._writes) + 1:
            self._doubt(f"write {number} comes after write {len(self._writes)}")
        if number in self._writes or not sectors:
            return
        full = self._made.session << 32 | number
        fua, fill = bool(flags & led.FUA), bool(flags & led.FILL)
        write = Write(full, sector, sectors, position, self._time(micros), fua, fill)
        self._writes[number] = write
        self._made.writes.append(write)

    def _completed(self, position: int, fields: tuple[int, ...]) -> None:
        _, _, error, number, micros, written = fields
        write = self._writes.get(number)
        if write is None or write.completed is not None:
            self._doubt(f"write {number} completes {'twice' if write else 'but was never issued'}")
            return
        if not error and written != write.sectors * 512:
            self._doubt(f"write {number} completes with {written} of {write.sectors * 512} bytes but without an error")
            return
        write.completed, write.completed_at, write.error = position, self._time(micros), error

    def _flush(self, position: int, kind: int, fields: tuple[int, ...]) -> None:
        _, _, error, number, micros, _ = fields
        flush = self._flushes.get(number)
        if kind == led.LedgerKind.FLUSH_SUBMITTED:
            if flush is not None:
                self._doubt(f"flush {number} is submitted twice")
                return
            self._flushes[number] = Flush(number, position, self._time(micros))
            self._made.flushes.append(self._flushes[number])
        elif flush is None or flush.completed is not None:
            self._doubt(f"flush {number} completes {'twice' if flush else 'but was never submitted'}")
        else:
            flush.completed, flush.completed_at, flush.error = position, self._time(micros), error

    def _end(self, fields: tuple[int, ...]) -> None:
        _, reason, errno, issued, completed, flushes, flushed, _ = fields
        made = self._made
        try:
            made.reason = Reason(reason)
        except ValueError:
            self._doubt(f"the session ends for an unknown reason ({reason})")
            return
        made.errno = errno
        known = (
            len(self._writes),
            sum(write.completed is not None for write in self._writes.values()),
            len(self._flushes),
            sum(flush.completed is not None for flush in self._flushes.values()),
        )
        if known != (issued, completed, flushes, flushed):
            self._doubt(
                f"the session's totals differ from its ledger: {issued} writes, {len(self._writes)} in the ledger"
            )
        if made.reason is Reason.STUCK:
            self._doubt(f"{issued - completed} writes were in flight when the writer was ended")


# --- the read-back ---------------------------------------------------------------------------------------------------


def decode_found(parts: Parts) -> Found:
    """Decode the pieces of a read-back; what cannot be trusted is in ``problems``."""
    made = Found()
    data = assemble(parts, made.problems)
    sizes = {int(kind): size for kind, size in rb.SIZES.items()}
    received, reached = 0, -1
    for kind, at in _records(data, sizes, made.problems):
        if made.complete:
            made.problems.append("there are records after the end of the read-back")
            break
        _, _, errno, sectors, first, number = rb.RUN.unpack_from(data, at)
        if kind == rb.READING:
            made.session, made.run, made.device = sectors, first, number
            continue
        if kind == rb.ContentKind.READ:
            made.complete, made.logical = True, sectors
            if number != received:
                made.problems.append(f"the read-back reports {number} sectors, but {received} arrived")
            if errno:
                made.problems.append(f"reading back ended early (errno {errno}), after {first} sectors")
            continue
        if first < reached or not sectors:
            made.problems.append(f"sector {first} comes after sector {reached - 1}; the rest is not used")
            break
        reached, received = first + sectors, received + sectors
        run, device, origin = rb.PLACE.unpack_from(data, at + 24) if kind == rb.ContentKind.ELSEWHERE else (0, 0, 0)
        raw = data[at + 24 : at + 536] if kind == rb.ContentKind.DAMAGED else b""
        made.runs.append(SectorRun(rb.ContentKind(kind), first, sectors, number, errno, run, device, origin, raw))
    if not made.complete:
        made.problems.append("the read-back ends before everything was read")
    return made
