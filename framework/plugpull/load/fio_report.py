"""Parses fio's report on a job."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

MOST = 1 << 20
"""Characters at the end of the output that are parsed: an agent sends no more."""
MOST_BAD = 10_000
"""The maximum number of bad blocks kept."""
MESSAGE = 1000
"""The maximum length of a message kept, in characters."""
_LARGEST = (1 << 63) - 1
_PLACE = re.compile(r" offset (\d{1,19}), length (\d{1,19})")
_ERROR = re.compile(r"\berr=\d")
_REASON = re.compile(r"(?:fio: )?[a-z0-9-]+: ")


@dataclass(frozen=True)
class FioReport:
    """The result of an fio job.

    ``errno`` is the first error of any of its jobs; sizes are bytes; CPU is in per cent of one. ``longest`` is the
    completion time of the slowest request, seconds; ``None`` if fio does not report it.
    """

    errno: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    usr_cpu: float = 0.0
    sys_cpu: float = 0.0
    message: str = ""
    bad: tuple[tuple[int, int, str], ...] = ()
    longest: float | None = None
    complete: bool = True
    """False when the report itself is missing: fio was killed before it could write it."""


def parse_report(output: str, target: str = "") -> FioReport:
    """Parse fio's output with ``--output-format=json``. Lines of text may precede and follow the object.

    With ``target``: of several jobs, only the one with this description (``measuring_arguments``), and the message
    about it. The time is proportional to the length for any content: a hostile DUT must not hold up the controller.
    """
    output = output[-MOST:]
    begin, end = output.find("{\n"), output.rfind("}")
    text = (output[:begin] + output[end + 1 :]) if 0 <= begin < end else output
    lines = text.splitlines()
    bad = tuple(islice((found for line in lines if (found := _bad_block(line)) is not None), MOST_BAD))
    try:
        every: list[dict[str, Any]] = json.loads(output[begin : end + 1])["jobs"]
        jobs = [job for job in every if job["desc"] == target] if target else every
        if not jobs:
            raise ValueError(f"fio reported nothing of {target}")
        return FioReport(
            errno=next((_count(job["error"]) for job in jobs if job.get("error")), 0),
            read_bytes=_count(sum(_count(job["read"]["io_bytes"]) for job in jobs)),
            written_bytes=_count(sum(_count(job["write"]["io_bytes"]) for job in jobs)),
            usr_cpu=_finite(sum(job.get("usr_cpu", 0.0) for job in jobs)),
            sys_cpu=_finite(sum(job.get("sys_cpu", 0.0) for job in jobs)),
            message=_first(_said_of(lines, jobs[0], every) if target else lines),
            bad=bad,
            longest=_longest(jobs),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return FioReport(message=_first(lines), bad=bad, complete=False)


def _first(lines: Iterable[str]) -> str:
    return next((line.strip()[:MESSAGE] for line in lines if line.strip()), "")


def _said_of(lines: Sequence[str], job: dict[str, Any], every: Sequence[dict[str, Any]]) -> list[str]:
    """The lines that may be about one of several jobs, those that name its file first, then those that name an error:
    fio may say before it that it terminates.

    Source: ``io_u error on file %s: %s`` (io_u.c, __io_u_log_error), and ``pid=%d, err=%d/file:%s`` without a file
    (fio.h, __td_verror).
    """
    files = {str(one["job options"]["filename"]) for one in every}
    own = str(job["job options"]["filename"])
    named = {line: {word.rstrip(":,") for word in line.split()} & files for line in lines}
    general = [line for line in lines if not named[line] and (job.get("error") or not _ERROR.search(line))]
    general.sort(key=lambda line: not _ERROR.search(line))
    return [line for line in lines if own in named[line]] + general


def _bad_block(line: str) -> tuple[int, int, str] | None:
    """Parse a line into (offset, length, reason).

    Such as ``verify: bad magic header 0, wanted acca at file /dev/sdb offset 65536, length 65536 (requested ...)``.
    """
    place = _PLACE.search(line)
    if place is None or _REASON.match(line) is None:
        return None
    why, file, _ = line[: place.start()].partition(" file ")
    offset, length = int(place[1]), int(place[2])
    if not file or max(offset, length) > _LARGEST:
        return None
    return offset, length, why.removeprefix("fio: ").removesuffix(" at").strip().rstrip(",")[:MESSAGE]


def _longest(jobs: list[dict[str, Any]]) -> float | None:
    """Completion latencies, from submission to completion, are in nanoseconds since fio 3.0."""
    found = [job[way].get("clat_ns", {}).get("max") for job in jobs for way in ("read", "write")]
    known = [_count(value) for value in found if value is not None]
    return max(known) / 1e9 if known else None


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise ValueError(f"{value!r:.40} is not a number of bytes")
    return value


def _finite(value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError("not a share of a processor")
    return float(value)
