"""Loads of fio, and reading back what they wrote."""

from __future__ import annotations

from typing import Literal

from plugpull.history.events.base import Event

LoadMode = Literal["read", "write", "randread", "randwrite"]
"""fio's ``rw``: the direction of a load, sequential or random."""


class LoadBegun(Event, frozen=True, kw_only=True, tag="load.begin"):
    """fio was started on a disk. ``mode``: see ``LoadMode``; ``block`` bytes per I/O; ``span`` bytes covered."""

    disk: str
    job: str
    mode: LoadMode
    block: int
    depth: int
    span: int
    kname: str = ""
    argv: tuple[str, ...] = ()


class LoadSettled(Event, frozen=True, kw_only=True, tag="load.settled"):
    """From here on the load counts as running steadily on ``disks``."""

    disks: tuple[str, ...]


class LoadEnded(Event, frozen=True, kw_only=True, tag="load.end"):
    """fio ended. ``asked``: whether plugpull ended it, ``asked_at`` when (DUT seconds; ``None``: not recorded).

    ``errno`` is the first I/O error it met (0: none). ``stuck`` means that it could not be ended: its process was
    still there at the deadline. ``longest`` is the time that its slowest request took to complete, seconds (``None``:
    not recorded)."""

    disk: str
    job: str
    asked: bool
    asked_at: float | None = None
    exit_status: int | None = None
    errno: int = 0
    message: str = ""
    read_bytes: int = 0
    written_bytes: int = 0
    stuck: bool = False
    usr_cpu: float = 0.0
    sys_cpu: float = 0.0
    longest: float | None = None


class Measured(Event, frozen=True, kw_only=True, tag="measured"):
    """The rates of ``disks`` were measured from ``begin`` to ``at``, while the same load ran on all of them.

    It is the ``number``-th of ``planned`` measurements of a study, in the ``repeat``-th of its ``repeats`` rounds, all
    counted from 1. ``mode``, ``block`` and ``depth`` are those of ``LoadBegun``."""

    begin: float
    disks: tuple[str, ...]
    mode: LoadMode
    block: int
    depth: int
    number: int
    planned: int
    repeat: int
    repeats: int


class Verified(Event, frozen=True, kw_only=True, tag="verify"):
    """What was written was read back. ``checked`` bytes were compared; ``bad`` are (offset, length, what was wrong)
    in bytes. ``error`` says why nothing could be compared, empty when it could."""

    disk: str
    checked: int
    bad: tuple[tuple[int, int, str], ...] = ()
    error: str = ""
    method: str = ""
