"""Stamped writes: their ledgers, and reading them back."""

from __future__ import annotations

from typing import Literal

from plugpull.history.events.base import Event

WriteOrder = Literal["sequential", "random", "hot"]
"""The order of stamped writes. ``hot``: nine writes of ten go to a tenth of the blocks."""


class StampingPlanned(Event, frozen=True, kw_only=True, tag="stamp.round"):
    """A round of stamped writing is about to begin: session ``session`` of ``run``, on these disks."""

    run: int
    session: int
    disks: tuple[str, ...]


class StampingOver(Event, frozen=True, kw_only=True, tag="stamp.over"):
    """Stamped writing is over and was read back. ``sessions`` is the last session of each disk."""

    run: int
    disks: tuple[str, ...]
    sessions: dict[str, int]


class LedgerBegun(Event, frozen=True, kw_only=True, tag="ledger.begin"):
    """Stamped writing began on a disk (``integrity/``). ``run``, ``device`` and ``session`` are what its stamps say;
    ``extents`` the (first sector, sectors) that it covers; ``block`` sectors of a write, ``depth`` writes in flight;
    ``fua`` per cent of the writes with FUA; ``fill``: everything was written once before. ``rest`` sectors at the end
    of the extents were written only then. ``bound`` is what can be missing of the ledger at most when it ends early,
    bytes."""

    disk: str
    job: str
    run: int
    device: int
    session: int
    extents: tuple[tuple[int, int], ...]
    block: int
    depth: int
    order: WriteOrder
    flush_writes: int = 0
    flush_ms: int = 0
    fua: int = 0
    rest: int = 0
    fill: bool = False
    kname: str = ""
    bound: int = 0


class LedgerPart(Event, frozen=True, kw_only=True, tag="ledger.part"):
    """A piece of a session's ledger as it arrived: base64 of the bytes from ``offset`` on; see
    ``integrity/oracle/ledger.py``."""

    disk: str
    job: str
    offset: int
    data: str


class LedgerEnded(Event, frozen=True, kw_only=True, tag="ledger.end"):
    """The writer ended. ``received`` bytes of its ledger arrived; ``why`` is what it said on standard error."""

    disk: str
    job: str
    asked: bool
    received: int
    status: int | None = None
    stuck: bool = False
    why: str = ""


class ReadBackBegun(Event, frozen=True, kw_only=True, tag="readback.begin"):
    """A disk is read back after session ``session``. ``job`` names the pieces; ``error`` says why it could not be.
    ``logical`` is the bytes of a logical block. ``again``: only what was found wrong is read, a second time."""

    disk: str
    job: str
    session: int
    extents: tuple[tuple[int, int], ...]
    logical: int = 512
    error: str = ""
    again: bool = False


class ReadBackPart(Event, frozen=True, kw_only=True, tag="readback.part"):
    """A piece of what was found, like ``LedgerPart`` (``integrity/oracle/readback.py``)."""

    disk: str
    job: str
    offset: int
    data: str


class ReadBackEnded(Event, frozen=True, kw_only=True, tag="readback.end"):
    disk: str
    job: str
    received: int
    status: int | None = None
    stuck: bool = False
    why: str = ""
