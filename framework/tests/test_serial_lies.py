"""Boards that lie: each lie is a RigError with how to fix it, within the deadline, or shows when the port is read."""

from __future__ import annotations

import os
import select
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from boards import PATIENCE, Nobody, a_board, attached, declared, give, wait_for, wait_until

from fixtures.boards import BOARDS, Board, Icse, KmTronic, Lcus, Lie, Port
from plugpull.errors import RigError
from plugpull.switches.base import Switch
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch

TIMEOUT = 0.1
"""Seconds a board that does not answer gets."""
ANSWERING = ("devantech", "kmtronic", "kmtronic-8", "lcus", "numato")
GREETED = (*ANSWERING, "icse")
"""Boards that answer something when they are opened."""
NOBODY = 65534


def board_of(name: str) -> tuple[str, Board]:
    return ("kmtronic", KmTronic(8)) if name == "kmtronic-8" else (name, a_board(name))


def ports_of(name: str, board: Board) -> list[str]:
    first = 0 if name == "numato" else 1
    return [str(first + channel) for channel in range(len(board.energised))]


@contextmanager
def refused() -> Iterator[None]:
    """The block ends in a RigError that says which switch, and how to fix it, before the deadline."""
    begun = time.monotonic()
    with pytest.raises(RigError, match=r"^switch relays") as caught:
        yield
    assert time.monotonic() - begun < PATIENCE
    assert "/dev/pts/" in caught.value.what
    assert len(caught.value.hint) > 20


@contextmanager
def all_on(name: str) -> Iterator[tuple[Switch, Port, list[str]]]:
    """A switch all of whose ports are on."""
    driver, board = board_of(name)
    ports = ports_of(driver, board)
    with attached(driver, board) as (switch, port):
        switch.set_many(ports, True)
        wait_for(board.energised, [True] * len(ports))
        yield switch, port, ports


def lie_from_now(switch: Switch, port: Port, lie: Lie) -> None:
    """Lie; and let the switch be impatient if it would have to wait for that."""
    port.board.lie = lie
    give(switch, PATIENCE if lie in (Lie.STUCK, Lie.OTHER, Lie.STALE, Lie.NONE) else TIMEOUT)


@pytest.mark.parametrize("lie", [Lie.SILENT, Lie.HALF, Lie.OTHER, Lie.STUCK, Lie.LATE, Lie.UNPLUGGED])
@pytest.mark.parametrize("name", ANSWERING)
def test_a_board_that_begins_to_lie(name: str, lie: Lie) -> None:
    with all_on(name) as (switch, port, ports):
        lie_from_now(switch, port, lie)
        with refused():
            switch.set(ports[0], False)
        if lie in (Lie.STUCK, Lie.OTHER):
            return  # it answers, only not what was asked for
        with refused():
            switch.read(ports[0])


@pytest.mark.parametrize("lie", [Lie.SILENT, Lie.HALF, Lie.STUCK, Lie.LATE, Lie.UNPLUGGED])
@pytest.mark.parametrize("name", ANSWERING)
def test_a_board_that_lies_about_several_ports(name: str, lie: Lie) -> None:
    with all_on(name) as (switch, port, ports):
        lie_from_now(switch, port, lie)
        with refused():
            switch.set_many(ports[:2], False)


@pytest.mark.parametrize("name", ANSWERING)
def test_a_stuck_relay_shows_when_it_is_read(name: str) -> None:
    with all_on(name) as (switch, port, ports):
        lie_from_now(switch, port, Lie.STUCK)
        with pytest.raises(RigError, match="was switched off, and the board says it is on"):
            switch.set(ports[0], False)
        assert switch.read(ports[0]) is True
        lie_from_now(switch, port, Lie.NONE)
        switch.set(ports[0], False)
        assert switch.read(ports[0]) is False


@pytest.mark.parametrize("name", sorted(set(ANSWERING) - {"lcus"}))
def test_a_stale_first_answer(name: str) -> None:
    with all_on(name) as (switch, port, ports):
        lie_from_now(switch, port, Lie.STALE)
        with pytest.raises(RigError, match="the board says it is on"):
            switch.set(ports[0], False)


def test_a_stale_first_answer_is_what_lcus_boards_give() -> None:
    with all_on("lcus") as (switch, port, ports):
        lie_from_now(switch, port, Lie.STALE)
        switch.set(ports[0], False)
        assert switch.read(ports[0]) is False


@pytest.mark.parametrize("lie", [Lie.SILENT, Lie.HALF, Lie.LATE, Lie.UNPLUGGED])
@pytest.mark.parametrize("name", GREETED)
def test_a_board_that_lies_from_the_beginning(name: str, lie: Lie) -> None:
    driver, board = board_of(name)
    board.lie = lie
    options: dict[str, Any] = {"read_back": True} if driver == "lcus" else {}
    with refused(), attached(driver, board, timeout=TIMEOUT, **options):
        pass


@pytest.mark.parametrize("name", sorted(BOARDS))
def test_unplugged_in_mid_command(name: str) -> None:
    """A board without read-back has got its bytes when it goes: the command after that one fails."""
    with all_on(name) as (switch, port, ports):
        lie_from_now(switch, port, Lie.UNPLUGGED)
        with refused():
            switch.set(ports[0], False)
            port._thread.join(PATIENCE)
            switch.set(ports[0], False)
        lie_from_now(switch, port, Lie.NONE)
        with refused():
            switch.set(ports[0], True)
        switch.close()


@pytest.mark.parametrize("name", ANSWERING)
def test_a_late_answer_is_not_the_answer_to_the_next_command(name: str) -> None:
    """It comes ten seconds late in life and a second late here: between two commands, and while one waits."""
    with all_on(name) as (switch, port, ports):
        port.late = TIMEOUT + 0.5
        lie_from_now(switch, port, Lie.LATE)
        with refused():
            switch.set(ports[0], False)
        wait_until(lambda: not port.board.energised[0])
        lie_from_now(switch, port, Lie.NONE)
        port.board.energised[0] = True  # a relay that sticks: the late answer says off
        wait_until(lambda: port.has_answered)
        assert select.select([port._slave], [], [], PATIENCE)[0], "the terminal delivers what was written later"
        assert switch.read(ports[0]) is True
        switch.set(ports[0], False)
        assert switch.read(ports[0]) is False


class Slow(KmTronic):
    """Answers a question only after the next one, which is then answered too."""

    owed = b""

    def feed(self, data: bytes) -> bytes:
        answer = super().feed(data)
        if self.lie is Lie.LATE:
            self.owed, answer = answer or self.owed, b""
        elif answer:
            self.owed, answer = b"", self.owed + answer
        return answer


@pytest.mark.parametrize("channels", [2, 8])
def test_a_late_answer_that_comes_while_the_next_one_is_awaited(channels: int) -> None:
    board = Slow(channels)
    with attached("kmtronic", board) as (switch, port):
        switch.set("1", True)
        lie_from_now(switch, port, Lie.LATE)
        with refused():
            switch.set("1", False)
        lie_from_now(switch, port, Lie.NONE)
        board.energised[0] = True
        with pytest.raises(RigError, match="come late, and do not agree"):
            switch.read("1")
        assert switch.read("1") is True


def test_an_icse_that_says_it_is_something_else() -> None:
    class Stranger(Icse):
        def feed(self, data: bytes) -> bytes:
            return b"\x42" if super().feed(data) else b""

    with (
        pytest.raises(RigError, match=r"answered the greeting \(50\) with 42, not with AB, AD or AC"),
        attached("icse", Stranger()),
    ):
        pass


def test_a_board_that_never_stops_talking() -> None:
    class Chatty(Lcus):
        def feed(self, data: bytes) -> bytes:
            return b"CH1: ON" * 2000

    with refused(), attached("lcus", Chatty(2), timeout=TIMEOUT):
        pass


@contextmanager
def somebody_else() -> Iterator[None]:
    """As a user who may do nothing, where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("driver", sorted(BOARDS))
def test_permission_denied(driver: str) -> None:
    with Port(a_board(driver)) as port:
        mode = stat.S_IMODE(os.stat(port.path).st_mode)
        os.chmod(port.path, 0)
        try:
            with somebody_else(), refused_open() as errors:
                open_switch(declared(driver, 1, device=port.path), LocalHost(), Nobody())
        finally:
            os.chmod(port.path, mode)
        assert errors == [
            f"switch relays: cannot open {port.path}: Permission denied",
            f"may this user open {port.path}? Join the group dialout, or use a udev rule (plugpull switch list)",
        ]


@contextmanager
def refused_open() -> Iterator[list[str]]:
    errors: list[str] = []
    with pytest.raises(RigError) as caught:
        yield errors
    errors += [caught.value.what, caught.value.hint]


@pytest.mark.parametrize("name", ANSWERING)
def test_a_driver_leaves_nothing_behind_when_the_board_cannot_be_opened(name: str) -> None:
    descriptors = set(Path("/proc/self/fd").iterdir())
    threads = threading.active_count()
    driver, board = board_of(name)
    board.lie = Lie.SILENT
    options: dict[str, Any] = {"read_back": True} if driver == "lcus" else {}
    with refused(), attached(driver, board, timeout=0.05, **options):
        pass
    assert threading.active_count() == threads
    assert len(set(Path("/proc/self/fd").iterdir())) <= len(descriptors)
