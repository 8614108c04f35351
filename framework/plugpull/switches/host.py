"""The machine a switch is plugged into: the controller itself, or the DUT through its agent.

Drivers speak to their device through this and nothing else, so each works from either side. ``host_local.py`` is the
controller (pyserial, hidapi, subprocess); ``dut/dut_host.py`` is the DUT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self


@dataclass(frozen=True)
class HidInfo:
    """A HID device as the machine lists it. ``path`` opens it (hidapi's path, or a ``/dev/hidrawN``)."""

    vendor: int
    product: int
    serial: str
    path: str
    model: str = ""


@dataclass(frozen=True)
class SerialInfo:
    """A serial port as the machine lists it: its device file and the USB device behind it, if there is one."""

    device: str
    vendor: int | None = None
    product: int | None = None
    serial: str = ""
    model: str = ""


@dataclass(frozen=True)
class Completed:
    """A program that has ended."""

    status: int
    stdout: str
    stderr: str


class SerialLine(Protocol):
    """An open serial port, 8 data bits, no parity, one stop bit, exclusively ours. All raise RigError when the
    device has gone."""

    def write(self, data: bytes) -> None: ...

    def read(self, count: int, timeout: float) -> bytes:
        """Up to ``count`` bytes; fewer, perhaps none, when ``timeout`` seconds have passed."""
        ...

    def read_until(self, end: bytes, timeout: float) -> bytes:
        """Everything up to and including ``end``; what there is, when ``timeout`` seconds have passed. Bounded at
        4096 bytes."""
        ...

    def drop_input(self) -> bytes:
        """Take what has arrived unasked out of the buffer: the tail of an earlier, late answer. Returns it."""
        ...

    def close(self) -> None: ...


class HidDevice(Protocol):
    """An open HID device. All raise RigError when it has gone."""

    def write(self, report: bytes) -> None:
        """An output report; the first byte is the report id (0 where the device has none)."""
        ...

    def read(self, count: int, timeout: float) -> bytes:
        """One input report without a report id of 0; empty when none came within ``timeout`` seconds."""
        ...

    def get_feature(self, report_id: int, count: int) -> bytes:
        """A feature report of at most ``count`` bytes without its report id."""
        ...

    def send_feature(self, report: bytes) -> None:
        """The first byte is the report id."""
        ...

    def close(self) -> None: ...


class Host(Protocol):
    """Where switches are plugged in. All raise RigError, naming this machine, with how to mend it."""

    @property
    def name(self) -> str:
        """For messages: "this machine", "the DUT"."""
        ...

    def serial(self, device: str, baud: int = 9600) -> SerialLine: ...

    def serial_ports(self) -> tuple[SerialInfo, ...]: ...

    def hid_devices(self, vendor: int = 0, product: int = 0) -> tuple[HidInfo, ...]:
        """HID devices; 0 stands for any."""
        ...

    def hid(self, info: HidInfo) -> HidDevice: ...

    def run(self, argv: Sequence[str], timeout: float, environment: Mapping[str, str] | None = None) -> Completed:
        """Run a program to its end, without a shell and without standard input. It is killed, with its children, at
        the deadline, and that is a RigError; so is a program that is not installed."""
        ...

    def read_text(self, path: str) -> str:
        """A small file, such as a sysfs attribute."""
        ...

    def write_text(self, path: str, text: str) -> None:
        """A sysfs attribute: anything else is refused."""
        ...

    def glob(self, pattern: str) -> tuple[str, ...]: ...

    def real_path(self, path: str) -> str: ...


class Person(Protocol):
    """Somebody who can be asked to do or to look at something."""

    def do(self, request: str, timeout: float) -> float:
        """Ask for something to be done and wait until it is said to be; the seconds that took. RigError at the
        deadline, or when there is nobody to ask."""
        ...

    def ask(self, question: str, answers: Sequence[str], timeout: float) -> str:
        """One of ``answers``. RigError as above."""
        ...


class Closing:
    """``with`` for what has a ``close``."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
