"""USB meters on a serial line: whole answers on a real pty, and every way in which one can be missing or wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from meter_doubles import PATIENCE, opened_meter, wait_until

from fixtures.boards import Lie, Port, Um25c
from plugpull.errors import RigError
from plugpull.meters.base import Meter, NoReading
from plugpull.meters.um25c import SIZE, parse_frame


@contextmanager
def on_pty(board: Um25c, late: float = 10.0, **options: Any) -> Iterator[tuple[Meter, Port]]:
    with Port(board, late) as port, opened_meter("um25c", device=port.path, **options) as meter:
        yield meter, port


def watts_of(meter: Meter) -> float | None:
    reading = meter.read()
    assert (reading.power is None) == bool(reading.why)
    return None if reading.power is None else reading.power.watts


def first_watts_of(meter: Meter) -> float:
    """The first reading that is one: with a short timeout, a board whose thread stood still answers too late."""
    end = time.monotonic() + PATIENCE
    while (watts := watts_of(meter)) is None:
        assert time.monotonic() < end, "it does not recover"
    return watts


@pytest.mark.parametrize("model", ["UM24C", "UM25C", "UM34C"])
def test_each_model_has_steps_of_its_own(model: str) -> None:
    with on_pty(Um25c(model, 5.12, 0.734)) as (meter, port):
        reading = meter.read()
        assert reading.power is not None
        assert reading.power.volts == pytest.approx(5.12)
        assert reading.power.amps == pytest.approx(0.734)
        assert reading.power.watts == pytest.approx(5.12 * 0.734)
        assert str(meter.identity) == f"{model} at {port.path}"


def test_the_finer_steps_of_a_um25c() -> None:
    with on_pty(Um25c("UM25C", 5.123, 0.0123)) as (meter, _):
        reading = meter.read()
        assert reading.power is not None
        assert (reading.power.volts, reading.power.amps) == pytest.approx((5.123, 0.0123))
        assert 0 < meter.capabilities.resolution < 0.001


def test_no_load_is_a_reading_of_zero() -> None:
    with on_pty(Um25c(amps=0.0)) as (meter, _):
        assert watts_of(meter) == 0.0


def test_values_follow_the_meter() -> None:
    board = Um25c(volts=5.0, amps=0.1)
    with on_pty(board) as (meter, _):
        assert watts_of(meter) == pytest.approx(0.5)
        board.amps = 0.9
        assert watts_of(meter) == pytest.approx(4.5)


def test_a_frame_by_hand() -> None:
    """12 V and 1.5 A from a UM25C: 12000 mV is 2E E0, and 15000 steps of 0.1 mA are 3A 98."""
    frame = bytes.fromhex("09c9 2ee0 3a98") + bytes(122) + b"\xff\xf1"
    assert len(frame) == SIZE
    model, power = parse_frame(frame)
    assert model.name == "UM25C"
    assert power.watts == pytest.approx(18.0)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b"", "did not answer"),
        (Um25c().frame()[:129], "129 of 130 bytes"),
        (b"\x00" * SIZE, "not a UM24C"),
        (Um25c().frame()[:-1] + b"\xf0", "does not fit: ff f0"),
        (Um25c("UM34C").frame()[:-1] + bytes([Um25c("UM34C").frame()[-1] ^ 1]), "does not fit"),
    ],
)
def test_frames_that_are_not_whole(frame: bytes, words: str) -> None:
    with pytest.raises(NoReading, match=words):
        parse_frame(frame)


def test_a_um34c_whose_current_was_altered_on_the_way() -> None:
    frame = bytearray(Um25c("UM34C", 5.0, 0.5).frame())
    frame[3] ^= 0x10  # the lower byte of the volts, which its checksum covers
    with pytest.raises(NoReading, match="does not fit"):
        parse_frame(bytes(frame))


@pytest.mark.parametrize("lie", [Lie.SILENT, Lie.HALF])
def test_a_missing_answer_is_no_reading(lie: Lie) -> None:
    board = Um25c(amps=0.2)
    board.lie = lie
    with on_pty(board, timeout=0.3) as (meter, _):
        begun = time.monotonic()
        assert watts_of(meter) is None
        assert time.monotonic() - begun < PATIENCE
        board.lie = Lie.NONE
        assert first_watts_of(meter) == pytest.approx(1.0), "it recovers"


def test_a_meter_that_is_silent_for_long() -> None:
    board = Um25c(amps=0.2)
    board.lie = Lie.SILENT
    with on_pty(board, timeout=0.1) as (meter, _):
        assert [watts_of(meter) for _ in range(7)] == [None] * 7
        board.lie = Lie.NONE
        assert first_watts_of(meter) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("spoil", "tail"),
    [({0: b"\xff"}, b""), ({128: b"\x00\x00"}, b""), ({}, b"\x00"), ({2: b"\xff\xff\xff\xff"}, b"")],
    ids=["model", "end", "more bytes", "429 W over USB"],
)
def test_a_malformed_answer_is_no_reading(spoil: dict[int, bytes], tail: bytes) -> None:
    board = Um25c(amps=0.2)
    board.spoil, board.tail = spoil, tail
    with on_pty(board, timeout=1.0) as (meter, _):
        assert watts_of(meter) is None
        board.spoil, board.tail = {}, b""
        assert first_watts_of(meter) == pytest.approx(1.0)


def test_a_late_answer_is_not_the_answer_to_a_later_question() -> None:
    """It comes while the next question waits for its own answer, and says what was true long before."""
    board = Um25c(volts=5.0, amps=0.2)
    board.lie = Lie.LATE
    with on_pty(board, late=0.5, timeout=0.2) as (meter, _):
        asked = time.monotonic()
        assert watts_of(meter) is None
        board.lie, board.amps = Lie.NONE, 0.9
        assert watts_of(meter) in (None, pytest.approx(4.5))
        wait_until(asked + 0.8)
        assert first_watts_of(meter) == pytest.approx(4.5)


def test_a_late_answer_that_comes_right_after_the_next_question() -> None:
    """The board answers a question only when the next one comes: each answer is one too old."""

    class Behind(Um25c):
        held = b""

        def feed(self, data: bytes) -> bytes:
            answer, self.held = self.held, super().feed(data)
            return answer

    board = Behind(volts=5.0, amps=0.2)
    with on_pty(board, timeout=0.2) as (meter, _):
        assert watts_of(meter) is None, "its answer is held back"
        board.amps = 0.9
        # The first answer is the one that was held back, from before the change.
        assert first_watts_of(meter) == pytest.approx(4.5)


def test_a_meter_that_is_unplugged() -> None:
    board = Um25c()
    with on_pty(board, timeout=0.3) as (meter, _):
        assert first_watts_of(meter) > 0
        board.lie = Lie.UNPLUGGED
        readings = [meter.read() for _ in range(3)]
        assert [one.power for one in readings] == [None, None, None]
        assert all(one.why for one in readings)


def test_a_port_that_is_missing() -> None:
    with pytest.raises(RigError, match="/dev/nothing"), opened_meter("um25c", device="/dev/nothing"):
        pass
