"""Switches that are plugged into the controller: pyserial, hidapi and ordinary processes."""

from __future__ import annotations

import glob as globbing
import os
import select
import selectors
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import serial
from serial.tools import list_ports

from plugpull.errors import RigError
from plugpull.switches.host import Closing, Completed, HidDevice, HidInfo, SerialInfo, SerialLine

LEAVING = 1.0
"""Seconds that unsent output, which may be a command, gets before the port is closed."""
MOST_OUTPUT = 1 << 19
"""Bytes kept of the beginning and of the end of each of a program's two outputs."""
MOST = 4096
"""Bytes that ``read_until`` reads at most. No board sends more."""
WRITE = 2.0
"""Seconds that a serial device gets to accept output."""
_GONE = (OSError, serial.SerialException, termios.error, TypeError, ValueError)
"""Exceptions of pyserial for a port whose device is gone (termios.error is not an OSError) or that is closed (the last
two)."""


class LocalHost:
    """This machine."""

    name = "this machine"

    def serial(self, device: str, baud: int = 9600) -> SerialLine:
        try:
            # Exclusive: two programs that share a relay board read each other's answers.
            port = serial.Serial(device, baud, timeout=0, write_timeout=WRITE, exclusive=True)
        except serial.SerialException as error:
            raise RigError(f"cannot open {device}: {_reason(error)}", hint=_open_hint(device, error)) from None
        except (ValueError, termios.error) as error:
            raise RigError(f"cannot open {device}: {error}", hint="is it a serial port?") from None
        return _Line(port, device)

    def serial_ports(self) -> tuple[SerialInfo, ...]:
        return tuple(
            SerialInfo(port.device, port.vid, port.pid, port.serial_number or "", port.product or "")
            for port in list_ports.comports()
        )

    def hid_devices(self, vendor: int = 0, product: int = 0) -> tuple[HidInfo, ...]:
        return tuple(
            HidInfo(
                entry["vendor_id"],
                entry["product_id"],
                entry["serial_number"] or "",
                os.fsdecode(entry["path"]),
                entry["product_string"] or "",
            )
            for entry in _hidapi().enumerate(vendor, product)
        )

    def hid(self, info: HidInfo) -> HidDevice:
        device = _hidapi().device()
        try:
            device.open_path(os.fsencode(info.path))
        except OSError as error:
            raise RigError(
                f"cannot open the HID device {info.serial or info.path}: {error}",
                hint=f"may this user open {info.path}? `plugpull switch list` prints the udev rule for it",
            ) from None
        return _Hid(device, info)

    def run(self, argv: Sequence[str], timeout: float, environment: Mapping[str, str] | None = None) -> Completed:
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise RigError(
                f"cannot run {argv[0]}: {error.strerror}", hint=f"is {argv[0]} installed on this machine?"
            ) from None
        try:
            out, err = _read_output(process, timeout)
        except subprocess.TimeoutExpired:
            raise RigError(f"{argv[0]} did not end within {timeout:g} s; it was killed") from None
        finally:
            # With its children.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        return Completed(process.returncode, out, err)

    def read_text(self, path: str) -> str:
        try:
            return Path(path).read_text(errors="replace")
        except OSError as error:
            raise RigError(f"cannot read {path}: {error.strerror}") from None

    def write_text(self, path: str, text: str) -> None:
        if not os.path.realpath(path).startswith("/sys/"):
            raise RigError(f"{path} is not a sysfs attribute: nothing was written")
        try:
            Path(path).write_text(text)
        except OSError as error:
            raise RigError(
                f"cannot write {path}: {error.strerror}",
                hint="run plugpull as root, or write a udev rule that lets this user do it",
            ) from None

    def glob(self, pattern: str) -> tuple[str, ...]:
        return tuple(sorted(globbing.glob(pattern)))

    def real_path(self, path: str) -> str:
        return os.path.realpath(path)


class _Output:
    """The beginning and the end of one output of a program."""

    def __init__(self) -> None:
        self._first = bytearray()
        self._last = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = MOST_OUTPUT - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if (more := len(self._last) - MOST_OUTPUT) > 0:
            del self._last[:more]
            self._left_out += more

    def text(self) -> str:
        gap = f"\n[{self._left_out} bytes left out]\n" if self._left_out else ""
        text = (self._first + gap.encode() + self._last).decode("utf-8", "replace")
        # As in text mode.
        return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_output(process: subprocess.Popen[bytes], timeout: float) -> tuple[str, str]:
    """Standard output and error of a program, read to their ends. Raises subprocess.TimeoutExpired."""
    deadline = time.monotonic() + timeout
    assert process.stdout is not None
    assert process.stderr is not None
    kept = {process.stdout.fileno(): _Output(), process.stderr.fileno(): _Output()}
    with selectors.DefaultSelector() as waiting:
        for fd in kept:
            waiting.register(fd, selectors.EVENT_READ)
        while waiting.get_map():
            if time.monotonic() >= deadline:  # also if it never stops printing
                raise subprocess.TimeoutExpired(process.args, timeout)
            for key, _ in waiting.select(max(0.0, deadline - time.monotonic())):
                if data := os.read(key.fd, 1 << 16):
                    kept[key.fd].add(data)
                else:
                    waiting.unregister(key.fd)
    process.wait(max(0.0, deadline - time.monotonic()))
    out, err = (one.text() for one in kept.values())
    return out, err


class _Line(Closing):
    def __init__(self, port: serial.Serial, device: str) -> None:
        self._port = port
        self._device = device

    def write(self, data: bytes) -> None:
        deadline = time.monotonic() + WRITE
        try:
            self._port.write(data)
            # pyserial's flush is tcdrain, which waits for ever for a device that accepts no data.
            while self._port.out_waiting:
                if time.monotonic() > deadline:
                    raise serial.SerialTimeoutException(f"it accepted no data for {WRITE:g} s")
                time.sleep(0.0005)  # there is no event for an empty output buffer
        except _GONE as error:
            raise self._gone(error) from None

    def read(self, count: int, timeout: float) -> bytes:
        return self._read(lambda got: len(got) >= count, count, timeout)

    def read_until(self, end: bytes, timeout: float) -> bytes:
        return self._read(lambda got: got.endswith(end), MOST, timeout)

    def _read(self, enough: Callable[[bytearray], bool], most: int, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        got = bytearray()
        try:
            while not enough(got) and len(got) < most:
                left = max(0.0, deadline - time.monotonic())
                if not select.select([self._port.fileno()], [], [], left)[0]:
                    break
                # One byte at a time: the bytes after the end belong to the next answer.
                got += self._port.read(1)
        except _GONE as error:
            raise self._gone(error) from None
        return bytes(got)

    def drop_input(self) -> bytes:
        try:
            return bytes(self._port.read(self._port.in_waiting))
        except _GONE as error:
            raise self._gone(error) from None

    def close(self) -> None:
        with suppress(*_GONE):  # it may be unplugged
            deadline = time.monotonic() + LEAVING
            while self._port.out_waiting and time.monotonic() < deadline:
                time.sleep(0.002)  # a byte takes a millisecond at 9600 baud, and there is no event after the last
            if self._port.out_waiting:
                # Otherwise close would wait up to half a minute for a device that accepts no data.
                self._port.reset_output_buffer()
        with suppress(*_GONE):
            self._port.close()

    def _gone(self, error: Exception) -> RigError:
        return RigError(
            f"{self._device} does not work any more: {_reason(error)}", hint="was the board unplugged? plug it in again"
        )


class _Hid(Closing):
    def __init__(self, device: Any, info: HidInfo) -> None:
        self._device = device
        self._info = info

    def write(self, report: bytes) -> None:
        if self._do(self._device.write, report) < len(report):
            raise self._gone("the report was not accepted")

    def read(self, count: int, timeout: float) -> bytes:
        # A timeout of 0 would mean for ever to hidapi.
        return bytes(self._do(self._device.read, count, max(1, round(timeout * 1000))) or b"")

    def get_feature(self, report_id: int, count: int) -> bytes:
        return bytes(self._do(self._device.get_feature_report, report_id, count + 1))[1:]

    def send_feature(self, report: bytes) -> None:
        if self._do(self._device.send_feature_report, report) < 0:
            raise self._gone("the feature report was not accepted")

    def close(self) -> None:
        self._device.close()

    def _do(self, call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except (OSError, ValueError) as error:
            raise self._gone(str(error)) from None

    def _gone(self, why: str) -> RigError:
        return RigError(
            f"the HID device {self._info.serial or self._info.path} does not work any more: {why}",
            hint="was it unplugged? plug it in again",
        )


def _hidapi() -> Any:
    try:
        import hid
    except ImportError as error:
        raise RigError(f"hidapi is not installed: {error}", hint="pip install hidapi") from None
    return hid


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else str(error)


def _open_hint(device: str, error: serial.SerialException) -> str:
    text = str(error)
    if "ermission" in text:
        return f"may this user open {device}? Join the group dialout, or use a udev rule (plugpull switch list)"
    if "exclusively lock" in text:
        return f"another program has {device} open: end it"
    return "is the board plugged in? `plugpull switch list` lists what is attached"
