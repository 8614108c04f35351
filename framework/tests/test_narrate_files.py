"""Files and their scans in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from plugpull.history import events as ev
from plugpull.report.narrate import Tone, narrate

ON: dict[str, Any] = {"disk": "d", "job": "j"}
ROUND = ev.FileRoundBegun(run=1, round=2, directory="round2", fstype="xfs", uuid="u", pattern="a storm", **ON)
CHECK: dict[str, Any] = {"disk": "d", "fstype": "xfs", "command": "xfs_repair -n", "seconds": 0.5}


@pytest.mark.parametrize(
    ("event", "tone", "words"),
    [
        (ROUND, Tone.PLAIN, "writing files on the xfs of d, round 2: a storm"),
        (ev.FileRoundEnded(asked=True, received=2048, **ON), Tone.PLAIN, "files on d ended: 2 KiB of ledger"),
        (ev.FileRoundEnded(asked=True, received=0, stuck=True, **ON), Tone.WARNING, "is stuck"),
        (ev.FileScanBegun(round=1, directory="x", error="no disk", **ON), Tone.WARNING, "not scanned: no disk"),
        (ev.FileScanEnded(received=9, status=0, **ON), Tone.PLAIN, "the files on d scanned"),
        (ev.FileScanEnded(received=9, status=2, **ON), Tone.WARNING, "status 2"),
        (ev.FilesystemChecked(status=0, **CHECK), Tone.PLAIN, "xfs_repair -n of d: status 0"),
        (ev.FilesystemChecked(status=1, **CHECK), Tone.WARNING, "status 1"),
        (ev.FilesystemChecked(status=None, output="it cannot be run", **CHECK), Tone.PLAIN, "it cannot be run"),
    ],
)
def test_in_words(event: ev.Event, tone: Tone, words: str) -> None:
    narrated = narrate(event)
    assert narrated is not None
    assert narrated.tone is tone
    assert words in narrated.words
