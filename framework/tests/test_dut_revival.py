"""A real DUT that hangs: its console says so, its outlet is power-cycled, and the run goes on with it.

The DUT is a real sshd on loopback whose boot id is a file, the outlet a relay of a board that stops and starts it, the
console a serial port with a double of a kernel behind it."""

from __future__ import annotations

import os
import threading
import tty
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from rig_texts import REAL, mistakes
from sshds import HOST, Sshd, sshd

from fixtures.boards import KmTronic, Port
from plugpull.coordination.journal import Journal
from plugpull.dut import listener, post_mortem
from plugpull.dut.bench import Bench
from plugpull.dut.console import DutConsole
from plugpull.dut.listener import Listener
from plugpull.dut.post_mortem import examine_console, restarted, unresponsive
from plugpull.dut.real import outlet
from plugpull.dut.real.bench import prepare_real
from plugpull.dut.real.console_wires import PipeWire, SerialWire, wire_of
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder
from plugpull.rig.load import load_rig
from plugpull.rig.model import Dut

BLOCKED = """\
[   13.5] sysrq: Show Blocked State
[   13.6] task:fio             state:D stack:0     pid:212   ppid:180    flags:0x00000002
[   13.6] Call Trace:
[   13.6]  <TASK>
[   13.6]  __schedule+0x2e2/0x890
[   13.6]  io_schedule+0x42/0x70
[   13.6]  blk_mq_get_tag+0x11a/0x2a0
[   13.6]  ? wait_woken+0x70/0x70
[   13.6]  usb_stor_msg_common+0x9a/0x160 [usb_storage]
[   13.6]  </TASK>
"""
PANIC = """\
[  100.1] Oops: 0002 [#1] PREEMPT SMP NOPTI
[  100.1] RIP: 0010:write_astray+0x5/0x10 [plugpull_dies]
[  100.2] Kernel panic - not syncing: Fatal exception
"""
LOCKED = """\
[   20.1] sysrq: Show backtrace of all active CPUs
[   20.1] CPU: 0 PID: 160 Comm: plugpull/0 Tainted: G           OE      6.1.0-56-amd64 #1  Debian
[   20.1] RIP: 0010:handle_softirqs+0x7a/0x2f0
[   20.1] RIP: 0010:spin_for_ever+0x7/0x10 [plugpull_dies]
[   20.2] CPU: 1 PID: 0 Comm: swapper/1 Not tainted 6.1.0
[   20.2] RIP: 0010:native_safe_halt+0xb/0x10
"""


class Kernel:
    """Speaks like a kernel's serial console: answers sysrq (whose BREAK a pty does not carry) and echoes."""

    def __init__(self) -> None:
        self.answers = True
        self.echoes = True
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        os.write(self._master, text.replace("\n", "\r\n").encode())

    def _serve(self) -> None:
        told = {b"h": "[    1.0] sysrq: HELP : loglevel(0-9)\n", b"w": BLOCKED, b"l": LOCKED}
        with suppress(OSError):
            while key := os.read(self._master, 1):
                if key == b"q":
                    return
                if self.answers and key in told:
                    self.say(told[key])
                if self.echoes and key == b"~":
                    self.say("~")

    def close(self) -> None:
        os.write(self._slave, b"q")
        self._thread.join(5)
        for each in (self._master, self._slave):
            os.close(each)


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    made = Kernel()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_mortem, "ANSWER", 1.5)
    monkeypatch.setattr(post_mortem, "ECHO", 1.0)
    monkeypatch.setattr(post_mortem, "LOCKUP", 0.2)
    monkeypatch.setattr(outlet, "OFF_FOR", 0.2)


@contextmanager
def console(kernel: Kernel, folder: Path) -> Iterator[DutConsole]:
    made = DutConsole(SerialWire(kernel.path, 115200), folder / "console.log")
    try:
        yield made
    finally:
        made.close()


# --- what a console says ----------------------------------------------------------------------------------------------


def test_a_kernel_that_echoes_is_alive_and_its_blocked_tasks_are_named(kernel: Kernel, tmp_path: Path) -> None:
    with console(kernel, tmp_path) as line:
        found = examine_console(line, 5.0)
    assert found is not None
    assert found.death is None
    assert "only the agent is gone; the kernel is alive" in found.says
    assert "fio (pid 212) in D: blk_mq_get_tag < usb_stor_msg_common [usb_storage]" in found.says
    assert "usb_stor_msg_common" in (tmp_path / "console.log").read_text()


def test_a_kernel_that_answers_and_echoes_nothing_hung(kernel: Kernel, tmp_path: Path) -> None:
    kernel.echoes = False
    with console(kernel, tmp_path) as line:
        found = examine_console(line, 5.0)
    assert found is not None
    assert found.death is not None
    assert "runs no process, CPU 0 (plugpull/0) in spin_for_ever [plugpull_dies]" in found.death.headline
    assert any("fio (pid 212)" in evidence for evidence in found.death.evidence)


def test_a_kernel_that_answers_nothing_hung_if_it_was_known_to_answer(kernel: Kernel, tmp_path: Path) -> None:
    kernel.answers = False
    with console(kernel, tmp_path) as line:
        assert examine_console(line, 5.0) is None
        found = examine_console(line, 5.0, proven=False)
        assert found is not None
        assert (found.death, found.says) == (None, "its console says nothing about it")
        death = unresponsive(line, 5.0, ()).death
    assert death is not None
    assert "answers neither its agent nor sysrq" in death.headline


@pytest.mark.parametrize(
    ("said", "headline"),
    [
        ("[   61.0] reboot: Restarting system\n", "the guest restarted: reboot: Restarting system"),
        (
            "[   61.0] usb 1-1: USB disconnect, device number 2\n",
            "the guest reset itself without a word on its console",
        ),
    ],
)
def test_a_restart_that_somebody_asked_for_is_told_from_a_reset(
    kernel: Kernel, tmp_path: Path, said: str, headline: str
) -> None:
    with console(kernel, tmp_path) as line:
        kernel.say(said)
        line.pause(0.5, 10.0)
        assert restarted(line) == headline


STALLED = """\
[   84.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
[   84.1] NMI backtrace for cpu 1
[   84.2] CPU: 1 PID: 174 Comm: plugpull/1 Tainted: G           OE      6.1.0-56-amd64 #1  Debian
[   84.2] RIP: 0010:spin_for_ever+0x7/0x10 [plugpull_dies]
"""
BY_NMI = (
    "vCPU 0 at ffffffff81a592eb, interrupts on",
    "vCPU 1 at ffffffffc04da007, interrupts off",
    "[   97.7] Kernel panic - not syncing: NMI: Not continuing",
    "[   97.7] CPU: 0 PID: 154 Comm: python Tainted: G           OE      6.1.0-56-amd64 #1  Debian",
    "[   97.7] RIP: 0010:__schedule+0x1b7/0xa00",
)


@pytest.mark.parametrize(
    ("said", "headline"),
    [
        (
            STALLED,
            ", interrupts off in spin_for_ever [plugpull_dies] (rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:)",
        ),
        ("[   10.1] usb 1-1: reset high-speed USB device number 2\n", ", interrupts off on CPU 1"),
    ],
)
def test_the_cpu_that_took_the_nmi_is_not_the_one_that_is_deaf(
    kernel: Kernel, tmp_path: Path, said: str, headline: str
) -> None:
    kernel.answers = False
    with console(kernel, tmp_path) as line:
        kernel.say(said + "[   97.7] Uhhuh. NMI received for unknown reason 31 on CPU 0.\n" + BY_NMI[2] + "\n")
        assert line.wait_dying(10.0)
        death = unresponsive(line, 79.7, BY_NMI).death
    assert death is not None
    assert death.headline.endswith(f"nor sysrq on its console{headline}")


def test_a_panic_is_on_the_console(kernel: Kernel, tmp_path: Path) -> None:
    with console(kernel, tmp_path) as line:
        kernel.say(PANIC)
        assert line.wait_dying(10.0)
        found = examine_console(line, 5.0)
    assert found is not None
    assert found.death is not None
    assert "write_astray" in found.death.headline
    assert found.death.at == 100.1


def test_netconsole_comes_through_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    wire = wire_of(Dut(kind="ssh", console=str(tmp_path / "pipe")))
    assert isinstance(wire, PipeWire)
    line = DutConsole(wire, tmp_path / "console.log")
    try:
        (tmp_path / "pipe").write_text(PANIC)
        assert line.wait_dying(10.0)
        assert line.sysrq("w", 0.1) is None, "a pipe cannot be asked"
    finally:
        line.close()


def test_a_console_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="cannot be opened: No such file"):
        wire_of(Dut(kind="ssh", console=str(tmp_path / "nothing")))
    (tmp_path / "file").touch()
    with pytest.raises(RigError, match="neither a serial port nor a named pipe"):
        wire_of(Dut(kind="ssh", console=str(tmp_path / "file")))
    assert wire_of(Dut(kind="ssh")) is None


def test_an_endless_console_is_kept_within_bounds(tmp_path: Path) -> None:
    class Storm:
        left = 3000

        def read(self) -> bytes:
            self.left -= 1
            return b"x" * 40_000 + b"\n" * (self.left % 2) if self.left else b""

        def write(self, data: bytes) -> None: ...

        def send_break(self) -> None: ...

        def close(self) -> None: ...

    line = DutConsole(Storm(), tmp_path / "console.log")
    assert line.wait_closed(60.0)
    line.close()
    assert (tmp_path / "console.log").stat().st_size < 70 << 20
    assert len(line.lines()) <= 2000


# --- and what is done about it ----------------------------------------------------------------------------------------

RIG = """
[rig]
name = "revival"

[dut]
kind = "ssh"
host = "{host}"
ssh_options = [{options}]
python = "{python}"
console = "{console}"
power = "relay.1"

[[switch]]
name = "relay"
driver = "kmtronic"
device = "{relay}"
ports = 1
mechanism = "mains"
wiring = "nc"

[[controller]]
name = "usb"
path = "0000:00:14.0"

[[disk]]
name = "disk1"
at = "usb.1"
serial = "NOT-HERE"
size = "1 GiB"
"""


class Machine:
    """What hangs off the relay: sshd, and the kernel at the other end of the serial line."""

    def __init__(self, server: Sshd, kernel: Kernel, folder: Path) -> None:
        self._server, self._kernel = server, kernel
        self.boot_id = folder / "boot_id"
        self.boots = 0
        self.boot()
        self.python = folder / "python"
        self.python.write_text(
            f"#!/bin/sh\nexec unshare --mount sh -c 'mount --bind {self.boot_id} /proc/sys/kernel/random/boot_id && "
            'exec python3 "$@"\' python3 "$@"\n'
        )
        self.python.chmod(0o755)

    def boot(self) -> None:
        self.boots += 1
        self.boot_id.write_text(f"boot-{self.boots}\n")

    def hang(self) -> None:
        self._kernel.answers = self._kernel.echoes = False
        self._server.drop()
        self._server.stop()

    def switched(self, relay: int, energised: bool) -> None:
        if not energised:
            self.boot()
            self._kernel.answers = self._kernel.echoes = True
            self._server.start()


@pytest.mark.skipif(os.getuid() != 0, reason="the agent needs root")
def test_a_dut_that_hung_is_power_cycled_and_the_next_scenario_reaches_it(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "SILENCE", 3.0)
    with ExitStack() as held:
        server = held.enter_context(sshd(tmp_path))
        machine = Machine(server, kernel, tmp_path)
        relay = held.enter_context(Port(KmTronic(channels=1, on_change=machine.switched)))
        options = ", ".join(f'"{word}"' for word in server.options)
        file = tmp_path / "rig.toml"
        file.write_text(
            RIG.format(host=HOST, options=options, python=machine.python, console=kernel.path, relay=relay.path)
        )
        journal = Journal(tmp_path / "journal", tmp_path)
        held.callback(journal.close)
        opened = prepare_real(load_rig(file), file, journal, held)
        recorder = held.enter_context(Recorder(tmp_path / "history.jsonl"))

        def scenario(name: str) -> tuple[Bench, Listener]:
            (tmp_path / name).mkdir()
            listening = Listener(recorder)
            bench = opened(recorder, tmp_path / name, listening, name)
            listening.begin(bench)
            return bench, listening

        mark = recorder.mark()
        bench, listening = scenario("first")
        machine.hang()
        assert recorder.wait_for(lambda event: isinstance(event, ev.AgentLost), 60.0, since=mark)
        listening.end()
        bench.close()
        told = recorder.since(mark)
        (died,) = [event for event in told if isinstance(event, ev.DutDied)]
        assert "the DUT hung" in died.headline
        (note,) = [event.text for event in told if isinstance(event, ev.Note)]
        assert note == "the DUT's power was cycled through relay.1, and it answered again"
        assert machine.boots == 2
        bench, listening = scenario("second")
        assert bench.ready().boot_id == "boot-2"
        listening.end()
        bench.close()


# --- rig files --------------------------------------------------------------------------------------------------------

SSH = REAL.replace('kind = "local"', 'kind = "ssh"\nhost = "dut"')


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '^console = "192.168.1.5:6666"',
            "plugpull does not listen on the network: write netconsole's output into a named pipe",
        ),
        ('^console = "ttyUSB0"', '"ttyUSB0" is not the path of a serial port'),
        ("^console_speed = 9600", '"console_speed" needs a "console"'),
    ],
)
def test_a_console_that_cannot_be(line: str, said: str) -> None:
    (told,) = mistakes(SSH.replace('host = "dut"', f'host = "dut"\n{line}'))
    assert said in told


def test_a_console_that_can_be(tmp_path: Path) -> None:
    (tmp_path / "rig.toml").write_text(SSH.replace('host = "dut"', 'host = "dut"\nconsole = "/dev/ttyUSB0"'))
    assert load_rig(tmp_path / "rig.toml").dut.console_speed == 115200


def test_a_console_is_for_a_dut_behind_ssh() -> None:
    (told,) = mistakes(REAL.replace('kind = "local"', 'kind = "local"\n^console = "/dev/ttyUSB0"'))
    assert told == '"console" is for a DUT of kind "ssh", and this one is local'
