"""What a check's PASS rests on: which kind of evidence, of which disk, over which time."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Evidence(StrEnum):
    """A kind of evidence in a history, by where it comes from."""

    SAMPLES = "samples"
    """``Sampled``: the counters of ``/sys/block/*/stat``."""
    LOG = "kernel log"
    """``KernelMessage``, as the agent read it from ``/dev/kmsg``."""
    UEVENTS = "uevents"
    """``Uevent``, ``DiskAttached`` and ``DiskDetached``."""
    LEDGER = "ledger"
    """``LedgerBegun`` to ``LedgerEnded``, off the DUT."""
    READ_BACK = "read-back"
    """``ReadBackBegun`` to ``ReadBackEnded``, or ``Verified``."""
    CLOCK = "clock"
    """``ClockMapped``: the mapping of the controller's clock onto the DUT's."""
    CENSUS = "census"
    """``Census`` at the beginning and at the end."""
    LOAD = "load"
    """``LoadBegun`` to ``LoadEnded``."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a PASS says, and the evidence that has to be there for it.

    ``what`` completes "it is not known whether ...". ``begin`` and ``end`` are DUT seconds. ``disk`` is the disk of the
    rig that it is about, empty for the DUT as a whole. ``limit`` is the duration in seconds that is judged, if the
    claim is about a time: a clock known less well than that cannot support it.
    """

    what: str
    evidence: tuple[Evidence, ...]
    begin: float
    end: float
    disk: str = ""
    limit: float | None = None
