"""``plugpull switch`` as a process, on switches whose ports are files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from boards import PATIENCE
from rig_builder import RigBuilder, a_rig

SHELL = {
    "on": "echo on > {folder}/{prefix}{{port}}",
    "off": "echo off > {folder}/{prefix}{{port}}",
    "read": "cat {folder}/{prefix}{{port}}",
}
"""Commands of a switch whose ports are files with this prefix in a folder."""


def shell(folder: Path, prefix: str = "") -> dict[str, str]:
    """The keys ``on``, ``off`` and ``read`` of a switch whose ports are files."""
    return {key: line.format(folder=folder, prefix=prefix) for key, line in SHELL.items()}


def desk(folder: Path, extra: str = "", **keys: str) -> Path:
    """A rig file with the switch "plugs" and a disk; ``keys`` replace those of the switch."""
    # A rig is leased by its disks' serial numbers, and another checkout may be testing at the same time.
    rig = (
        a_rig("desk", "local")
        .switch("plugs", "command", 2, "mains", **{**shell(folder), **keys})
        .controller(path="0000:00:99.0")
        .disk("disk1", serial=f"SWITCH-CLI-{os.getpid()}", size="1 MiB", power="plugs.1")
    )
    file = folder / "desk.toml"
    file.write_text(rig.text + extra)
    for port in "12":
        (folder / port).write_text("on\n")
    return file


def more_switches(name: str, ports: int, **keys: str) -> str:
    """A further [[switch]] table for ``desk``."""
    return RigBuilder("local").switch(name, "command", ports, "mains", **keys).text


def environment(folder: Path) -> dict[str, str]:
    """With a cache of its own, and so journals of its own."""
    return {**os.environ, "PLUGPULL_CACHE": str(folder / "cache")}


def line_of(*words: str) -> list[str]:
    return [sys.executable, "-m", "plugpull", "switch", *words]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line_of(*words),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        check=False,
        env=environment(folder),
    )


@contextmanager
def cycling(folder: Path, *ports: str) -> Iterator[subprocess.Popen[str]]:
    """``plugpull switch cycle`` that has turned its first port off and stays so for longer than any test."""
    words = ("cycle", *ports, "--off", "600", "--rig", "desk.toml")
    process = subprocess.Popen(
        line_of(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment(folder)
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"{ports[0]}: off")
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # another process's files: there is no event for their changes


def two_switches(folder: Path) -> tuple[str, ...]:
    """A desk with a second switch; the files of both switches' first ports, in the order they are switched.

    Whatever happens to the output about the first switch, the second one must be switched.
    """
    second = shell(folder, "s")
    second["off"] += f"; touch {folder}/cut"
    desk(folder, more_switches("second", 2, **second))
    (folder / "s1").write_text("on\n")
    return ("1", "s1")


def states(folder: Path, files: tuple[str, ...]) -> list[str]:
    return [(folder / name).read_text().strip() for name in files]


def cycle_to(folder: Path, output: int, off: str = "0.1") -> subprocess.Popen[bytes]:
    line = line_of("cycle", "plugs.1", "second.1", "--off", off, "--rig", "desk.toml")
    return subprocess.Popen(line, stdout=output, stderr=output, cwd=folder, env=environment(folder))
