"""The processes that a killed run left behind: found by their environment, and ended."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path

PF_KTHREAD = 0x00200000
"""include/linux/sched.h: a kernel thread, which has no environment."""

GOING = "ZXx"
"""States of processes that have ended: a zombie, and one that is being released (proc_pid_stat(5))."""


def end_processes(mark: bytes, timeout: float = 5.0) -> int:
    """Kill the processes with ``mark`` (``NAME=value``) in their environment, and wait until they are gone, at most
    ``timeout`` seconds. Returns how many there were."""
    deadline = time.monotonic() + timeout
    ended = 0
    while time.monotonic() < deadline:
        pids, unknown = marked(mark)
        if not pids and not unknown:
            break
        ended += sum(_end(pid, deadline) for pid in pids)
        if not pids:
            time.sleep(0.005)  # execve(2) of another process is in progress: there is nothing to wait on
    return ended


def marked(mark: bytes, proc: Path = Path("/proc")) -> tuple[list[int], list[int]]:
    """Processes of this user with ``mark`` in their environment, and those whose environment is not yet there."""
    found, unknown = [], []
    for directory in proc.iterdir():
        if directory.name.isdigit() and int(directory.name) != os.getpid():
            with suppress(OSError):
                environment = (directory / "environ").read_bytes()
                if mark in environment.split(b"\0"):
                    found.append(int(directory.name))
                elif not environment and _in_execve(directory):
                    unknown.append(int(directory.name))
    return found, unknown


def _in_execve(directory: Path) -> bool:
    """Whether a process of this user is amid execve(2). Its environment is empty from the moment in which the new
    program takes the place of the old one, when vfork(2) already returns in the parent, until it is set up: on a busy
    machine that is time enough for its parent to be killed (fs/exec.c begin_new_exec, fs/binfmt_elf.c
    create_elf_tables). Fields 9, 50 and 51 of proc_pid_stat(5): its flags, and the place of its environment."""
    fields = (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()
    if len(fields) < 49 or fields[0] in GOING or int(fields[6]) & PF_KTHREAD:
        return False
    return fields[47] == fields[48] == "0" and directory.stat().st_uid == os.geteuid()


def _end(pid: int, deadline: float) -> bool:
    """False if the process was gone already. One that is dying has no environment any more, so ``marked`` does not show
    it; its pidfd becomes readable when it is gone (pidfd_open(2))."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        gone = select.poll()
        gone.register(process, select.POLLIN)
        gone.poll(max(0.0, deadline - time.monotonic()) * 1000)
        return True
    finally:
        os.close(process)
