"""Compiles the writer, once for each machine architecture, and caches it."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from importlib import resources
from pathlib import Path

from plugpull.cache import Cache
from plugpull.errors import RigError

GIVEN = "PLUGPULL_WRITER"
"""Environment variable: path of a writer for this machine that was compiled elsewhere, for use without a compiler."""
FLAGS = ("-O2", "-static", "-s", "-std=gnu11", "-Wall", "-Wextra")
SOURCES = ("main.c", "write.c", "read.c", "stamp.h", "writer.h")
_DEBIAN = {"x86_64": "x86-64", "aarch64": "aarch64", "armv7l": "arm", "i686": "i686", "riscv64": "riscv64"}
"""Architecture in Debian's names of cross compilers, by uname(2)'s name; arm's full triplet differs more."""


def writer_binary(machine: str = "", cache: Cache | None = None) -> bytes:
    """The writer's program for a machine, by its name in uname(2); for this machine by default.

    Raises RigError when no compiler for it is installed.
    """
    machine = machine or platform.machine()
    if machine == platform.machine() and GIVEN in os.environ:
        return _given(Path(os.environ[GIVEN]))
    source = {
        name: resources.files("plugpull.integrity.writing.writer").joinpath(name).read_bytes() for name in SOURCES
    }
    compiler = compiler_for(machine)
    digest = hashlib.sha256(" ".join((*compiler, *FLAGS)).encode())
    for name, text in source.items():
        digest.update(name.encode() + b"\0" + text)

    def build(place: Path) -> None:
        for name, text in source.items():
            (place / name).write_bytes(text)
        _compile([*compiler, *FLAGS, "-o", "writer", *(name for name in SOURCES if name.endswith(".c"))], place)

    made = (cache or Cache.default()).get(
        "writer", f"{machine}-{digest.hexdigest()[:16]}", build, description=f"the writer for {machine}"
    )
    return (made / "writer").read_bytes()


def _given(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RigError(
            f"cannot read the writer {file}, named by {GIVEN}: {error.strerror}", hint=f"correct or unset {GIVEN}"
        ) from None


def compiler_for(machine: str) -> tuple[str, ...]:
    """The command that compiles for a machine. Raises RigError when none is installed."""
    if machine == platform.machine():
        native = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
        if native is None:
            raise RigError(
                "no C compiler is installed, and the writer must be compiled",
                hint=f"run apt-get install gcc libc6-dev, or set {GIVEN} to a writer that was compiled elsewhere",
            )
        return (native,)
    cross = "arm-linux-gnueabihf-gcc" if machine.startswith("armv") else f"{machine}-linux-gnu-gcc"
    if shutil.which(cross) is None:
        name = "arm-linux-gnueabihf" if machine.startswith("armv") else f"{_DEBIAN.get(machine, machine)}-linux-gnu"
        raise RigError(
            f"the DUT is a {machine}, and no compiler for it is installed here to compile the writer",
            hint=f"run apt-get install gcc-{name}",
        )
    return (cross,)


def _compile(command: list[str], place: Path) -> None:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise RigError(
            f"the writer could not be compiled: {words[-1] if words else 'no reason given'}",
            hint="check that the C library's static part is installed (libc6-dev)",
        )
