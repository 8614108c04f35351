"""The evidence that the PASS of a check rests on: its kind, its disk and its time span."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Evidence(StrEnum):
    """A kind of evidence in a history, by its source."""

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
    """One statement that a PASS makes, and the evidence that it needs.

    ``what`` completes the sentence "it is not known whether ...". ``begin`` and ``end`` are DUT seconds. ``disk`` is a
    disk of the rig, or empty for the DUT as a whole. ``limit`` is the judged duration in seconds, if the claim is about
    a time; the error of the clock must be smaller.
    """

    what: str
    evidence: tuple[Evidence, ...]
    begin: float
    end: float
    disk: str = ""
    limit: float | None = None
