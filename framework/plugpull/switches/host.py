"""The machine a switch is plugged into: the controller itself, or the DUT through its agent.

Drivers reach their device only through a ``Host``, so each driver works on either machine. ``host_local.py`` is the
controller (pyserial, hidapi, subprocess); ``dut/real/dut_host.py`` is the DUT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self


@dataclass(frozen=True)
class HidInfo:
    """A HID device as the machine lists it. ``path`` is hidapi's path, or a ``/dev/hidrawN``."""

    vendor: int
    product: int
    serial: str
    path: str
    model: str = ""


@dataclass(frozen=True)
class SerialInfo:
    """A serial port as the machine lists it: its device file, and its USB device if it has one."""

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
    """An open serial port with 8 data bits, no parity and one stop bit, locked against other programs.

    All methods raise RigError if the device is gone.
    """

    def write(self, data: bytes) -> None: ...

    def read(self, count: int, timeout: float) -> bytes:
        """Up to ``count`` bytes. Fewer, perhaps none, after ``timeout`` seconds."""
        ...

    def read_until(self, end: bytes, timeout: float) -> bytes:
        """All bytes up to and including ``end``. After ``timeout`` seconds or 4096 bytes, the bytes received so far."""
        ...

    def drop_input(self) -> bytes:
        """Empty the input buffer, which may hold the end of an earlier, late answer. Returns its contents."""
        ...

    def close(self) -> None: ...


class HidDevice(Protocol):
    """An open HID device. All methods raise RigError if the device is gone."""

    def write(self, report: bytes) -> None:
        """Send an output report. The first byte is the report id (0 if the device has none)."""
        ...

    def read(self, count: int, timeout: float) -> bytes:
        """One input report, without a report id of 0. Empty if none came within ``timeout`` seconds."""
        ...

    def get_feature(self, report_id: int, count: int) -> bytes:
        """A feature report of at most ``count`` bytes without its report id."""
        ...

    def send_feature(self, report: bytes) -> None:
        """Send a feature report. The first byte is the report id."""
        ...

    def close(self) -> None: ...


class Host(Protocol):
    """A machine that switches are plugged into. All methods raise RigError with the machine's name and a hint."""

    @property
    def name(self) -> str:
        """For messages: "this machine", "the DUT"."""
        ...

    def serial(self, device: str, baud: int = 9600) -> SerialLine: ...

    def serial_ports(self) -> tuple[SerialInfo, ...]: ...

    def hid_devices(self, vendor: int = 0, product: int = 0) -> tuple[HidInfo, ...]:
        """HID devices of this vendor and product; 0 stands for any."""
        ...

    def hid(self, info: HidInfo) -> HidDevice: ...

    def run(self, argv: Sequence[str], timeout: float, environment: Mapping[str, str] | None = None) -> Completed:
        """Run a program to its end, without a shell and without standard input.

        After ``timeout`` seconds it is killed with its children. Raises RigError then, and if it is not installed.
        """
        ...

    def read_text(self, path: str) -> str:
        """A small file, such as a sysfs attribute."""
        ...

    def write_text(self, path: str, text: str) -> None:
        """Write a sysfs attribute. Any other file is refused."""
        ...

    def glob(self, pattern: str) -> tuple[str, ...]: ...

    def real_path(self, path: str) -> str: ...


class Person(Protocol):
    """A person who can be asked to do or to look at something."""

    def do(self, request: str, timeout: float) -> float:
        """Ask for something to be done, and return the seconds until the person confirms it. Raises RigError after
        ``timeout`` seconds, or if there is nobody to ask."""
        ...

    def ask(self, question: str, answers: Sequence[str], timeout: float) -> str:
        """Ask a question, and return one of ``answers``. Raises RigError as ``do`` does."""
        ...


class Closing:
    """Makes a class with a ``close`` method a context manager."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
