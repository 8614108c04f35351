"""What the console of a hung DUT shows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from consoles import IDLE, LOCKED, PANIC, STALL, Kernel, console, kernel_on_a_console, wait_less

from plugpull.dut.console import DutConsole
from plugpull.dut.post_mortem import examine_console, on_cpus, restarted, unresponsive
from plugpull.dut.real.console_wires import PipeWire, wire_of
from plugpull.errors import RigError
from plugpull.rig.model import Dut


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    with kernel_on_a_console() as made:
        yield made


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_less(monkeypatch)


def test_a_kernel_that_echoes_is_alive_and_its_blocked_tasks_are_named(kernel: Kernel, tmp_path: Path) -> None:
    with console(kernel, tmp_path) as line:
        found = examine_console(line, 5.0)
    assert found is not None
    assert found.death is None
    assert "only the agent is gone; the kernel is alive" in found.says
    assert "fio (pid 212) in D: blk_mq_get_tag < usb_stor_msg_common [usb_storage]" in found.says
    assert "usb_stor_msg_common" in (tmp_path / "console.log").read_text()


@pytest.mark.parametrize(
    ("cpus", "later", "kept"),
    [(IDLE, (), ""), (LOCKED, (IDLE,), ""), (LOCKED, (), ", and CPU 0 (plugpull/0) in spin_for_ever [plugpull_dies]")],
)
def test_a_kernel_that_echoes_and_reports_nothing_is_alive_wherever_its_cpus_are(
    kernel: Kernel, tmp_path: Path, cpus: str, later: tuple[str, ...], kept: str
) -> None:
    kernel.cpus, kernel.later = cpus, [*later]
    with console(kernel, tmp_path) as line:
        found = examine_console(line, 5.0)
    assert found is not None
    assert found.death is None
    assert f"answers sysrq on its console{kept and kept + ' all the while'} (1 blocked" in found.says


def test_a_cpu_that_is_not_given_back_is_a_dut_that_hung_though_another_echoes(kernel: Kernel, tmp_path: Path) -> None:
    with console(kernel, tmp_path) as line:
        kernel.say(STALL)
        found = examine_console(line, 5.0)
    assert found is not None
    assert found.death is not None
    assert found.death.headline == (
        "the DUT hung: a CPU is not given back, CPU 0 (plugpull/0) in spin_for_ever [plugpull_dies] "
        "(rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:)"
    )
    assert any("rcu_preempt detected stalls" in line for line in found.death.evidence)


def test_an_agent_that_ended_is_not_a_dut_that_hung(kernel: Kernel, tmp_path: Path) -> None:
    with console(kernel, tmp_path) as line:
        kernel.say(STALL + "plugpull: the agent ended with status 137\n")
        line.pause(0.5, 10.0)
        found = examine_console(line, 5.0)
    assert found is not None
    assert found.death is None
    assert "the agent was killed by signal 9" in found.says


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


@pytest.mark.parametrize(
    "line",
    [
        "CPU: 0 PID: 196 Comm: plugpull/0 Tainted: G           OE      6.1.0-56-amd64 #1  Debian",
        "CPU: 0 UID: 0 PID: 196 Comm: plugpull/0 Tainted: G           OE      6.12.107+deb13-amd64 #1  Debian",
    ],
)
def test_where_a_cpu_is_in_the_wording_of_two_kernels(line: str) -> None:
    """lib/dump_stack.c names the user since Linux 6.11."""
    rip = "RIP: 0010:spin_for_ever+0x7/0x10 [plugpull_dies]"
    assert on_cpus([line, rip]) == ("CPU 0 (plugpull/0) in spin_for_ever [plugpull_dies]",)


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
