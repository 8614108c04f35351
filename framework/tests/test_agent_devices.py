"""Switches that hang off the DUT: the same drivers' host, through an agent; and what an agent leaves behind."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents import agent, alive, wait_dead
from boards import Parrot

from fixtures.boards import Port
from plugpull.dut.agent import devices
from plugpull.dut.conversation.link import AgentGone
from plugpull.dut.real.dut_host import DutHost
from plugpull.errors import RigError
from plugpull.rig.model import DeclaredSwitch
from plugpull.switches.host import HidInfo, SerialLine
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch
from plugpull.switches.person import TerminalPerson

PATIENCE = 60.0


@pytest.fixture(scope="module")
def host() -> Iterator[DutHost]:
    with agent() as started:
        yield DutHost(started.link)


@pytest.fixture
def port() -> Iterator[Port]:
    with Port(Parrot(1)) as port:
        yield port


@pytest.fixture
def line(host: DutHost, port: Port) -> Iterator[SerialLine]:
    line = host.serial(port.path)
    yield line
    line.close()
    line.close()


def test_every_byte_comes_through_as_it_is(line: SerialLine) -> None:
    everything = bytes(range(256))
    line.write(everything)
    assert line.read(256, PATIENCE) == everything


def test_reading_ends_at_the_end_and_at_the_deadline(line: SerialLine) -> None:
    line.write(b"one>two>")
    assert line.read_until(b">", PATIENCE) == b"one>"
    assert line.read(2, PATIENCE) == b"tw"
    assert line.read_until(b">", PATIENCE) == b"o>"
    begun = time.monotonic()
    assert line.read(1, 0.05) == b""
    assert line.read_until(b">", 0.05) == b""
    assert 0.1 <= time.monotonic() - begun < PATIENCE


def test_what_arrived_unasked_is_dropped(line: SerialLine) -> None:
    line.write(b"late")
    assert line.read(1, PATIENCE) == b"l"
    dropped = b""
    while len(dropped) < 3:
        dropped += line.drop_input()
    assert dropped == b"ate"
    assert line.drop_input() == b""


def test_a_port_is_ours_alone(host: DutHost, line: SerialLine, port: Port) -> None:
    with pytest.raises(RigError, match=r"on the DUT: another program has .* open") as caught:
        host.serial(port.path)
    assert caught.value.hint
    with pytest.raises(RigError):  # and for the programs that the controller runs there
        LocalHost().serial(port.path)


def test_a_board_that_is_unplugged_is_named(host: DutHost) -> None:
    master, slave = pty.openpty()
    line = host.serial(os.ttyname(slave))
    os.close(slave)
    os.close(master)
    with pytest.raises(RigError, match="on the DUT: the device does not work any more") as caught:
        line.read(1, PATIENCE)
    assert "plug it in again" in caught.value.hint
    line.close()


@pytest.mark.parametrize("device", ["/dev/no-such-port", "/dev/null"])
def test_what_is_no_serial_port(host: DutHost, device: str) -> None:
    with pytest.raises(RigError, match="on the DUT: "):
        host.serial(device)


def test_a_speed_there_is_none_of(host: DutHost, port: Port) -> None:
    with pytest.raises(RigError, match="12345 baud"):
        host.serial(port.path, 12345)
    host.serial(port.path).close()  # the failed one did not keep it


def test_only_hid_devices_are_opened_as_such(host: DutHost) -> None:
    for path in ("/dev/sda", "/dev/hidraw0/../null", "/dev/hidraw999"):
        with pytest.raises(RigError):
            host.hid(HidInfo(1, 2, "", path))
    assert isinstance(host.hid_devices(), tuple)
    assert isinstance(host.serial_ports(), tuple)


def test_programs_run_to_their_end(host: DutHost) -> None:
    done = host.run(["sh", "-c", "echo $WORD; echo err >&2; exit 3"], PATIENCE, {"WORD": "out"})
    assert (done.status, done.stdout, done.stderr) == (3, "out\n", "err\n")
    with pytest.raises(RigError, match="cannot run no-such-program") as caught:
        host.run(["no-such-program"], PATIENCE)
    assert "installed on the DUT" in caught.value.hint


def test_a_program_that_does_not_end_is_killed_with_its_children(host: DutHost, tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(RigError, match="did not end within"):
        host.run(["sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 1000 & wait"], 0.5)
    assert time.monotonic() - begun < PATIENCE
    assert wait_dead(int((tmp_path / "pid").read_text()))


def test_only_sysfs_is_written(host: DutHost, tmp_path: Path) -> None:
    victim = tmp_path / "file"
    victim.write_text("mine")
    (tmp_path / "sys").symlink_to("/sys")
    for path in (victim, Path("/sys/../etc/hostname"), Path("/sys/../proc/sys/kernel/hostname")):
        with pytest.raises(RigError, match="not a sysfs attribute"):
            host.write_text(str(path), "yours")
    assert victim.read_text() == "mine"
    assert host.read_text(str(victim)) == "mine"
    with pytest.raises(RigError, match="cannot read"):
        host.read_text(str(tmp_path / "none"))
    assert host.glob(str(tmp_path / "f*")) == (str(victim),)
    assert host.real_path(str(tmp_path / "sys")) == "/sys"


def test_nothing_but_devices_can_be_asked_for(host: DutHost) -> None:
    for do in ("_open", "close_all_", "__init__", "levitate"):
        with pytest.raises(RigError):
            host.ask(do)


def test_a_driver_works_from_there_as_from_here(host: DutHost, tmp_path: Path) -> None:
    state = tmp_path / "state"
    table = {"on": f"echo on > {state}", "off": f"echo off > {state}", "read": f"cat {state}"}
    common = {"name": "s", "driver": "command", "ports": 1, "mechanism": "mains", "via": "dut"}
    declared = DeclaredSwitch.model_validate({**common, **table})
    switch = open_switch(declared, host, TerminalPerson())
    switch.set("1", False)
    assert (state.read_text(), switch.read("1")) == ("off\n", False)
    switch.set("1", True)
    assert switch.read("1") is True
    switch.close()


def test_when_the_agent_is_lost_so_are_its_devices(port: Port) -> None:
    with agent() as started:
        line = DutHost(started.link).serial(port.path)
        started.process.kill()
        with pytest.raises(AgentGone):
            line.read(1, PATIENCE)
        line.close()  # safe all the same
    LocalHost().serial(port.path).close()  # the kernel took it back


def test_feature_reports_come_without_their_id(monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel's part (usbhid_get_raw_report): the id stays in the first byte, also where it is 0.
    def ioctl(fd: int, request: int, buffer: bytearray, mutate: bool) -> int:
        buffer[1:9] = b"BITFT\0\0\x05"
        return 9

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    opened = devices.Devices()
    handle = opened._keep(os.open("/dev/null", os.O_RDWR))
    for report_id in (0, 1):
        assert bytes.fromhex(opened.hid_get_feature(handle, report_id, 8)) == b"BITFT\0\0\x05"
    opened.close_all()


# --- what is left behind ----------------------------------------------------------------------------------------------

_HOLDER = """
import sys
from plugpull.dut.agent.jobs import Jobs
print(Jobs(lambda message: None).start("job", ["sleep", "1000"]), flush=True)
sys.stdin.read()
"""


def test_an_agent_that_is_killed_leaves_no_job_behind() -> None:
    with subprocess.Popen([sys.executable, "-c", _HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        job = int(holder.stdout.readline())
        assert alive(job)
        holder.kill()
        holder.wait(PATIENCE)
        assert wait_dead(job)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_ends_it_as_the_end_of_the_stream_does(number: signal.Signals) -> None:
    with agent() as started:
        started.link.call("hello", PATIENCE)
        started.process.send_signal(number)
        assert started.process.wait(PATIENCE) == 0


def test_it_ends_by_itself_when_nothing_is_heard() -> None:
    with agent() as started:
        started.link.call("expect", PATIENCE, every=0.5)
        for _ in range(8):
            time.sleep(0.1)  # it is the passing of time that is looked at
            started.link.map_clock(PATIENCE)
        assert started.process.poll() is None
        assert started.process.wait(PATIENCE) == 0


def test_an_agent_that_stops_reading_is_given_up_at_the_deadline() -> None:
    with agent() as started:
        started.process.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        with pytest.raises(AgentGone):
            started.link.call("levitate", 0.5, much="x" * (4 << 20))
        with pytest.raises(AgentGone):
            started.link.call("levitate", 0.5)
        assert time.monotonic() - begun < PATIENCE / 2
        started.process.kill()
