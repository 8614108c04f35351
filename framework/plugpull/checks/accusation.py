"""A finding before it has the name of the check that makes it."""

from __future__ import annotations

import msgspec

from plugpull.finding import Finding


class Accusation(msgspec.Struct, frozen=True, kw_only=True):
    """What a check holds against a disk, an enclosure or the DUT. ``Collector.take`` makes a finding of it.

    ``at`` is seconds on the DUT's CLOCK_MONOTONIC; ``evidence`` are lines with which a reader can verify the claim.
    ``kind`` is the kind of kernel message that it quotes, if it quotes one.
    """

    subject: str
    summary: str
    at: float | None = None
    evidence: tuple[str, ...] = ()
    kind: str = ""

    def by(self, check: str) -> Finding:
        """The finding of ``check``."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return Finding(check=check, **fields)
