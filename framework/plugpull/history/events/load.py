"""Loads of fio, and reading back what they wrote."""

from __future__ import annotations

from typing import Literal

import msgspec

from plugpull.history.events.base import Event

LoadMode = Literal["read", "write", "randread", "randwrite", "randrw"]
"""fio's ``rw``: the direction of a load, sequential or random. ``randrw`` reads and writes."""


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


class FioFigures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What fio reported of a task on one disk: ``bytes`` transferred in ``seconds``, by ``requests`` in sum.

    ``percentiles`` of the completion times of requests are seconds by per cent ("99.000000"); ``longest`` is the time
    of the slowest one. ``error`` says why there are no figures."""

    bytes: int = 0
    seconds: float = 0.0
    requests: int = 0
    percentiles: dict[str, float] = {}
    longest: float | None = None
    error: str = ""


class FioRan(Event, frozen=True, kw_only=True, tag="fio.ran"):
    """fio ran as the ``task`` of a study on ``disks`` at once, from ``begin`` to ``at``, and ended by itself.

    ``figures`` are fio's own, by disk: what the application sees, which page cache and drive cache can make faster than
    the disk. ``argv`` is the command for the first disk; ``drive_cache`` says whether the drives' write caches were on
    (``None``: as they were). The other fields are those of ``Measured``."""

    begin: float
    task: str
    disks: tuple[str, ...]
    mode: LoadMode
    block: int
    depth: int
    number: int
    planned: int
    repeat: int
    repeats: int
    figures: dict[str, FioFigures] = {}
    argv: tuple[str, ...] = ()
    drive_cache: bool | None = None


class Verified(Event, frozen=True, kw_only=True, tag="verify"):
    """What was written was read back. ``checked`` bytes were compared; ``bad`` are (offset, length, what was wrong)
    in bytes. ``error`` says why nothing could be compared, empty when it could."""

    disk: str
    checked: int
    bad: tuple[tuple[int, int, str], ...] = ()
    error: str = ""
    method: str = ""
