"""HID switches within the process, for quick tests: the drivers' own bytes, without USB. The guest has the rest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from boards import PATIENCE, Nobody

from fixtures.boards.board import Lie
from fixtures.gadgets import HidRelay, Ykush
from plugpull.errors import RigError
from plugpull.rig.model import DeclaredSwitch
from plugpull.switches.base import Switch
from plugpull.switches.host import Closing, HidInfo
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch

SHORT = 0.1
"""Seconds a device that does not answer gets."""


def gone() -> RigError:
    return RigError("the HID device does not work any more", hint="was it unplugged? plug it in again")


@dataclass
class YkushDevice(Closing):
    """An open YKUSH. ``queue`` is what it has sent, each report from its time on."""

    board: Ykush
    late: float = 10.0
    queue: list[tuple[float, bytes]] = field(default_factory=list)
    opened: int = 0

    def write(self, report: bytes) -> None:
        assert (report[0], len(report)) == (0, 65)
        assert self.opened == 1
        if self.board.lie is Lie.UNPLUGGED:
            raise gone()
        if (answer := self.board.answer(report[1:])) is not None:
            self.queue.append((time.monotonic() + (self.late if self.board.lie is Lie.LATE else 0), answer))
            self.queue.sort()

    def read(self, count: int, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while not self.queue or self.queue[0][0] > time.monotonic():
            if time.monotonic() >= deadline:
                return b""
            time.sleep(0.001)  # it stands for the kernel's wait
        return self.queue.pop(0)[1][:count]

    def close(self) -> None:
        self.opened -= 1


@dataclass
class RelayDevice(Closing):
    board: HidRelay
    opened: int = 0

    def send_feature(self, report: bytes) -> None:
        assert (report[0], len(report)) == (0, 9)
        self._there()
        self.board.obey(report[1:])

    def get_feature(self, report_id: int, count: int) -> bytes:
        self._there()
        assert report_id == 0
        if self.board.lie is Lie.LATE or (report := self.board.report()) is None:
            raise RigError("the HID device does not answer", hint="is it plugged in?")
        return report[:count]

    def _there(self) -> None:
        if self.board.lie is Lie.UNPLUGGED:
            raise gone()

    def close(self) -> None:
        self.opened -= 1


@dataclass
class HidHost(LocalHost):
    """This machine with these HID devices. ``forbidden``: nobody may open them."""

    devices: list[tuple[HidInfo, YkushDevice | RelayDevice]] = field(default_factory=list)
    forbidden: bool = False

    def hid_devices(self, vendor: int = 0, product: int = 0) -> tuple[HidInfo, ...]:
        return tuple(info for info, _ in self.devices if (info.vendor, info.product) == (vendor, product))

    def hid(self, info: HidInfo) -> Any:
        if self.forbidden:
            raise RigError(f"cannot open the HID device {info.path}: open failed")
        device = next(device for known, device in self.devices if known.path == info.path)
        if device.opened:
            raise RigError(f"cannot open the HID device {info.path}: open failed")
        device.opened += 1
        return device


def ykush(host: HidHost, serial: str = "YK12345", product: int = 0xF2F7, late: float = 10.0) -> YkushDevice:
    device = YkushDevice(Ykush(product), late)
    host.devices.append((HidInfo(0x04D8, product, serial, f"3-{len(host.devices) + 1}:1.0", "YKUSH"), device))
    return device


def relay(host: HidHost, serial: str = "ABCDE", relays: int = 2) -> RelayDevice:
    device = RelayDevice(HidRelay(serial, relays))
    host.devices.append((HidInfo(0x16C0, 0x05DF, "", f"4-{len(host.devices) + 1}:1.0", f"USBRelay{relays}"), device))
    return device


@contextmanager
def opened(host: HidHost, driver: str, ports: int, timeout: float = PATIENCE, **options: Any) -> Iterator[Switch]:
    options.setdefault("mechanism", "vbus" if driver == "ykush" else "mains")
    table = DeclaredSwitch.model_validate(
        {"name": "sw", "driver": driver, "ports": ports, "timeout": timeout, **options}
    )
    switch = open_switch(table, host, Nobody())
    try:
        yield switch
    finally:
        switch.close()


@contextmanager
def refused(match: str, within: float = PATIENCE) -> Iterator[None]:
    """The block ends in a RigError that says which switch and how to fix it."""
    begun = time.monotonic()
    with pytest.raises(RigError, match=match) as caught:
        yield
    assert time.monotonic() - begun < within + PATIENCE
    assert caught.value.what.startswith("switch sw")
    assert caught.value.hint
