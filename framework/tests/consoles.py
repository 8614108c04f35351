"""A kernel's serial console, and what kernels print on it when they hang or panic."""

from __future__ import annotations

import os
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from plugpull.dut import post_mortem
from plugpull.dut.console import DutConsole
from plugpull.dut.real.console_wires import SerialWire

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


IDLE = """\
[   22.1] sysrq: Show backtrace of all active CPUs
[   22.2] CPU: 1 PID: 0 Comm: swapper/1 Not tainted 6.1.0
[   22.2] RIP: 0010:native_safe_halt+0xb/0x10
"""
STALL = """\
[   35.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
[   35.1] rcu: \t0-...!: (0 ticks this GP) idle=1234/1/0x4000000000000000 softirq=9/9 fqs=2
"""


class Kernel:
    """Speaks like a kernel's serial console: answers sysrq (whose BREAK a pty does not carry) and echoes."""

    def __init__(self) -> None:
        self.answers = True
        self.echoes = True
        self.cpus = LOCKED
        """What it says of its CPUs. The next text takes its place whenever it was said."""
        self.later: list[str] = []
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        os.write(self._master, text.replace("\n", "\r\n").encode())

    def _serve(self) -> None:
        answers = {b"h": "[    1.0] sysrq: HELP : loglevel(0-9)\n", b"w": BLOCKED}
        with suppress(OSError):
            while key := os.read(self._master, 1):
                if key == b"q":
                    return
                if self.answers and key in answers:
                    self.say(answers[key])
                if self.answers and key == b"l":
                    self.say(self.cpus)
                    self.cpus = self.later.pop(0) if self.later else self.cpus
                if self.echoes and key == b"~":
                    self.say("~")

    def close(self) -> None:
        os.write(self._slave, b"q")
        self._thread.join(5)
        for each in (self._master, self._slave):
            os.close(each)


@contextmanager
def kernel_on_a_console() -> Iterator[Kernel]:
    made = Kernel()
    try:
        yield made
    finally:
        made.close()


def wait_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """The double answers at once, so no test needs the time that a real kernel gets."""
    monkeypatch.setattr(post_mortem, "ANSWER", 1.5)
    monkeypatch.setattr(post_mortem, "ECHO", 1.0)
    monkeypatch.setattr(post_mortem, "LOCKUP", 0.2)
    monkeypatch.setattr(post_mortem, "APART", 0.1)


@contextmanager
def console(kernel: Kernel, folder: Path) -> Iterator[DutConsole]:
    made = DutConsole(SerialWire(kernel.path, 115200), folder / "console.log")
    try:
        yield made
    finally:
        made.close()
