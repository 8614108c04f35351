"""The controller as the machine that switches are plugged into: serial ports, programs, files."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from boards import Parrot

from fixtures.boards import Port
from plugpull.errors import RigError
from plugpull.switches import host_local
from plugpull.switches.host import HidInfo, SerialLine
from plugpull.switches.host_local import LocalHost

PATIENCE = 20.0
HOST = LocalHost()


@pytest.fixture
def port() -> Iterator[Port]:
    with Port(Parrot(1)) as port:
        yield port


@pytest.fixture
def line(port: Port) -> Iterator[SerialLine]:
    line = HOST.serial(port.path)
    yield line
    line.close()
    line.close()


# --- serial lines -----------------------------------------------------------------------------------------------


def test_every_byte_comes_through_as_it_is(line: SerialLine) -> None:
    everything = bytes(range(256))
    line.write(everything)
    assert line.read(256, PATIENCE) == everything


def test_reading_ends_at_the_end(line: SerialLine) -> None:
    line.write(b"one>two>")
    assert line.read_until(b">", PATIENCE) == b"one>"
    assert line.read(2, PATIENCE) == b"tw"
    assert line.read_until(b">", PATIENCE) == b"o>"


@pytest.mark.parametrize("timeout", [0.0, 0.05])
def test_reading_ends_at_the_deadline(line: SerialLine, timeout: float) -> None:
    line.write(b"half")
    assert line.read(4, PATIENCE) == b"half"
    begun = time.monotonic()
    assert line.read(9, timeout) == b""
    assert line.read_until(b">", timeout) == b""
    assert 2 * timeout <= time.monotonic() - begun < PATIENCE


def test_what_never_ends_is_bounded(line: SerialLine) -> None:
    for _ in range(3):
        line.write(b"x" * 2000)
    assert len(line.read_until(b">", PATIENCE)) == host_local.MOST


def test_what_came_unasked_is_dropped(line: SerialLine) -> None:
    assert line.drop_input() == b""
    line.write(b"late")
    assert line.read(1, PATIENCE) == b"l"
    time.sleep(0.05)  # the rest was sent together with it
    assert line.drop_input() == b"ate"
    assert line.drop_input() == b""


def test_a_line_whose_device_goes(port: Port, line: SerialLine) -> None:
    port.close()
    for action in (lambda: line.write(b"x"), lambda: line.read(1, PATIENCE), line.drop_input):
        with pytest.raises(RigError, match=f"{port.path} does not work any more") as caught:
            action()
        assert "plug it in again" in caught.value.hint
    line.close()


def test_a_device_that_goes_while_it_is_read(port: Port, line: SerialLine) -> None:
    def close() -> None:
        time.sleep(0.1)  # for the reader to be waiting; early or late, the answer is the same
        port.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(RigError, match="does not work any more"):
        line.read(1, PATIENCE)
    thread.join()


def test_a_closed_line(line: SerialLine) -> None:
    line.close()
    for action in (lambda: line.write(b"x"), lambda: line.read(1, 0.01), line.drop_input):
        with pytest.raises(RigError, match="does not work any more"):
            action()


def test_a_device_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pty whose other side is not read takes some kilobytes, and no more."""
    monkeypatch.setattr(host_local, "WRITE", 0.1)
    master, slave = os.openpty()
    try:
        line = HOST.serial(os.ttyname(slave))
        begun = time.monotonic()
        with pytest.raises(RigError, match="does not work any more"):
            line.write(b"x" * (1 << 20))
        line.close()
        assert time.monotonic() - begun < PATIENCE
    finally:
        os.close(slave)
        os.close(master)


def test_a_line_is_ours_alone(port: Port, line: SerialLine) -> None:
    with pytest.raises(RigError, match=f"cannot open {port.path}") as caught:
        HOST.serial(port.path)
    assert caught.value.hint == f"another program has {port.path} open: end it"
    line.close()
    HOST.serial(port.path).close()


@pytest.mark.parametrize("device", ["/dev/plugpull-none", "/dev/null", "/dev"])
def test_what_is_no_serial_port(device: str) -> None:
    with pytest.raises(RigError, match=f"cannot open {device}") as caught:
        HOST.serial(device)
    assert caught.value.hint


def test_a_baud_rate_there_is_none_of(port: Port) -> None:
    with pytest.raises(RigError, match="cannot open"):
        HOST.serial(port.path, -1)


def test_ports_and_hid_devices_can_be_listed() -> None:
    assert all(info.device.startswith("/dev/") for info in HOST.serial_ports())
    assert all(info.vendor == 0xFFFF for info in HOST.hid_devices(0xFFFF, 0xFFFF))


def test_a_hid_device_that_is_not_there() -> None:
    with pytest.raises(RigError, match="cannot open the HID device S1") as caught:
        HOST.hid(HidInfo(1, 2, "S1", "/dev/hidraw-none"))
    assert "udev rule" in caught.value.hint


# --- programs ---------------------------------------------------------------------------------------------------


def test_a_program_that_ends() -> None:
    ended = HOST.run(["sh", "-c", 'echo "$WORD"; echo wrong >&2; exit 3'], PATIENCE, {"WORD": "right"})
    assert (ended.status, ended.stdout, ended.stderr) == (3, "right\n", "wrong\n")


def test_a_program_has_no_input_and_any_output() -> None:
    assert HOST.run(["cat"], PATIENCE).stdout == ""
    assert "\ufffd" in HOST.run(["printf", r"\377"], PATIENCE).stdout


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(RigError, match="cannot run plugpull-none") as caught:
        HOST.run(["plugpull-none"], PATIENCE)
    assert caught.value.hint == "is plugpull-none installed on this machine?"


def test_a_program_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    """The child holds the pipe as well, so that it would have to be waited for."""
    pid_file = tmp_path / "child"
    begun = time.monotonic()
    with pytest.raises(RigError, match=r"sh did not end within 0\.5 s; it was killed"):
        HOST.run(["sh", "-c", f'sleep 1000 & echo $! > "{pid_file}"; wait'], 0.5)
    assert time.monotonic() - begun < PATIENCE
    if pid_file.exists() and pid_file.read_text():
        end = time.monotonic() + PATIENCE
        while is_running(int(pid_file.read_text())) and time.monotonic() < end:
            time.sleep(0.01)  # somebody else's child: there is no event for its end
        assert not is_running(int(pid_file.read_text()))


def is_running(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_programs_leave_no_descriptors() -> None:
    before = len(os.listdir("/proc/self/fd"))
    HOST.run([sys.executable, "-c", ""], PATIENCE)
    with pytest.raises(RigError):
        HOST.run(["sleep", "1000"], 0.05)
    assert len(os.listdir("/proc/self/fd")) == before


# --- files ------------------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "attribute"
    file.write_bytes(b"1\xff\n")
    link = tmp_path / "link"
    link.symlink_to(file)
    assert HOST.read_text(str(file)) == "1\ufffd\n"
    assert HOST.glob(f"{tmp_path}/*") == (str(file), str(link))
    assert HOST.real_path(str(link)) == str(file)
    with pytest.raises(RigError, match="cannot read"):
        HOST.read_text(str(tmp_path / "none"))


def test_nothing_but_sysfs_is_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    for path in (str(file), f"/sys/../{file}", "/etc/plugpull-none"):
        with pytest.raises(RigError, match="is not a sysfs attribute: nothing was written"):
            HOST.write_text(path, "1")
    assert file.read_text() == "kept"
    with pytest.raises(RigError, match="cannot write /sys/kernel/plugpull-none") as caught:
        HOST.write_text("/sys/kernel/plugpull-none", "1")
    assert caught.value.hint
