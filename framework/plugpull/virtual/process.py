"""Processes of the virtual bench: started so that they cannot outlive the run, ended by process group."""

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
    """Start a process in a session of its own, its output going to ``log``.

    ``setpriv --pdeathsig`` has the kernel kill it when the thread that started it ends, however it ends: a run that
    was killed leaves nothing behind. (It must therefore be started from a thread that lives as long as the bench.)
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
                f"{argv[0]} is not installed", mend="run ./plugpull run once; it installs what is missing"
            ) from None


def cpu_seconds(pid: int) -> float | None:
    """The CPU time that all threads of a process have used, seconds; None if it is gone (proc(5), /proc/PID/stat)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def end(process: subprocess.Popen[bytes], *, grace: float = 5.0) -> None:
    """SIGKILL to its process group, and reap it. These processes hold nothing that a gentle end would save."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        raise RigError(f"process {process.pid} ({process.args!r}) could not be ended") from None
