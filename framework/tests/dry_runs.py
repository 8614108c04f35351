"""Runs of pytest with the plugin, without a DUT: every scenario gets a rig whose parts can be chosen, and nothing else.

This module is a pytest plugin for those runs (``-p dry_runs``) and, in ``dry_run``, what starts them.
"""

from __future__ import annotations

import json
import os
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
from stories import healthy

import plugpull.run
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.history import events as ev
from plugpull.history.reader import History, read_history
from plugpull.rig.topology import Topology
from plugpull.run import OpenScenario
from plugpull.scenario import ScenarioRig
from plugpull.streams import Streams

CLOCK = SimpleNamespace(mapped=True, now=lambda: (time.monotonic(), 0.0))
BENCH: Any = SimpleNamespace(link=SimpleNamespace(clock=CLOCK), seen_from_outside=tuple)


class DryRig(ScenarioRig):
    """A rig on which nothing happens but what ``play`` puts on record."""

    def play(self) -> None:
        """Record a healthy cable cut, and what it asks to be judged."""
        for event in healthy().scenario()[1:-1]:
            if isinstance(event, ev.DiskAttached):
                serials = {disk.name: disk.serial for disk in self.context.rig.disk}
                event = msgspec.structs.replace(event, serial=serials[event.disk])
            self.context.recorder.record(event)
            if isinstance(event, ev.Judged):
                self.asked += len(event.checks)

    def end(self) -> None:
        pass


def _open(opened: OpenScenario) -> ScenarioRig:
    run = opened._run
    streams = Streams(run.seed, opened._name)
    context = ScenarioContext(run.rig, Topology(run.rig), BENCH, opened._listener, run.recorder, streams, {})
    opened.rig = DryRig(context, opened.draw(streams))
    run.artefacts(opened._name)
    return opened.rig


def pytest_configure(config: pytest.Config) -> None:
    """Take the place of benches."""
    patch = pytest.MonkeyPatch()
    patch.setattr(plugpull.run, "_prepare", lambda *_: None)
    patch.setattr(OpenScenario, "open", _open)
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
