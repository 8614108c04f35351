"""``plugpull run`` in a process of its own, on benches without a DUT (``dry_runs.py``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class SplitRun:
    """What came of a run. ``directory`` and ``results`` are those of the newest run."""

    status: int
    output: str
    directory: Path
    results: dict[str, Any]

    def verdicts(self) -> list[tuple[str, str]]:
        """The scenarios and their verdicts."""
        return [(one["id"].partition("::")[2], one["verdict"]) for one in self.results["scenarios"]]


def command(folder: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of ``plugpull run`` in ``folder``."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]),
        "PYTEST_PLUGINS": "dry_runs",
        "PLUGPULL_CACHE": str(folder / "cache"),
        "PLUGPULL_SLOTS": "64",  # guests that other tests boot at the same time must not hold these runs up
    }
    rig = str(TESTS.parents[1] / "rigs/quick.toml")
    return [sys.executable, "-m", "plugpull", "run", "--rig", rig, *words], environment


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def split_run(folder: Path, files: Mapping[str, str], *words: str, out: str = "runs") -> SplitRun:
    """Run these files in ``folder``."""
    write(folder, files)
    line, environment = command(folder, "--out", out, *words)
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False)
    directory = folder / out / "latest"
    results = directory / "results.json"
    return SplitRun(
        status=done.returncode,
        output=done.stdout + done.stderr,
        directory=directory.resolve(),
        results=json.loads(results.read_text()) if results.exists() else {},
    )
