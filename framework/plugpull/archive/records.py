"""What the archive keeps of a run: plain data, made from ``results.json`` by ``reading.py``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

_LINE = re.compile(r"(\d+\.\d+)(?:\D|$)")
_PLAIN = re.compile(r"[\w.+:/@-]+", re.ASCII)

JUDGED = ("PASS", "FAIL")
"""The verdicts that count. All others, such as UNKNOWN and SKIP, are no result."""


@dataclass(frozen=True, order=True)
class FailureReason:
    """Why a scenario failed, without the wording: two failures with one reason are the same failure.

    ``kind`` is the kind of kernel message, if the finding quotes one. ``role`` is what the disk was to the scenario:
    ``victim``, ``survivor``, ``other``, or ``dut`` for the machine.
    """

    check: str
    kind: str = ""
    role: str = ""

    def __str__(self) -> str:
        kind = f" {self.kind}" if self.kind else ""
        return f"{self.check}{kind} ({self.role})" if self.role else f"{self.check}{kind}"


@dataclass(frozen=True)
class Value:
    """A measured value of one night. ``subject`` is the disk it belongs to, ``parameters`` its conditions in words."""

    metric: str
    value: float
    subject: str = ""
    parameters: str = ""
    unit: str = ""
    better: str = ""
    samples: tuple[float, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """One scenario of a run. ``disk`` is what it cut first: the identity of a disk, or its name in the rig file if the
    run does not say which disk that was, or a hub."""

    scenario: str
    status: str
    disk: str = ""
    seconds: float | None = None
    reasons: tuple[FailureReason, ...] = ()
    detail: str = ""
    kernel: str = ""
    values: tuple[Value, ...] = ()


@dataclass(frozen=True)
class RunRecord:
    """One run. ``started`` is seconds since the epoch, 0 if not known; ``dated`` says that the run itself gives it.

    ``declared`` is what a change of values may be due to, by name: kernel, firmware, rig, plugpull.
    ``notes`` are pairs of kind and text: what was unknown or skipped, and which disks the rig had.
    """

    rig: str
    kernel: str
    started: float
    started_text: str
    plugpull: str = ""
    bench: str = ""
    seed: int | None = None
    verdict: str = ""
    seconds: float | None = None
    complete: bool = True
    dated: bool = False
    cuts_planned: int = 0
    cuts_done: int = 0
    declared: dict[str, str] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()

    @property
    def line(self) -> str:
        return kernel_line(self.kernel)


def kernel_line(kernel: str) -> str:
    """The line of a kernel: its first two numbers, such as 6.12. A name without numbers is its own line.

    >>> kernel_line("6.12.117+deb12-amd64")
    '6.12'
    """
    found = _LINE.match(kernel)
    return found[1] if found else kernel


@lru_cache(maxsize=8192)
def series_key(scenario: str, rig: str, line: str, disk: str = "", parameters: str = "") -> str:
    """What identifies a series: readable, and unique.

    >>> series_key("test_a.py::test_b[fua]", "desk", "6.1", "disk3")
    'test_a.py::test_b[fua] rig=desk kernel=6.1 disk=disk3'
    """
    parts = (("rig", rig), ("kernel", line), ("disk", disk), ("with", parameters))
    return " ".join([scenario, *(f"{name}={_quoted(value)}" for name, value in parts if value)])


def _quoted(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
