"""Runs the fio that is installed on files, with plugpull's arguments."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
PATIENCE = 120.0
SPAN = 1 << 20
BLOCK = 64 << 10


def command(file: Path, arguments: list[str]) -> list[str]:
    # A file in memory takes no O_DIRECT on every kernel; what fio does otherwise stays the same.
    given = ["--direct=0" if argument == "--direct=1" else argument for argument in arguments]
    return ["fio", *(argument.replace("{file}", str(file)) for argument in given)]


def fio(file: Path, arguments: list[str]) -> tuple[int, str]:
    """Exit status and output, which the agent takes together too."""
    done = subprocess.run(
        command(file, arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=file.parent,
    )
    return done.returncode, done.stdout


def moved_by(pid: int) -> int:
    """Bytes a process has had read and written by the disk (proc_pid_io(5))."""
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["read_bytes"]) + int(fields["write_bytes"])


def flip(file: Path, offset: int) -> None:
    with file.open("r+b") as medium:
        medium.seek(offset)
        value = medium.read(1)[0]
        medium.seek(offset)
        medium.write(bytes([value ^ 1]))
