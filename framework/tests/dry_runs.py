"""Runs of pytest with the plugin, without a DUT: every scenario gets a rig whose parts can be chosen, and nothing else.

This module is a pytest plugin for those runs (``-p dry_runs``) and, in ``dry_run``, what starts them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from stories import BACK, CUT, GONE, LAST, RATE, RESTORED, SETTLED, STOPPED, Bench, healthy, later

import plugpull.run
import plugpull.soak.turn
from plugpull.checks import Check, data_intact, kept_pace, kernel_clean, removed, returned
from plugpull.checks.victims.discovered import declared_place
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.reader import History, read_history
from plugpull.rig.topology import Topology
from plugpull.run import OpenScenario
from plugpull.scenario import ScenarioRig
from plugpull.streams import Streams

CLOCK = SimpleNamespace(mapped=True, now=lambda: (time.monotonic(), 0.0))


def _attached(name: str) -> object | None:
    """Every disk is there, apart from those that the file ``gone`` names."""
    gone = Path("gone")
    return None if gone.exists() and name in gone.read_text().split() else name


PARTS = ("hub", "disk")
LATE = 60.0
"""DUT seconds until which a disk is waited for that does not return."""
TABLE = SimpleNamespace(attached=_attached)
BENCH: Any = SimpleNamespace(link=SimpleNamespace(clock=CLOCK), seen_from_outside=tuple, disk_table=TABLE)


def cable_cut(victim: str, disks: tuple[str, ...], checks: tuple[Check, ...], *, returns: bool) -> Bench:
    """A story of these disks, of which one is cut: as ``healthy``, whatever their names."""
    bench = Bench(until=LAST if returns else LATE, checks=checks)
    bench.add(
        ev.DutReady(at=10.0, kernel="6.12.1", kind="virtual", how="restored", took=1.0, fio="fio-3.33"),
        ev.Phase(at=10.0, name="plug"),
    )
    for number, disk in enumerate(disks):
        bench.attach(disk, 10.4 + number / 10)
    lost = {"asked": False, "asked_at": None, "exit_status": 1, "errno": 19, "message": "No such device"}
    bench.load(victim, 11.0, CUT + 0.09, **lost)
    for disk in disks:
        if disk != victim:
            bench.load(disk, 11.0, STOPPED + 0.3)
            bench.add(ev.Verified(at=25.0, disk=disk, checked=1 << 20))
    bench.add(ev.LoadSettled(at=SETTLED, disks=disks))
    bench.arm(14.9, victims=(victim,))
    bench.switch("off", CUT)
    bench.detach(victim, GONE)
    bench.switch("on", RESTORED)
    if returns:
        bench.attach(victim, BACK)
    bench.replace(ev.CutArmed, point=f"{victim}.cable")
    bench.replace(ev.Edge, point=f"{victim}.cable", port=victim[-1])
    bench.add(ev.Residue(at=25.5))
    return bench


class DryRig(ScenarioRig):
    """A rig on which nothing happens but what ``play`` puts on record."""

    def play(self) -> None:
        """Record a healthy cable cut, and what it asks to be judged."""
        since = time.monotonic()
        for event in healthy(pace=self._pace).scenario()[1:-1]:
            self.context.recorder.record(self._here(event, since))
            if isinstance(event, ev.Judged):
                self.asked += len(event.checks)

    def _pace(self, disk: str, at: float) -> float:
        """Bytes per second of a disk: the rate that the rig file declares, or that of ``stories``."""
        return next((one.rate for one in self.context.rig.disk if one.name == disk and one.rate), RATE)

    def _here(self, event: ev.Event, since: float) -> ev.Event:
        """The same event on this rig, ``since`` seconds later: its disks are where its file says."""
        if isinstance(event, ev.KernelMessage):
            return msgspec.structs.replace(event, text=self._moved(event.text))
        if isinstance(event, ev.Uevent):
            return msgspec.structs.replace(event, devpath=self._moved(event.devpath))
        if not isinstance(event, ev.DiskAttached):
            return later(event, since)
        known = {"serial": self.context.disk(event.disk).serial, "sysfs": self._moved(event.sysfs)}
        return msgspec.structs.replace(event, place=f"0000:00:05.0/{self._ports(event.disk)}:0", **known)

    def _ports(self, disk: str) -> str:
        rig = {name: [{"name": one.name, "at": one.at} for one in getattr(self.context.rig, name)] for name in PARTS}
        return (declared_place(rig, disk) or ("", "1"))[1]

    def _moved(self, text: str) -> str:
        """USB paths of the disks of ``stories``, as those of this rig."""

        def path(found: re.Match[str]) -> str:
            disk = f"disk{found[2]}"
            if disk not in {one.name for one in self.context.rig.disk}:
                return found[0]
            ports = self._ports(disk).split(".")
            chain = [f"1-{'.'.join(ports[: end + 1])}" for end in range(len(ports))]
            return "/".join(chain) if found[1] else chain[-1]

        return re.sub(r"(1-1/)?1-1\.(\d)", path, text)

    def cut_cable(self, victim: str, *, returns: bool = True) -> None:
        """Record that the cable of a disk is cut while all disks are written. If it does not return, it is gone from
        then on."""
        disks = tuple(disk.name for disk in self.context.rig.disk)
        survivors = tuple(disk for disk in disks if disk != victim)
        others = (kept_pace(survivors), data_intact(survivors)) if survivors else ()
        checks = (removed(victim), returned(victim), *others, kernel_clean())
        self.asked += len(checks)
        since = time.monotonic()
        bench = cable_cut(victim, disks, checks, returns=returns)
        bench.pace = self._pace
        for event in bench.scenario()[1:-1]:
            self.context.recorder.record(self._here(event, since))
        if not returns:
            with Path("gone").open("a") as gone:
                gone.write(f"{victim} ")

    def end(self) -> None:
        pass


def _open(opened: OpenScenario) -> ScenarioRig:
    run = opened._run
    streams = Streams(run.seed, opened._name)
    context = ScenarioContext(run.rig, Topology(run.rig), BENCH, opened._listener, run.recorder, streams, {})
    opened.rig = DryRig(context, opened.draw(streams))
    run.artefacts(opened._name)
    if Path("broken").exists():
        raise RigError("the bench is broken")
    missing = [disk.name for disk in run.rig.disk if _attached(disk.name) is None]
    if missing:
        raise RigError(f"not found within 60 s: {', '.join(missing)}")
    return opened.rig


def pytest_configure(config: pytest.Config) -> None:
    """Take the place of benches."""
    patch = pytest.MonkeyPatch()
    patch.setattr(plugpull.run, "_prepare", lambda *_, **__: None)
    patch.setattr(OpenScenario, "open", _open)
    patch.setattr(plugpull.soak.turn, "BACK_WITHIN", 0.1)
    config.add_cleanup(patch.undo)


@dataclass(frozen=True)
class DryRun:
    """What came of a run."""

    status: int
    output: str
    directory: Path
    history: History
    results: dict[str, Any]


def dry_run(folder: Path, files: Mapping[str, str], *arguments: str, rig: str = "quick.toml") -> DryRun:
    """Run these files with pytest, in ``folder``."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    tests = Path(__file__).parent
    path = os.pathsep.join([str(tests), str(tests.parent)])
    environment = {**os.environ, "PYTHONPATH": path, "PLUGPULL_CACHE": str(folder / "cache")}
    environment.pop("PYTEST_ADDOPTS", None)
    rigs = tests.parents[1] / "rigs"
    command = [sys.executable, "-m", "pytest", "-p", "dry_runs", "-p", "no:cacheprovider", "--rig", str(rigs / rig)]
    command += ["--plugpull-out", str(folder / "runs"), "--rootdir", str(folder), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    directory = folder / "runs/latest"
    results = directory / "results.json"
    return DryRun(
        status=done.returncode,
        output=done.stdout + done.stderr,
        directory=directory,
        history=read_history(directory) if directory.exists() else History(),
        results=json.loads(results.read_text()) if results.exists() else {},
    )
