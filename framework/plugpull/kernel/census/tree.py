"""Gets a kernel's source: from a directory, a tar archive, or Debian's ``linux-source`` package."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import IO

from plugpull.errors import UsageError
from plugpull.kernel.census.source import CFile, read_c

_VERSION = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)", re.MULTILINE)


class CountedFiles:
    """Which files are counted, and under which room of the table."""

    def __init__(self, lines: Iterable[str]) -> None:
        rows = [line.split() for line in lines if line and not line.startswith("#")]
        self._out = tuple(pattern for room, *patterns in rows if room == "!" for pattern in patterns)
        self._rooms = tuple((room, tuple(patterns)) for room, *patterns in rows if room != "!")

    @property
    def rooms(self) -> tuple[str, ...]:
        """The rooms, in the order of the table."""
        return tuple(dict.fromkeys(room for room, _ in self._rooms))

    def room(self, path: str) -> str | None:
        """The room of a file; ``None`` if it is not counted."""
        if not path.endswith((".c", ".h")) or _any(path, self._out):
            return None
        return next((room for room, patterns in self._rooms if _any(path, patterns)), None)


def _any(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def scope() -> CountedFiles:
    """The files that the catalogue answers for."""
    return CountedFiles(files(__package__).joinpath("scope.txt").read_text(encoding="utf-8").splitlines())


def read_tree(place: Path, wanted: CountedFiles) -> tuple[str, Mapping[str, CFile]]:
    """(version, files by path) of the source at ``place``: a directory, ``linux-*.tar*`` or a ``.deb`` that holds one.
    Raises UsageError if there is none."""
    if not place.exists():
        raise UsageError(
            f"{place}: there is no such file", hint="name a kernel's source: directory, tar archive or .deb"
        )
    version, found = "", {}
    for path, content in _from_folder(place) if place.is_dir() else _from_archive(place):
        text = content.decode("utf-8", "replace")
        if path == "Makefile" and not version:
            version = ".".join(number for _, number in _VERSION.findall(text))
        elif wanted.room(path):
            found[path] = read_c(path, text)
    if not found:
        raise UsageError(
            f"{place} holds none of the files of {wanted.rooms[0]}", hint="name the top of a kernel's source"
        )
    return version or place.name, found


def _from_folder(place: Path) -> Iterator[tuple[str, bytes]]:
    for path in (place / "Makefile", *sorted(place.rglob("*.[ch]"))):
        if path.is_file():
            yield str(path.relative_to(place)), path.read_bytes()


def _from_archive(place: Path) -> Iterator[tuple[str, bytes]]:
    if place.suffix == ".deb":
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(place)], stdout=subprocess.PIPE) as unpacking:
            assert unpacking.stdout is not None
            yield from _nested(unpacking.stdout)
    else:
        with place.open("rb") as file:
            yield from _members(file)


def _nested(package: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=package, mode="r|") as outer:
        for member in outer:
            inner = outer.extractfile(member) if re.search(r"/linux-source-[\d.]+\.tar\.\w+$", member.name) else None
            if inner is not None:
                yield from _members(inner)
                return


def _members(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    stream = file if hasattr(file, "seek") else io.BytesIO(file.read())
    with tarfile.open(fileobj=stream, mode="r|*") as archive:
        for member in archive:
            path = member.name.removeprefix("./").partition("/")[2]
            content = (
                archive.extractfile(member) if member.isfile() and path.endswith((".c", ".h", "Makefile")) else None
            )
            if content is not None:
                yield path, content.read()
