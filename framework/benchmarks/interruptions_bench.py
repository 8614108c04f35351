"""A bench of two switches, a command that turns their ports off, and the ways to interrupt it."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fixtures.boards import KmTronic, Port

TOP = Path(__file__).resolve().parents[2]
WITHIN = 5.0
"""Seconds until every port has to be on."""
LONG, SHORT = 600.0, 2.0
"""Seconds that ports are off: where the interruption ends that, and where it does not."""
START = 60.0
"""Seconds a command gets to turn its first port off, on a busy machine."""
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
MEANS = (*SIGNALS, "terminal", "pipe", "full", "kill")
CHEAP = ("cycle files", "cycle boards", "qualify files", "qualify boards")
ENDLESS = frozenset({"pipe", "full"})
"""Means that do not end a command."""
SLOWLY = 0.1
"""Seconds between two looks at a history."""
MARK = "PLUGPULL_INTERRUPTED"
"""A variable in the environment of a run and of all that it starts."""

RIG = """\
[rig]
name = "interrupted"
[dut]
kind = "local"
[[controller]]
name = "usb"
path = "0000:00:99.0"
[[hub]]
name = "hub1"
at = "usb.1"
power = "first.1"
[[disk]]
name = "disk1"
at = "usb.2"
serial = "{serial}"
size = "1 MiB"
"""
FILES = """\
[[switch]]
name = "{name}"
driver = "command"
on = "echo on > {folder}/{name}{{port}}"
off = "echo off > {folder}/{name}{{port}}"
read = "cat {folder}/{name}{{port}}"
ports = 2
mechanism = "mains"
"""
BOARD = """\
[[switch]]
name = "{name}"
driver = "kmtronic"
device = "{device}"
channels = 2
ports = 2
mechanism = "mains"
"""


@dataclass(frozen=True)
class Trial:
    """One interruption. ``moment`` is seconds after the first port went off; after the start, if ``early``."""

    command: str
    means: str
    moment: float
    early: bool


@dataclass(frozen=True)
class Outcome:
    """What became of it. ``took`` is seconds from the interruption until all ports were on for good; None: never."""

    trial: Trial
    took: float | None
    off: bool
    """Was a port off when the interruption came?"""
    status: int | None
    said: str

    @property
    def good(self) -> bool:
        if self.trial.means == "kill":
            return self.took is not None
        return self.took is not None and self.took <= WITHIN


class Bench:
    """Two switches with two ports each, and the rig file that declares them."""

    def __init__(self, folder: Path, boards: Sequence[KmTronic]) -> None:
        self.folder = folder
        self._boards = boards

    def all_on(self) -> bool:
        if self._boards:
            return all(all(board.energised) for board in self._boards)
        return all(
            (self.folder / f"{name}{port}").read_text() != "off\n" for name in ("first", "second") for port in "12"
        )


@contextmanager
def bench(kind: str) -> Iterator[Bench]:
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="plugpull-interrupted-")))
        text = RIG.format(serial=folder.name)
        boards = []
        for name in ("first", "second"):
            if kind.endswith("boards"):
                board = KmTronic(channels=2)
                board.energised[:] = [True, True]
                port = held.enter_context(Port(board))
                boards.append(board)
                text += BOARD.format(name=name, device=port.path)
            else:
                text += FILES.format(name=name, folder=folder)
                for number in "12":
                    (folder / f"{name}{number}").write_text("on\n")
        (folder / "rig.toml").write_text(text)
        yield Bench(folder, boards)


def command_of(trial: Trial, folder: Path) -> list[str]:
    off = SHORT if trial.means in ENDLESS else LONG
    words = ["switch", "cycle", "first.1", "second.2", "second.1", "--off", str(off)]
    if trial.command.startswith("qualify"):
        words = ["switch", "qualify", "hub1.power", "--hold", str(off), "--out", str(folder / "q.json")]
    return [sys.executable, "-m", "plugpull", *words, "--rig", str(folder / "rig.toml")]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TOP / "framework"), "PLUGPULL_CACHE": str(folder / "cache")}


class Running:
    """The command, with its output going where the trial wants it."""

    def __init__(self, trial: Trial, command: Sequence[str], folder: Path) -> None:
        self._trial = trial
        self._ends: list[int] = []
        self._output = folder / "output"
        means, env = trial.means, environment(folder)
        if means == "terminal":
            master, slave = pty.openpty()
            self._ends = [master]
            # A session of its own, whose controlling terminal it is: closing it hangs up.
            acquire = [sys.executable, "-c", _ACQUIRE, *command]
            self.process = subprocess.Popen(acquire, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=folder)
            os.close(slave)
        elif means == "pipe":
            reading, writing = os.pipe()
            self._ends = [reading]
            self.process = subprocess.Popen(command, stdout=writing, stderr=writing, env=env, cwd=folder)
            os.close(writing)
        else:
            output = "/dev/full" if means == "full" else str(self._output)
            with open(output, "wb") as file:
                self.process = subprocess.Popen(command, stdout=file, stderr=file, env=env, cwd=folder)

    def interrupt(self) -> None:
        means = self._trial.means
        if means in SIGNALS:
            self.process.send_signal(signal.Signals[means])
        elif means == "kill":
            self.process.kill()
            self.process.wait()
        elif means == "full":
            with suppress(ProcessLookupError):
                resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (0, 0))
        else:
            self._close()

    def ended(self) -> bool:
        return self.process.poll() is not None

    def said(self) -> str:
        return self._output.read_text(errors="replace")[-1000:] if self._output.exists() else ""

    def _close(self) -> None:
        while self._ends:
            os.close(self._ends.pop())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._close()


_ACQUIRE = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def wait_until(condition: Callable[[], bool], timeout: float, interval: float = 0.005) -> bool:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval)  # files and boards of another process: there is no event for their changes
    return True
