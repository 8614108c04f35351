"""A guest that falls silent while it boots is booted again; one that ended, or only takes its time, is not."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from plugpull.dut.conversation.link import AgentLink
from plugpull.errors import RigError
from plugpull.virtual import snapshot
from plugpull.virtual.console import Console


class Guest:
    """The far ends of a guest's console and of its agent's port."""

    def __init__(self, folder: Path) -> None:
        self.serial, console = socket.socketpair()
        self.port, agent = socket.socketpair()
        self.console = Console(console, folder / "boot.log")
        self.link = AgentLink(agent, lambda message: None)

    def prints(self, seconds: float, every: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.serial.sendall(b"[    1.0] a line of the kernel\n")
            # The pace of the console is what the tests are about.
            time.sleep(every)

    def answers(self) -> None:
        """Answer one request, once it is there."""
        asked = json.loads(self.port.makefile("rb").readline())
        self.port.sendall(json.dumps({"id": asked["id"], "ok": True, "r": {}}).encode() + b"\n")

    def close(self) -> None:
        for end in (self.serial, self.port):
            end.close()
        self.link.close()


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guest]:
    monkeypatch.setattr(snapshot, "ASK_AGAIN", 0.02)
    made = Guest(tmp_path)
    yield made
    made.close()


def test_a_guest_that_falls_silent_is_given_up(guest: Guest) -> None:
    guest.prints(0.1, 0.02)
    with pytest.raises(snapshot.BootStopped, match="silent for"):
        snapshot.await_agent(guest.link, guest.console, 0.3)


def test_a_guest_that_prints_is_waited_for(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints for longer than its silence may last, and is given up for the time that it takes in all."""
    monkeypatch.setattr(snapshot, "BOOT_DEADLINE", 1.5)
    printing = threading.Thread(target=guest.prints, args=(2.0, 0.01))
    printing.start()
    with pytest.raises(RigError, match=r"within 1\.5 s") as caught:
        snapshot.await_agent(guest.link, guest.console, 1.0)
    printing.join()
    assert not isinstance(caught.value, snapshot.BootStopped)


def test_a_guest_that_answers_has_booted(guest: Guest) -> None:
    answering = threading.Thread(target=guest.answers)
    answering.start()
    snapshot.await_agent(guest.link, guest.console, 30.0)
    answering.join()
    assert not guest.link.lost


def test_a_guest_that_ended_is_not_waited_for(guest: Guest) -> None:
    guest.port.close()
    with pytest.raises(snapshot.GuestEnded, match="stream"):
        snapshot.await_agent(guest.link, guest.console, 60.0)


class Machine:
    def __init__(self) -> None:
        self.channels: dict[str, Any] = {}
        self.frozen: list[Path] = []

    def freeze(self, state: Path) -> None:
        self.frozen.append(state)

    def close(self) -> None:
        pass


class Link:
    def call(self, op: str, timeout: float) -> dict[str, Any]:
        return {"op": op, "timeout": timeout}

    def close(self) -> None:
        pass


def silent(times: int, given: list[float], machine: Machine, error: type[RigError] = snapshot.BootStopped) -> Any:
    def start(patience: float) -> tuple[Machine, None, Link]:
        given.append(patience)
        if len(given) <= times:
            raise error("its console has been silent")
        return machine, None, Link()

    return start


def test_a_guest_that_stopped_is_booted_again_with_more_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "clock_rate", lambda link: 1.0)
    given: list[float] = []
    said: list[str] = []
    machine = Machine()
    snapshot.freeze_guest(silent(2, given, machine), Path("state"), said.append)
    assert machine.frozen == [Path("state")]
    assert given == [60.0, 120.0, 180.0]
    assert said[:2] == [
        "its console has been silent for 60 s; booting again",
        "its console has been silent for 120 s; booting again",
    ]


def test_a_kernel_that_never_boots_is_an_error() -> None:
    given: list[float] = []
    with pytest.raises(snapshot.BootStopped):
        snapshot.freeze_guest(silent(9, given, Machine()), Path("state"), cast("Any", lambda text: None))
    assert len(given) == snapshot.BOOTS


def test_a_guest_whose_qemu_ended_is_booted_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "clock_rate", lambda link: 1.0)
    given: list[float] = []
    said: list[str] = []
    machine = Machine()
    snapshot.freeze_guest(silent(1, given, machine, snapshot.GuestEnded), Path("state"), said.append)
    assert machine.frozen == [Path("state")]
    assert said[0] == "QEMU ended before its agent answered; booting again"


def test_a_guest_whose_qemu_ends_each_time_is_an_error() -> None:
    given: list[float] = []
    with pytest.raises(snapshot.GuestEnded):
        snapshot.freeze_guest(silent(9, given, Machine(), snapshot.GuestEnded), Path("state"), lambda _: None)
    assert len(given) == 2


def test_a_guest_whose_qemu_ends_at_the_last_boot_is_an_error() -> None:
    given: list[float] = []

    def start(patience: float) -> Any:
        given.append(patience)
        raise (snapshot.GuestEnded if len(given) == snapshot.BOOTS else snapshot.BootStopped)("its stream ended")

    with pytest.raises(snapshot.GuestEnded):
        snapshot.freeze_guest(start, Path("state"), lambda _: None)
    assert len(given) == snapshot.BOOTS
