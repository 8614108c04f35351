"""A finding: what the DUT, an enclosure or a disk did wrong."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault of the DUT, an enclosure or a disk.

    It is data and not an exception, because judging goes on after it and collects the next one. ``at`` is seconds on
    the DUT's CLOCK_MONOTONIC; ``evidence`` are lines with which a reader can verify the claim. ``expected`` is the name
    of the expected finding (``judging/expected.py``) that it is, if this kernel is known to do that.
    """

    check: str
    subject: str
    summary: str
    at: float | None = None
    evidence: tuple[str, ...] = ()
    kind: str = ""
    """The kind of kernel message that it is about (``kernel/catalogue``), if it is about one."""
    expected: str = ""
