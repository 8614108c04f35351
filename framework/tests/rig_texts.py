"""Rig files as text for the tests of their rules, and what is said of one that is spoilt.

In these texts the character ``^`` stands before every place where a mistake is expected; it is taken out before the
text is read, and the places found must be exactly those.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from rig_builder import a_rig

from plugpull.rig.drivers import DriverBook
from plugpull.rig.load import RigFileErrors, parse_rig

BENCH = (
    a_rig()
    .switch("cables")
    .switch("mains", mechanism="mains")
    .controller(ports=4)
    .hub("hub1", "usb.1", cable="cables.4")
    .disk("disk1", "usb.2", "S1", cable="cables.1", power="mains.1")
    .disk("disk2", "hub1.1", "S2", cable="cables.2", power="mains.2")
    .text
)

REAL = (
    BENCH.replace('"virtual"\n[[switch]]', '"local"\n[[switch]]')
    .replace('driver = "virtual"', 'driver = "human"')
    .replace('model = "qemu-xhci"', 'path = "0000:00:14.0"')
)

Edits = tuple[tuple[str, str], ...]


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, f"{old!r} is not in the text"
        text = text.replace(old, new, 1)
    return text


def mistakes(marked: str, drivers: DriverBook | None = None) -> list[str]:
    """What is wrong with a text, after making sure that the mistakes are where the marks are."""
    text = marked.replace("^", "")
    expected = []
    for number, line in enumerate(marked.split("\n"), 1):
        pieces = line.split("^")[:-1]
        expected += [(number, len("".join(pieces[: count + 1])) + 1) for count in range(len(pieces))]
    with pytest.raises(RigFileErrors) as caught:
        parse_rig(text, Path("f.toml"), drivers)
    found = [(mistake.line, mistake.column) for mistake in caught.value.mistakes]
    assert sorted(set(found)) == expected, str(caught.value)
    lines = str(caught.value).split("\n")
    assert len(lines) == len(found)
    for line, (row, column) in zip(lines, found, strict=True):
        assert line.startswith(f"f.toml:{row}:{column}: ")
    return [line.split(": ", 1)[1] for line in lines]
