"""Processes of the virtual bench. They cannot outlive the run, and they are ended by process group."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from plugpull.errors import RigError


def start(argv: Sequence[str], log: Path, *, pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, with its output in ``log``.

    ``setpriv --pdeathsig`` makes the kernel kill it when the thread that started it ends for any reason. So a killed
    run leaves nothing behind. Call this therefore from a thread that lives as long as the bench.
    """
    guard = shutil.which("setpriv")
    command = [guard, "--pdeathsig", "KILL", *argv] if guard else list(argv)
    with log.open("ab") as output:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=tuple(pass_fds),
            )
        except FileNotFoundError:
            raise RigError(
                f"{argv[0]} is not installed", hint="run ./plugpull run once; it installs what is missing"
            ) from None


def cpu_seconds(pid: int) -> float | None:
    """CPU time used by all threads of a process, seconds; None if it is gone (proc(5), /proc/PID/stat)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def end(process: subprocess.Popen[bytes], *, grace: float = 5.0) -> None:
    """Kill the process group with SIGKILL and reap it. These processes hold nothing that a gentler end would save."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        raise RigError(f"process {process.pid} ({process.args!r}) did not end after SIGKILL") from None
