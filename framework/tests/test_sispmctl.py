"""EnerGenie strips without a guest: the bytes of the double, and what ``sispmctl -s`` prints of each model."""

from __future__ import annotations

import pytest

from fixtures.boards.board import Lie
from fixtures.gadgets import EnerGenie
from plugpull.switches.sispmctl import parse_scan, parse_strips

SCAN = """\
Gembird #0
USB information:  bus 001, device 004
device type:      1-socket mSiS-PM.
serial number:    01:02:03:04:05

Gembird #1
USB information:  bus 001, device 005
device type:      4-socket SiS-PM
serial number:    01:01:51:4c:e3

"""


def test_a_strips_outlets_are_known() -> None:
    assert parse_strips(SCAN) == (("01:02:03:04:05", 1), ("01:01:51:4c:e3", 4))
    assert parse_scan(SCAN.upper().replace("DEVICE TYPE", "device type")) == ()
    assert parse_strips("device type:      4-socket SiS-PM\n") == ()


def test_the_double_speaks_a_strips_bytes() -> None:
    strip = EnerGenie()
    assert strip.report(1) == bytes.fromhex("0101514ce3")
    # sispmctl sends five bytes, and puts nothing into the last three.
    strip.obey(bytes((6, 0, 0x7F, 0, 1)))
    assert [strip.report(3 * outlet) for outlet in (1, 2)] == [bytes((3, 3, 0, 0, 0)), bytes((6, 2, 0, 0, 0))]
    strip.obey(bytes((6, 3)))
    assert strip.report(6) == bytes((6, 3, 0, 0, 0))
    for nonsense in (b"", b"\x06", bytes((5, 0)), bytes((15, 0)), bytes((0, 0))):
        strip.obey(nonsense)
    assert strip.energised == [True, False, True, True], "a report that is cut short says 0"
    with pytest.raises(ValueError, match="five bytes"):
        EnerGenie("01:02")


def test_the_double_lies_about_its_outlets() -> None:
    strip = EnerGenie()
    answers = {}
    for lie in (Lie.SILENT, Lie.HALF, Lie.OTHER, Lie.STALE, Lie.STUCK, Lie.NONE):
        strip.lie = Lie.NONE
        strip.obey(bytes((3, 3)))
        strip.report(3)
        strip.lie = lie
        strip.obey(bytes((3, 0)))
        answers[lie] = strip.report(3), strip.report(1)
    on, off = bytes((3, 3, 0, 0, 0)), bytes((3, 2, 0, 0, 0))
    expected = {Lie.SILENT: None, Lie.HALF: b"\x03", Lie.OTHER: on, Lie.STALE: on, Lie.STUCK: on, Lie.NONE: off}
    assert {lie: outlet for lie, (outlet, _) in answers.items()} == expected
    assert {serial for _, serial in answers.values()} == {strip.report(1)}
