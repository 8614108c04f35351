"""Every parser of every serial relay board, fed with anything: a clean result or a RigError, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from program_doubles import FUZZ, survives

from fixtures.boards import BOARDS
from plugpull.switches import devantech, icse, kmtronic, lcus, numato, sainsmart

CHANNELS = st.integers(1, 32)


def pieces(*likely: bytes) -> st.SearchStrategy[bytes]:
    """Arbitrary bytes, and what a board says in a wrong order, cut short and spoilt."""
    mixed = st.lists(st.sampled_from(likely) | st.binary(max_size=3), max_size=8).map(b"".join)
    return st.binary(max_size=64) | mixed


LCUS = pieces(b"CH1: ON\r\n", b"CH2: OFF\r\n", b"CH1: O", b"FF\r\n", b"CH99: ON\n")
NUMATO = pieces(b"relay read 0", b"relay readall", b"\n\r", b">", b"on", b"off", b"00ff")
SAID = st.text(max_size=12) | st.text("0123456789abcdefABCDEF", max_size=10)


def fuzz(*strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    quick = settings(max_examples=FUZZ, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    return lambda test: quick(given(*strategies)(test))


@fuzz(LCUS, CHANNELS)
def test_lcus_states(answer: bytes, channels: int) -> None:
    states = survives(lcus.parse_states, answer, channels)
    assert states is None or set(states) >= set(range(channels))


@fuzz(NUMATO, st.sampled_from(["relay read 0", "relay readall", "ver", "id get"]))
def test_numato_answers(answer: bytes, command: str) -> None:
    said = survives(numato.parse_answer, answer, command)
    assert said is None or (command.encode() in answer and "\n" not in said and ">" not in said)


@fuzz(SAID)
def test_numato_states(said: str) -> None:
    assert survives(numato.parse_state, said) in (None, said == "on")


@fuzz(SAID, CHANNELS)
def test_numato_masks(said: str, ports: int) -> None:
    bits = survives(numato.parse_mask, said, ports)
    assert bits is None or 0 <= bits < 1 << 32


@fuzz(pieces(b"\xff\x01\x01", b"\xff\x02\x00", b"\xff"), st.integers(0, 1))
def test_kmtronic_state(answer: bytes, channel: int) -> None:
    state = survives(kmtronic.parse_state, answer, channel)
    assert state is None or answer == bytes((0xFF, channel + 1, state))


@fuzz(pieces(b"\x00", b"\x01", b"\x01\x00\x01\x00"), st.sampled_from([4, 8]))
def test_kmtronic_states(answer: bytes, channels: int) -> None:
    states = survives(kmtronic.parse_states, answer, channels)
    assert states is None or bytes(states.values()) == answer


@fuzz(pieces(b"\xab", b"\xac", b"\xad"))
def test_icse_models(answer: bytes) -> None:
    model = survives(icse.parse_model, answer)
    assert model is None or model in icse.RELAYS


@fuzz(
    st.text(max_size=40)
    | st.fixed_dictionaries(
        {"model": st.sampled_from([*icse.RELAYS, "", "x", None]), "energised": st.none() | st.integers() | st.text()}
    ).map(str)
    | st.tuples(st.sampled_from([*icse.RELAYS, "x"]), st.integers()).map(
        lambda state: f'{{"model": "{state[0]}", "energised": {state[1]}}}'
    )
)
def test_icse_memory(text: str) -> None:
    started = survives(icse.parse_memory, text)
    assert started is None or 0 <= started.energised < 1 << icse.RELAYS[started.model]


@fuzz(pieces(b"\x08\x03"))
def test_devantech_versions(answer: bytes) -> None:
    version = survives(devantech.parse_version, answer)
    assert version is None or bytes(version) == answer


@fuzz(pieces(b"\x08"))
def test_devantech_masks(answer: bytes) -> None:
    bits = survives(devantech.parse_mask, answer)
    assert bits is None or bytes((bits,)) == answer


@pytest.mark.parametrize("driver", sorted(BOARDS))
def test_the_boards_of_the_tests_survive_anything_too(driver: str) -> None:
    board = BOARDS[driver]()

    @settings(max_examples=300, deadline=None, database=None)
    @given(st.binary(max_size=64))
    @example(b"\xff\x09\x00\xff\x01\x03\xa0\x01\x01\xa2")
    def feed(data: bytes) -> None:
        assert isinstance(board.feed(data), bytes)

    feed()


def test_what_is_written_is_what_the_sources_show() -> None:
    """Frames that are printed in the manuals and product notes."""
    assert lcus.command(0, True) == bytes.fromhex("a00101a2")
    assert lcus.command(1, False) == bytes.fromhex("a00200a2")
    assert sainsmart.command(0, True) == b":FE050000FF00FE\r\n"
    assert sainsmart.command(0, False) == b":FE0500000000FD\r\n"
    assert kmtronic.command(3, True) == bytes.fromhex("ff0401")
    assert devantech.command(0, True) == b"\x65"
    assert devantech.command(7, False) == b"\x76"
    assert icse.mask(0, 4) == b"\x0f"
    assert icse.mask(0b1111, 4) == b"\x00"
