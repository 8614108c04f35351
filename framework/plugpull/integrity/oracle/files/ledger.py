"""The ledger of a file writer: the lines that it reported, put together.

The writer reports each operation before the call and its return after it, as JSON lines in an append-only stream. So
every operation that can have had an effect is known. It does one operation at a time. Several writers of one filesystem
have a directory and a ledger each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from plugpull.integrity.oracle.files.operations import AnyOperation, CreateFile, MakeDirectory, Symlink

VERSION = 1
CUT_OFF = "the file ledger ends before its session did"


class FilesBegun(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="begin"):
    """The first line. ``run`` is in every stamp."""

    run: int
    version: int = VERSION


class OperationReturned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="do", tag="returned"):
    """An operation returned. ``inode`` is that of what it created."""

    number: int
    at: float
    errno: int = 0
    inode: int = 0


class FilesEnded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="do", tag="end"):
    """The last line: the writer does nothing after it. ``operations`` were submitted, and ``returned`` returned."""

    operations: int
    returned: int


Line = FilesBegun | OperationReturned | FilesEnded | AnyOperation


@dataclass
class FileLedger:
    """The known part of a writer's ledger, in the order of its actions.

    Each of ``problems`` is a sentence on something that may be missing or cannot be trusted.
    """

    run: int = 0
    operations: list[AnyOperation] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def decode_file_ledger(data: bytes) -> FileLedger:
    """Decode a writer's lines. Nothing here raises: what cannot be trusted is in ``problems``."""
    reading = _Reading(FileLedger())
    *whole, rest = data.split(b"\n")
    for number, line in enumerate(whole, 1):
        try:
            decoded = _DECODER.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            reading.doubt(f"line {number} cannot be decoded ({error}); the rest is not used")
            break
        reading.take(decoded)
    if rest:
        reading.doubt("the last line is cut off")
    if not reading.ended:
        reading.doubt(CUT_OFF)
    return reading.made


def encode_file_line(line: Line) -> bytes:
    """One line of a ledger, with its end."""
    return msgspec.json.encode(line) + b"\n"


class _Reading:
    """Takes one line after the other."""

    def __init__(self, made: FileLedger) -> None:
        self.made = made
        self.ended = False
        self._begun = False
        self._last = 0.0

    def doubt(self, what: str) -> None:
        if what not in self.made.problems:
            self.made.problems.append(what)

    def take(self, line: Line) -> None:
        if self.ended:
            self.doubt("there are lines after the end of the session")
        elif isinstance(line, FilesBegun):
            self._begin(line)
        elif not self._begun:
            self.doubt("the beginning of the file ledger is missing")
        elif isinstance(line, FilesEnded):
            self._end(line)
        elif isinstance(line, OperationReturned):
            self._return(line)
        else:
            self._submit(line)

    def _begin(self, line: FilesBegun) -> None:
        if self._begun:
            self.doubt("the session begins twice")
        if line.version != VERSION:
            self.doubt(f"the file ledger has the unknown version {line.version}")
        self._begun, self.made.run = True, line.run

    def _submit(self, operation: AnyOperation) -> None:
        known = self.made.operations
        if operation.number != len(known) + 1:
            self.doubt(f"operation {operation.number} comes after operation {len(known)}")
        elif known and known[-1].returned is None:
            self.doubt(f"operation {operation.number} was submitted before operation {known[-1].number} returned")
        if known and operation.number <= known[-1].number:
            return
        self._in_order(operation.submitted)
        known.append(operation)

    def _return(self, line: OperationReturned) -> None:
        known = self.made.operations
        if not known or known[-1].number != line.number or known[-1].returned is not None:
            self.doubt(f"operation {line.number} returned, but it was not the one under way")
            return
        self._in_order(line.at)
        last = msgspec.structs.replace(known[-1], returned=line.at, errno=line.errno)
        if isinstance(last, CreateFile | MakeDirectory | Symlink):
            last = msgspec.structs.replace(last, inode=line.inode)
        known[-1] = last

    def _in_order(self, at: float) -> None:
        if at < self._last:
            self.doubt("times in the file ledger go back")
        self._last = at

    def _end(self, line: FilesEnded) -> None:
        self.ended = True
        known = self.made.operations
        if line.operations != len(known):
            self.doubt(f"the session had {line.operations} operations, {len(known)} are in the ledger")
        elif line.returned != sum(operation.returned is not None for operation in known):
            self.doubt(f"{line.returned} operations returned, not all of those returns are in the ledger")


_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
