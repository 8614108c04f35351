"""The writer run by hand, and a plain reading of what it says: the decoders have tests of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plugpull.integrity.oracle import readback
from plugpull.integrity.oracle.readback import SectorRun
from plugpull.integrity.writing.build import writer_binary

PATIENCE = 60.0


def records_of(data: bytes, sizes: Mapping[Any, int]) -> list[tuple[int, bytes]]:
    """(kind, bytes) of each record; the stream must consist of whole ones."""
    found, at = [], 0
    while at < len(data):
        size = sizes[data[at]]
        assert at + size <= len(data), "half a record at the end"
        found.append((data[at], data[at : at + size]))
        at += size
    return found


def found_of(data: bytes) -> list[SectorRun]:
    """The runs of a read-back that came to its end without an error."""
    *runs, (last, end) = records_of(data, readback.SIZES)
    if runs and runs[0][0] == readback.READING:
        del runs[0]  # what was looked for
    assert last == readback.ContentKind.READ
    assert readback.RUN.unpack(end)[2] == 0
    made = []
    for kind, record in runs:
        _, _, errno, sectors, first, number = readback.RUN.unpack_from(record)
        run, device, origin = (
            readback.PLACE.unpack_from(record, 24) if kind == readback.ContentKind.ELSEWHERE else (0, 0, 0)
        )
        raw = record[24:] if kind == readback.ContentKind.DAMAGED else b""
        made.append(SectorRun(readback.ContentKind(kind), first, sectors, number, errno, run, device, origin, raw))
    return made


class Writer:
    """The program, compiled for this machine, in a directory."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "writer"
        self.path.write_bytes(writer_binary())
        self.path.chmod(0o755)

    def start(self, file: Path, arguments: Sequence[str], *, stdout: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        fd = os.open(file, os.O_RDWR)
        try:
            return subprocess.Popen(
                [str(self.path), *arguments, "--fd", str(fd)],
                pass_fds=(fd,),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
            )
        finally:
            os.close(fd)

    def run(self, file: Path, *arguments: str) -> tuple[int, bytes, str]:
        """Exit status, what it said, and its complaints."""
        with self.start(file, arguments) as process:
            out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err.decode()
