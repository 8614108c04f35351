"""Relay boards on ptys, and the drivers that speak to them, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from fixtures.boards import BOARDS, Board, Port
from plugpull.errors import RigError
from plugpull.rig.model import DeclaredSwitch, Mechanism
from plugpull.switches.base import DeviceSwitch, Switch
from plugpull.switches.host import SerialInfo
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch

PATIENCE = 20.0
"""Seconds a board gets in tests where it answers: for a machine that is busy."""


class Parrot(Board):
    """Says what it hears."""

    def feed(self, data: bytes) -> bytes:
        return data


class Nobody:
    """A person who is not there."""

    def do(self, request: str, timeout: float) -> float:
        raise RigError(f"nobody is there to {request}")

    def ask(self, question: str, answers: Sequence[str], timeout: float) -> str:
        raise RigError(f"nobody is there to answer {question}")


@dataclass
class ToldHost(LocalHost):
    """This machine, with USB serial ports that udev was never asked about, and files of sysfs that are made up."""

    ports: tuple[SerialInfo, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def serial_ports(self) -> tuple[SerialInfo, ...]:
        return self.ports

    def read_text(self, path: str) -> str:
        return self.files[path] if path in self.files else super().read_text(path)

    def real_path(self, path: str) -> str:
        return self.links.get(path) or super().real_path(path)

    def glob(self, pattern: str) -> tuple[str, ...]:
        return tuple(sorted(link for link in self.links if link.startswith(pattern.rstrip("*"))))


def declared(driver: str, ports: int, timeout: float = PATIENCE, **options: Any) -> DeclaredSwitch:
    return DeclaredSwitch.model_validate(
        {
            "name": "relays",
            "driver": driver,
            "ports": ports,
            "mechanism": "mains",
            "timeout": timeout,
            **options,
        }
    )


@contextmanager
def attached(
    driver: str, board: Board, host: LocalHost | None = None, timeout: float = PATIENCE, **options: Any
) -> Iterator[tuple[Switch, Port]]:
    """A driver with its board behind a pty. One port for each relay unless ``ports`` says otherwise."""
    ports = options.pop("ports", len(board.energised))
    with Port(board) as port:
        table = declared(driver, ports, timeout, device=port.path, **options)
        switch = open_switch(table, host or LocalHost(), Nobody())
        try:
            yield switch, port
        finally:
            switch.close()


def a_board(driver: str, **options: Any) -> Board:
    return BOARDS[driver](**options)


MECHANISM = Mechanism.MAINS


def wait_for(relays: list[bool], wanted: list[bool]) -> None:
    """The relays of boards that acknowledge nothing move a moment later."""
    wait_until(lambda: relays == wanted)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that a board does."""
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)  # the board is a thread without an event to wait for
    assert condition()


def give(switch: Switch, seconds: float) -> None:
    """Change how long a switch's device gets to answer."""
    assert isinstance(switch, DeviceSwitch)
    switch._context = replace(switch._context, timeout=seconds)
