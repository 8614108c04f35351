"""A disk's firmware: one nbdkit process per disk, serving a sparse file as the medium.

What is in the file has reached the medium. A power cut is the process killed with SIGKILL, taking with it whatever it
held in memory; a data cut leaves it running.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from plugpull.errors import RigError
from plugpull.virtual import process


class Firmware:
    """The firmware of one disk. ``socket`` is where it speaks NBD, ``medium`` its bytes."""

    def __init__(self, name: str, size: int, directory: Path) -> None:
        self.name = name
        self.socket = directory / f"{name}.nbd"
        self.medium = directory / f"{name}.medium"
        self._log = directory / f"{name}.log"
        with self.medium.open("xb") as file:
            file.truncate(size)
        self.power_on()

    def power_on(self) -> None:
        """Start the process; returns when it listens. Raises RigError."""
        self._on = True
        self.socket.unlink(missing_ok=True)
        # The socket is there before anybody listens on it; this file is written once nbdkit does (nbdkit(1)).
        ready = self._log.with_suffix(".pid")
        ready.unlink(missing_ok=True)
        argv = ["nbdkit", "--foreground", "--exit-with-parent", "--unix", str(self.socket), "--threads", "8"]
        argv += ["--pidfile", str(ready)]
        self.process = process.start([*argv, "file", str(self.medium)], self._log)
        deadline = time.monotonic() + 10
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                process.end(self.process)
                words = self._log.read_text(errors="replace").strip()
                raise RigError(f"nbdkit for {self.name} did not start: {words or 'no answer in 10 s'}")
            time.sleep(0.002)  # it takes a few ms, and there is no descriptor to wait on

    @property
    def powered(self) -> bool:
        return self.process.poll() is None

    @property
    def died(self) -> str:
        """How it ended though it had power, as a sentence; empty if it did not. No disk does that: the bench did."""
        status = self.process.poll()
        if not self._on or status is None:
            return ""
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        words = self._log.read_text(errors="replace").strip().rpartition("\n")[2]
        return f"nbdkit, the firmware of {self.name}, {how}{f': {words}' if words else ''}"

    def power_off(self) -> None:
        """The process dies with everything it held in memory."""
        self._on = False
        process.end(self.process)

    def hang(self) -> None:
        """Stop answering, as firmware does that is busy with itself."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self.process.pid, signal.SIGCONT)

    def flip_bit(self, offset: int) -> None:
        """Invert the lowest bit of one byte of the medium, behind everybody's back."""
        with self.medium.open("r+b") as file:
            file.seek(offset)
            value = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([value ^ 1]))

    def close(self) -> None:
        process.end(self.process)
