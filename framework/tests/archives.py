"""Synthetic archives: directories of ``results.json`` files, made of what happened night by night."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FIRST = datetime(2030, 1, 1, 2, tzinfo=UTC)
KERNEL = "6.1.0-56-amd64"
VERDICTS = {"P": "PASS", "F": "FAIL", "U": "UNKNOWN"}


def date(night: int) -> str:
    """When the run of a night started, as its results say."""
    return (FIRST + timedelta(days=night)).isoformat().replace("+00:00", "Z")


def folder(night: int, rig: str = "desk") -> str:
    return (FIRST + timedelta(days=night)).strftime("%Y%m%dT%H%M%SZ-") + rig


def scenario(
    name: str = "test_a.py::test_b",
    verdict: str = "P",
    *,
    check: str = "kept_pace",
    subject: str = "disk2",
    summary: str = "disk2 stood still for 3.9 s",
    victim: str = "disk1",
    values: Mapping[str, float | Sequence[float]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A scenario that cut a disk. ``values`` are measurements by name: one number, or repeats."""
    finding = {"check": check, "subject": subject, "summary": summary, "at": 1.5}
    return {
        "id": name,
        "verdict": VERDICTS.get(verdict, verdict),
        "seconds": 9.5,
        "sentence": "a sentence",
        "cuts": [{"point": f"{victim}.cable", "mechanism": "data", "trigger": "at once", "victims": [victim]}],
        "findings": [finding] if verdict == "F" else [],
        "unknowns": ["the switch did not acknowledge"] if verdict == "U" else [],
        "measurements": [measurement(metric, value) for metric, value in (values or {}).items()],
        **more,
    }


def measurement(name: str, value: float | Sequence[float], **more: Any) -> dict[str, Any]:
    samples = [] if isinstance(value, float) else sorted(value)
    middle = value if isinstance(value, float) else samples[len(samples) // 2]
    return {
        "name": name,
        "subject": "disk2",
        "value": middle,
        "unit": "B/s",
        "samples": samples,
        "better": "up",
        **more,
    }


def results(night: int, scenarios: Iterable[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """The results of one run."""
    listed = list(scenarios)
    verdicts = [one["verdict"] for one in listed]
    return {
        "schema": 1,
        "plugpull": "0.1.0",
        "rig": "desk",
        "dut": {"kernel": KERNEL, "kind": "virtual"},
        "verdict": next((one for one in ("FAIL", "UNKNOWN") if one in verdicts), "PASS"),
        "sentence": "",
        "started": date(night),
        "seconds": 100.0,
        "seed": night,
        "scenarios": listed,
        **more,
    }


def put(directory: Path, found: Mapping[str, Any], name: str = "") -> Path:
    """Store results as a run of the archive, and return its directory."""
    run = directory / (name or found["started"].replace("-", "").replace(":", "") + "-" + found["rig"])
    run.mkdir(parents=True, exist_ok=True)
    (run / "results.json").write_text(json.dumps(found))
    return run


def put_nights(directory: Path, nights: Mapping[str, str], begin: int = 0) -> None:
    """An archive with one scenario per name, and a letter per night: P, F, U, or a dot for a night without it."""
    for night in range(max(map(len, nights.values()))):
        there = [scenario(name, letters[night]) for name, letters in nights.items() if letters[night] != "."]
        put(directory, results(begin + night, there))
