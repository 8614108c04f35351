"""The run and its scenarios, and what else is said of them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from plugpull.history.events.base import Event

ErrorFault = Literal["rig", "framework", "assertion", "interrupt"]
"""Whose fault it is that a scenario stopped with an exception."""

PhaseName = Literal[
    "plug",  # every disk gets its cable and its power
    "mkfs",  # a filesystem is made and mounted
    "array",  # an array is made, changed or checked
    "fill",  # disks are written once, so that everything on them is known
    "load",  # a load is started
    "soak",  # loads run until the next fault of a long run; samples are rarer meanwhile
    "settle",  # loads run until their rates are steady
    "armed",  # a fault waits for its trigger
    "cut",  # ports are switched off
    "hold",  # the fault lasts
    "return",  # ports are switched on again, and disks come back
    "measure",  # the rates of a load are measured
    "recover",  # loads run until they are back at their rates
    "stop",  # loads are ended
    "verify",  # written data is read back
    "scan",  # a filesystem that was cut is recovered, scanned and checked
    "heal",  # whatever is still off is switched on
]
"""What a scenario does for a while."""


class RunBegun(Event, frozen=True, kw_only=True, tag="run.begin"):
    """First event of every history. ``rig`` is the rig file's content as data, ``wall`` is UTC in ISO 8601.

    ``numbered``: the lines of this history carry numbers and seals; ``False`` in those of earlier versions.
    ``planned``: the ids of the scenarios that are to be run, in this order; ``None`` in those of earlier versions.
    ``turn``: the number of the night, if victims were taken in turn (``draw.py``).
    ``shard``: ``I/N`` if the run is one of N shards, whose scenarios together are ``whole``.
    ``bench``: the number of the bench if several share ``planned``, so that this history has a part of it; else 0."""

    version: int
    plugpull: str
    wall: str
    rig_name: str
    rig: dict[str, Any]
    seed: int
    argv: tuple[str, ...] = ()
    controller: dict[str, str] = {}
    numbered: bool = False
    planned: tuple[str, ...] | None = None
    turn: int | None = None
    shard: str = ""
    whole: tuple[str, ...] | None = None
    bench: int = 0


class RunEnded(Event, frozen=True, kw_only=True, tag="run.end"):
    wall: str
    interrupted: str = ""


class ExpectedShape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The check, the subject and the summary of a finding that is expected, in the notation of ``judging/expected.py``.
    ``at_most`` has the largest value of a number in the summary by its name."""

    check: str
    subject: str
    summary: str
    at_most: dict[str, float] = {}


class ExpectedFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Findings that some kernels are known to cause in a scenario.

    ``scenario`` is its id without folders, without its parameters for all of them. ``kernels`` are ranges such as
    ">=6.1.0-1 <6.1.0-56". ``reference`` says where it is known from, such as the title of the fix; ``evidence`` what
    was run with which result. ``module`` is the kernel module at fault: with another build of it nothing is expected.
    """

    name: str
    scenario: str
    kernels: tuple[str, ...]
    reference: str
    evidence: str
    module: str = ""
    findings: tuple[ExpectedShape, ...] = msgspec.field(name="finding")


class ScenarioBegun(Event, frozen=True, kw_only=True, tag="scenario.begin"):
    """``id`` is pytest's node id, ``story`` the scenario's docstring, ``row`` the experiment it stands for. ``without``
    names the disks of the rig file that are not part of the bench any more, because they were set aside. ``expected``
    are the expected findings that are about this scenario, on whatever kernel."""

    id: str
    wall: str
    seed: int
    story: str = ""
    row: str = ""
    without: tuple[str, ...] = ()
    expected: tuple[ExpectedFinding, ...] = ()


class ScenarioEnded(Event, frozen=True, kw_only=True, tag="scenario.end"):
    """``seconds`` is wall time from the first to the last event; ``split`` where it went, in seconds by phase.
    ``asked`` is how many checks the scenario asked for, ``reports`` the number of the agent's last report, ``censuses``
    and ``grace_periods`` how many of them were recorded (``None``: not recorded). ``left_out`` is how many of the
    agent's reports are not for the record: the properties of disks that are not the rig's."""

    id: str
    wall: str
    seconds: float
    split: dict[str, float] = {}
    asked: int | None = None
    reports: int | None = None
    left_out: int = 0
    censuses: int | None = None
    grace_periods: int | None = None


class ScenarioSkipped(Event, frozen=True, kw_only=True, tag="scenario.skipped"):
    """A scenario was not run because this rig cannot serve it, or because its author said so. It stands within the
    scenario, or in none if the scenario was not even begun."""

    id: str
    reason: str


class ScenarioError(Event, frozen=True, kw_only=True, tag="scenario.error"):
    """The scenario itself stopped with an exception. ``fault``: see ``ErrorFault``."""

    fault: ErrorFault
    summary: str
    hint: str = msgspec.field(default="", name="mend")
    traceback: str = ""


class RigFault(Event, frozen=True, kw_only=True, tag="rig.fault"):
    """The bench did not do what it was commanded, or evidence was lost: the verdict cannot be PASS.

    ``subject`` is the disk that the bench failed, if it was only one: nothing is held against that disk."""

    summary: str
    hint: str = msgspec.field(default="", name="mend")
    subject: str = ""


class Note(Event, frozen=True, kw_only=True, tag="note"):
    """Something a reader wants to know and no check judges, such as a defect injected on purpose."""

    text: str
    subject: str = ""


class Phase(Event, frozen=True, kw_only=True, tag="phase"):
    """What the scenario does from here on: ``PhaseName`` lists the phases. ``text`` says it for people."""

    name: PhaseName
    text: str = ""


class Judged(Event, frozen=True, kw_only=True, tag="judge"):
    """The checks the scenario asked for, as data, so that they can be judged again."""

    checks: tuple[dict[str, Any], ...]


class Seal(Event, frozen=True, kw_only=True, tag="seal"):
    """The SHA-256 of all lines since the seal before, chained with that one's. Written by the recorder (``seals.py``);
    part of the file, and of no scenario."""

    digest: str
