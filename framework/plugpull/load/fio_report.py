"""What fio said about a job."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

# "verify: bad magic header 0, wanted acca at file /dev/sdb offset 65536, length 65536 (requested block: ...)"
_BAD_BLOCK = re.compile(
    r"^(?:fio: )?(?P<why>(?:verify|crc32c|[a-z0-9-]+): .*?)(?: at)? file .*? offset (?P<offset>\d+), "
    r"length (?P<length>\d+)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class FioReport:
    """``errno`` is the first error of any of its jobs; sizes are bytes; CPU in per cent of one."""

    errno: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    usr_cpu: float = 0.0
    sys_cpu: float = 0.0
    message: str = ""
    bad: tuple[tuple[int, int, str], ...] = ()
    complete: bool = True
    """False when the report itself is missing: fio was killed before it could write it."""


def parse_report(output: str) -> FioReport:
    """fio's output with ``--output-format=json``: there can be lines of text before and after the object."""
    begin, end = output.find("{\n"), output.rfind("}")
    text = (output[:begin] + output[end + 1 :]) if 0 <= begin < end else output
    message = next((line.strip() for line in text.splitlines() if line.strip()), "")
    bad = tuple(
        (int(found["offset"]), int(found["length"]), found["why"].strip().rstrip(","))
        for found in _BAD_BLOCK.finditer(text)
    )
    try:
        jobs: list[dict[str, Any]] = json.loads(output[begin : end + 1])["jobs"]
        return FioReport(
            errno=next((job["error"] for job in jobs if job.get("error")), 0),
            read_bytes=sum(job["read"]["io_bytes"] for job in jobs),
            written_bytes=sum(job["write"]["io_bytes"] for job in jobs),
            usr_cpu=sum(job.get("usr_cpu", 0.0) for job in jobs),
            sys_cpu=sum(job.get("sys_cpu", 0.0) for job in jobs),
            message=message,
            bad=bad,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return FioReport(message=message, bad=bad, complete=False)
