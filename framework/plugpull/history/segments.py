"""Closed segments: the older part of a long history, compressed.

``history.jsonl`` is the open end of a history. A long run now and then closes it: what is in it becomes a file of the
folder ``history``, ``00001.jsonl.gz`` and so on, and ``history.jsonl`` begins again, empty. ``zcat history/*.gz | cat -
history.jsonl`` is the whole history; line numbers and digests go on from one segment to the next.

A segment appears complete (written beside, synced, renamed) before its lines leave ``history.jsonl``. So whenever the
writer is killed, every line is in one of the two places. Lines that are in both count once, by their numbers.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import shutil
import stat
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader, BytesIO
from itertools import chain, dropwhile
from pathlib import Path
from typing import BinaryIO, Protocol

from plugpull.history.seals import label_of

FOLDER = "history"
"""The folder of closed segments, beside ``history.jsonl``."""
LEVEL = 6
AT_ONCE = 1 << 16
"""Bytes that are read at once."""
DAMAGED = b"(a closed segment of the history is damaged here)\n"
"""What is read in the place of the rest of a damaged segment. It is not JSON, so it counts as a damaged line."""
_NAME = re.compile(r"[0-9]{5}\.jsonl\.gz")
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def open_file(name: str | Path, folder: int | None = None) -> BufferedReader:
    """Open a regular file: a run directory from elsewhere may hold a link, a device or a FIFO. Raises OSError."""
    descriptor = os.open(name, _READ, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a regular file")
    return os.fdopen(descriptor, "rb")


def is_written(file: BinaryIO) -> bool:
    """Whether a living process holds this history for writing: see ``hold``."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def hold(descriptor: int) -> bool:
    """Hold a history for writing, as long as this process lives. Returns False if another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class PackedOrPlain(Protocol):
    """A file, compressed or not."""

    def read1(self, size: int = -1, /) -> bytes: ...


def lines_of(file: PackedOrPlain, limit: int = -1) -> Iterator[list[bytes]]:
    """The lines of a file, many at a time: to read each by itself takes three times as long. A line is read in parts
    of ``limit`` bytes."""
    rest = b""
    while data := file.read1(AT_ONCE):
        end = data.rfind(b"\n") + 1
        if not end:
            rest += data
        else:
            whole, rest = rest + data[:end], data[end:]
            lines = BytesIO(whole).readlines()
            yield lines if limit < 0 or len(whole) <= limit else [part for one in lines for part in _parts(one, limit)]
        while 0 < limit <= len(rest):
            yield [rest[:limit]]
            rest = rest[limit:]
    if rest:
        yield [rest]


def _parts(line: bytes, limit: int) -> Iterator[bytes]:
    return (line[begin : begin + limit] for begin in range(0, len(line), limit))


class Segments:
    """The closed segments of a history. They never change, so each is opened only when it is read."""

    def __init__(self, file: Path) -> None:
        self._folder: int | None = None
        self.names: tuple[str, ...] = ()
        with suppress(FileNotFoundError, NotADirectoryError):
            self._folder = os.open(file.parent / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            self.names = tuple(sorted(name for name in os.listdir(self._folder) if _NAME.fullmatch(name)))

    def lines(self, limit: int = -1) -> Iterator[list[bytes]]:
        """All lines, many at a time; a line in parts of ``limit`` bytes. ``DAMAGED`` stands for what cannot be read."""
        for name in self.names:
            try:
                with open_file(name, self._folder) as packed, gzip.GzipFile(fileobj=packed) as segment:
                    yield from lines_of(segment, limit)
            except (OSError, EOFError, zlib.error):
                yield [DAMAGED]

    def close(self) -> None:
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None


class HistoryLines:
    """The lines of a history, those of closed segments first. ``empty`` is true if there are none, once all are read.

    The open end is opened before the segments are listed. So if it is closed meanwhile, its lines are found twice
    rather than not at all."""

    def __init__(self, file: Path, limit: int = -1) -> None:
        """Open a history. A line is read in parts of ``limit`` bytes. Raises OSError."""
        self.file, self.limit = file, limit
        self.end = open_file(file)
        self.written = is_written(self.end)
        self.empty = True
        self._closed = Segments(file)

    def __enter__(self) -> HistoryLines:
        return self

    def __exit__(self, *_: object) -> None:
        self.end.close()
        self._closed.close()

    @property
    def segmented(self) -> bool:
        """Whether a part of it was closed."""
        return bool(self._closed.names)

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self.many())

    def many(self) -> Iterator[list[bytes]]:
        """The lines, many at a time."""
        reached, last = 0, b""
        for lines in self._closed.lines(self.limit):
            self.empty, last = False, lines[-1]
            yield lines
        if last:
            reached = label_of(last).n or 0
        for lines in lines_of(self.end, self.limit):
            self.empty = False
            if reached:
                lines = _after(lines, reached)
                reached = 0 if lines else reached
            if lines:
                yield lines


def _after(lines: list[bytes], reached: int) -> list[bytes]:
    """The lines without the first ones whose numbers are up to ``reached``."""
    return list(dropwhile(lambda line: (label_of(line).n or reached + 1) <= reached, lines))


def last_closed_line(file: Path) -> bytes:
    """The last line of the closed segments of a history; empty if there are none. Raises OSError."""
    segments = Segments(file)
    segments.names = segments.names[-1:]
    found = deque(segments.lines(), maxlen=1)
    segments.close()
    return found[0][-1] if found else b""


def close_end(file: Path, *, held: bool) -> int:
    """Move the lines of the open end into a closed segment. Returns a descriptor of the new, empty end for appending.

    ``held``: hold it for writing, as the old one was. Raises OSError; then nothing has changed.
    """
    folder = file.parent / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    number = 1 + max((int(name[:5]) for name in os.listdir(folder) if _NAME.fullmatch(name)), default=0)
    segment, half = folder / f"{number:05}.jsonl.gz", folder / f".{number:05}.half"
    try:
        _compress(file, half)
        os.replace(half, segment)
        _sync(folder)
    except OSError:
        with suppress(OSError):
            half.unlink()
        raise
    try:
        return _new_end(file, held)
    except OSError:
        segment.unlink()
        raise


def _compress(file: Path, into: Path) -> None:
    descriptor = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as raw:
        with file.open("rb") as lines, gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as packed:
            shutil.copyfileobj(lines, packed, 1 << 16)
        raw.flush()
        os.fsync(descriptor)


def _new_end(file: Path, held: bool) -> int:
    half = file.with_name(f".{file.name}.next")
    with suppress(FileNotFoundError):
        half.unlink()
    descriptor = os.open(half, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        if held:
            hold(descriptor)
        os.replace(half, file)
        _sync(file.parent)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def drop_repeated(file: Path, reached: int) -> None:
    """Remove from the open end what is in closed segments already, up to line ``reached``: the writer was killed while
    it closed it. Raises OSError."""
    with file.open("rb") as lines:
        first = label_of(lines.readline()).n
        if first is None or first > reached:
            return
        lines.seek(0)
        kept = [line for line in lines if (label_of(line).n or reached + 1) > reached]
    half = file.with_name(f".{file.name}.next")
    with suppress(FileNotFoundError):
        half.unlink()
    descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as raw:
        raw.writelines(kept)
        raw.flush()
        os.fsync(descriptor)
    os.replace(half, file)


def _sync(folder: Path) -> None:
    with suppress(OSError):  # not every filesystem supports it
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
