"""Stamped writes and read-backs in plain words."""

from __future__ import annotations

import pytest

from plugpull.history import events as ev
from plugpull.report.narrate import Tone, narrate

BEGUN = ev.LedgerBegun(
    at=1.0,
    disk="disk1",
    job="stamp1",
    run=1,
    device=2,
    session=3,
    extents=((0, 2048),),
    block=8,
    depth=4,
    order="random",
)


@pytest.mark.parametrize(
    ("event", "tone", "words"),
    [
        (BEGUN, Tone.PLAIN, "stamping disk1, session 3: 1 MiB, random"),
        (ev.LedgerEnded(disk="d", job="j", asked=True, received=2048), Tone.PLAIN, "stamping d ended: 2 KiB of ledger"),
        (ev.LedgerEnded(disk="d", job="j", asked=True, received=0, stuck=True), Tone.WARNING, "is stuck"),
        (
            ev.ReadBackBegun(disk="d", job="", session=1, extents=(), error="d is not attached"),
            Tone.WARNING,
            "is not attached",
        ),
        (ev.ReadBackEnded(disk="d", job="j", received=9, status=0), Tone.PLAIN, "d read back"),
        (ev.ReadBackEnded(disk="d", job="j", received=9, status=1), Tone.WARNING, "status 1"),
        (
            ev.SeenFromOutside(disk="d", ok=False, method="m", detail="8 sectors"),
            Tone.TROUBLE,
            "was written: 8 sectors",
        ),
    ],
)
def test_what_happens_to_data_is_told(event: ev.Event, tone: Tone, words: str) -> None:
    line = narrate(event)
    assert line is not None
    assert line.tone is tone
    assert words in line.words


def test_what_goes_well_and_pieces_are_not_worth_a_line() -> None:
    assert narrate(ev.LedgerPart(disk="d", job="j", offset=0, data="")) is None
    assert narrate(ev.SeenFromOutside(disk="d", ok=True, method="m")) is None
