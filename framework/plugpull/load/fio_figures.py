"""What fio reports of how fast a job was, from its report in JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from plugpull.history.events import FioFigures

MOST = 1 << 20
"""Characters at the end of the output that are parsed: an agent sends no more."""
DIRECTIONS = ("read", "write")


def parse_figures(output: str) -> FioFigures:
    """The figures of fio's first job, from its output with ``--output-format=json``; with an ``error`` if it has none.

    Source of the fields: fio's HOWTO, "Interpreting the output". ``runtime`` is in milliseconds and includes a final
    fsync (backend.c, do_io). Completion times are in nanoseconds.
    """
    output = output[-MOST:]
    begin, end = output.find("{\n"), output.rfind("}")
    try:
        job: dict[str, Any] = json.loads(output[begin : end + 1])["jobs"][0]
        parts: list[dict[str, Any]] = [job[name] for name in DIRECTIONS if job[name]["io_bytes"]]
        error = int(job.get("error") or 0)
        if error or not parts:
            return FioFigures(error=f"fio ended with errno {error}" if error else "fio transferred nothing")
        # Of a mixture, the times of the requests are those of the slower direction.
        times = max((part["clat_ns"] for part in parts), key=lambda one: float(one["max"]))
        # fio counts whole milliseconds, so that a very short job has none.
        return FioFigures(
            bytes=sum(int(part["io_bytes"]) for part in parts),
            seconds=max(1, *(int(part["runtime"]) for part in parts)) / 1000,
            requests=sum(int(part["total_ios"]) for part in parts),
            percentiles={key: _seconds(value) for key, value in times.get("percentile", {}).items()},
            longest=_seconds(times["max"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return FioFigures(error=_first_line(output[:begin] if begin > 0 else output))


def _seconds(nanoseconds: object) -> float:
    value = float(nanoseconds) if isinstance(nanoseconds, int | float) else 0.0
    return round(value / 1e9, 9) if math.isfinite(value) else 0.0


def _first_line(text: str) -> str:
    words = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"fio left no report: {words[:200]}" if words else "fio left no report"
