"""What the end-to-end tests on the lab have in common: plugpull as a process of its own, and what it found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fixtures.boards import Board, KmTronic, Lie, Port
from fixtures.lab import Lab, LabUnavailable, lab
from plugpull.integrity.writing.build import GIVEN, writer_binary

EVERYTHING = frozenset({"hid", "uhubctl", "sispmctl", "ssh", "plugpull"})
"""One image for all chains: each further one would have to be booted once."""
RUN = 240.0
"""Seconds one scenario gets, of the 10 to 20 it takes on a machine that is not busy."""


@dataclass(frozen=True)
class Outcome:
    """A run of ``plugpull run``: its exit status, what it printed, and its results.json."""

    status: int
    printed: str
    results: dict[str, Any]

    @property
    def verdict(self) -> str:
        return str(self.results["verdict"])

    @property
    def cuts(self) -> list[dict[str, Any]]:
        return [cut for scenario in self.results["scenarios"] for cut in scenario["cuts"]]


@contextmanager
def chain(rig: str) -> Iterator[Lab]:
    """A lab with everything, or the test is skipped."""
    try:
        with lab(rig, EVERYTHING) as made:
            yield made
    except LabUnavailable as why:
        pytest.skip(str(why))


def run_here(rig: Path, expression: str, out: Path) -> Outcome:
    """``plugpull run`` on this machine, the controller."""
    line = [sys.executable, "-m", "plugpull", "run", "--rig", str(rig), "-k", expression, "--out", str(out)]
    done = subprocess.run(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN, check=False, cwd=out.parent
    )
    results = out / "latest" / "results.json"
    return Outcome(done.returncode, done.stdout, json.loads(results.read_bytes()) if results.is_file() else {})


def run_in_guest(made: Lab, rig: str, expression: str) -> Outcome:
    """``plugpull run`` in the lab's guest, which is both controller and DUT."""
    made.put("/root/rig.toml", rig.encode())
    made.put("/root/writer", writer_binary())  # there is no compiler in the guest
    line = ["python3", "-m", "plugpull", "run", "--rig", "/root/rig.toml", "-k", expression, "--out", "/root/out"]
    done = made.run(line, RUN, env={GIVEN: "/root/writer"}, cwd="/root")
    there = made.run(["test", "-f", "/root/out/latest/results.json"]).status == 0
    results = json.loads(made.get("/root/out/latest/results.json")) if there else {}
    return Outcome(done.status, done.stdout + done.stderr, results)


YKUSH = """\
[[switch]]
name = "ykush"
driver = "ykush"
via = "dut"
ports = 3
mechanism = "vbus"
serial = "YK12345"
"""
YKUSH_CABLES = {"disk1": "ykush.1", "disk2": "ykush.2", "disk3": "ykush.3"}
UHUBCTL = """\
[[switch]]
name = "ports"
driver = "uhubctl"
via = "dut"
ports = 4
mechanism = "logical"
raw = false
location = "1-1"
"""


HID_RELAY = """\
[[switch]]
name = "relays"
driver = "hid-relay"
via = "dut"
ports = 2
mechanism = "mains"
wiring = "no"
"""


def as_delivered(made: Lab) -> None:
    """Take out of the guest what is there for the framework inside it: on a DUT behind ssh there is python3 and fio."""
    site = made.run(["python3", "-c", "import site; print(site.getsitepackages()[0])"]).stdout.strip()
    moved = made.run(["mv", site, "/root/not-for-the-agent"])
    assert moved.status == 0, moved


@contextmanager
def relays_cutting_power(made: Lab, lie: Lie = Lie.NONE, *, connected: bool = True) -> Iterator[str]:
    """A KMTronic board on this machine, a relay in each disk's power lead (normally closed); its TOML. Not
    ``connected``: it clicks as it should, and the disks are fed from elsewhere."""

    def moved(channel: int, energised: bool) -> None:
        if connected:
            made.cut(f"disk{channel + 1}", "power", on=not energised)

    board: Board = KmTronic(channels=4, on_change=moved)
    board.lie = lie
    with Port(board) as port:
        yield (
            f'[[switch]]\nname = "relay"\ndriver = "kmtronic"\ndevice = "{port.path}"\nports = {len(made.rig.disk)}\n'
            'channels = 4\nmechanism = "mains"\nwiring = "nc"\n'
        )
