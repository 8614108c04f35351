"""Runs of the stock scenarios on a small virtual bench that gets something wrong on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rig_builder import a_rig

from plugpull.judging.results import Results, ScenarioResult, Verdict
from plugpull.judging.results_io import read_results

STEP = 1.0
"""Seconds between two looks at what a run has written."""
SILENCE = 600.0
"""Seconds, counted in steps of this process, so that time in which nothing on the machine runs does not count. A run
records something each second; a guest that boots does not, for 240 s at most."""
QEMU_CRASHED = "QEMU was killed by SIGSEGV"
UNSTEADY = "but its baseline was not steady"
RIG = (
    a_rig("small")
    .switch(ports=1)
    .stock_controller()
    .disk("victim", "usb.1", "SMALL-1", "16 MiB", rate="2 MiB/s", scratch=True, cable="cables.1")
    .disk("survivor", "usb.2", "SMALL-2", "16 MiB", rate="2 MiB/s", scratch=True)
    .text
)


@dataclass(frozen=True)
class Ended:
    """A run that ended: exit status, what it printed, its directory and results."""

    status: int
    output: str
    directory: Path
    results: Results

    @property
    def only(self) -> ScenarioResult:
        (scenario,) = self.results.scenarios
        return scenario


def run_small(folder: Path, defects: str = "", *arguments: str, rig: str = RIG, steady: bool = False) -> Ended:
    """``plugpull run`` in a process of its own, on the small bench with these ``[[defect]]`` tables.

    Again if QEMU crashed, at most three times in all. Version 10.0 does, in one of some dozen guests, when a disk is
    unplugged with requests under way: ``usb_msd_request_cancelled`` is called for a request whose bus has lost its
    device already, and reads from a null pointer. And again if nothing but a baseline that was not steady kept the run
    from being judged: the machine was busy when the load began. With ``steady``, for a run that fails in any case, also
    if a baseline was not steady.
    """
    ended = _run_small(folder, defects, *arguments, rig=rig)
    for _ in range(2):
        whys = [why for one in ended.results.scenarios for why in one.unknowns]
        unsteady = [UNSTEADY in why for why in whys]
        unjudged = any(unsteady) if steady else ended.results.verdict == Verdict.UNKNOWN and all(unsteady) and whys
        if not unjudged and not any(QEMU_CRASHED in why for why in whys):
            break
        ended = _run_small(folder, defects, *arguments, rig=rig)
    return ended


def run_while_it_goes_on(
    command: list[str], folder: Path, silence: float = SILENCE, size_of: Callable[[Path], int] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder for as long as its output or the files below the folder grow.

    How long a run takes depends on the machine. One that has written nothing for ``silence`` seconds of this process
    hangs; it is killed, and ``TimeoutExpired`` is raised. ``size_of`` is how much is below a folder.
    """
    said = folder / "output.txt"
    with said.open("w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=os.environ, cwd=folder)
        size, quiet = -1, 0.0
        while child.poll() is None:
            try:
                child.wait(STEP)
            except subprocess.TimeoutExpired:
                now = (size_of or written)(folder)
                size, quiet = now, 0.0 if now != size else quiet + STEP
            if quiet >= silence and child.poll() is None:
                child.kill()
                child.wait()
                raise subprocess.TimeoutExpired(command, silence, said.read_text())
    return subprocess.CompletedProcess(command, child.returncode, said.read_text(), "")


def written(folder: Path) -> int:
    """The bytes of all files below a folder. One that is removed meanwhile does not count."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size
    return total


def _run_small(folder: Path, defects: str, *arguments: str, rig: str) -> Ended:
    file = folder / "rig.toml"
    file.write_text(rig + defects)
    command = [sys.executable, "-m", "plugpull", "run", "--rig", str(file), "--out", str(folder / "runs"), *arguments]
    done = run_while_it_goes_on(command, folder)
    latest = folder / "runs" / "latest"
    assert latest.is_dir(), f"no run was made; status {done.returncode}\n{done.stdout}\n{done.stderr}"
    directory = latest.resolve()
    return Ended(done.returncode, done.stdout + done.stderr, directory, read_results(directory))
