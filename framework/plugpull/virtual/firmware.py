"""A disk's firmware: one nbdkit process per disk, serving a sparse file as the medium.

Data in the file has reached the medium. A power cut kills the process with SIGKILL, and everything it held in memory is
lost. A data cut leaves it running. A plain disk is nbdkit's own ``file`` plugin. A disk with a cache, a latency or a
defect of the firmware is ``firmware_plugin.py``, which reports counters and takes commands while it runs.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plugpull.errors import RigError
from plugpull.rig.model import Defect, Disk
from plugpull.virtual import process
from plugpull.virtual.firmware_defects import KINDS
from plugpull.virtual.firmware_drive import COUNTERS, DriveCounters, FailingSectors, Traits

PLUGIN = Path(__file__).with_name("firmware_plugin.py")
PARAMETERS = ("every", "sector", "sectors", "seconds", "rate", "disks")
"""Keys of ``[[defect]]`` that are passed to the firmware unchanged, if given."""
STILL = 3600.0
"""Seconds: longer than any scenario."""
ANSWER = 5.0
"""Seconds a firmware gets to answer a command: it only finishes its current write to the medium first."""


@dataclass(frozen=True)
class Model:
    """The properties of a disk's firmware.

    ``defects`` are (kind, parameters) of ``firmware_defects.KINDS``. With a ``seed``, random choices are repeatable.
    """

    traits: Traits
    defects: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    seed: int | None = None
    write_through: bool = False

    @property
    def plain(self) -> bool:
        """True if nbdkit's file plugin can serve this disk."""
        return not (self.traits.cache or self.traits.latency or self.defects)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind, _ in self.defects)

    @property
    def writes_through(self) -> bool:
        """True if the disk reports that it has no cache to flush."""
        return self.write_through or "cache-lied" in self.kinds


def model_of(disk: Disk, defects: Iterable[Defect] = ()) -> Model:
    """The firmware that a rig file describes, with those of ``defects`` that belong to this disk's firmware."""
    traits = Traits(disk.size, disk.logical_block, disk.cache or 0, disk.eviction, disk.write_back, disk.latency)
    # A defect of the firmware without a disk is one that all scratch disks have.
    named = (disk.name, None) if disk.scratch else (disk.name,)
    own = [defect for defect in defects if defect.disk in named and defect.kind in KINDS]
    defective = tuple((defect.kind, _parameters(defect)) for defect in own)
    return Model(traits, defective, write_through=disk.write_through)


def _parameters(defect: Defect) -> dict[str, Any]:
    """The keys that the rig file sets: each kind has its own defaults."""
    return {key: getattr(defect, key) for key in PARAMETERS if key in defect.model_fields_set}


class Firmware:
    """The firmware of one disk. ``socket`` is its NBD socket, ``medium`` the file with its bytes.

    ``stall``, ``fail``, ``write_out`` and ``counters`` raise RigError for a disk whose model is plain.
    """

    def __init__(self, name: str, model: Model, directory: Path) -> None:
        self.name = name
        self.model = model
        self.socket = directory / f"{name}.nbd"
        self.medium = directory / f"{name}.medium"
        self._control = directory / f"{name}.control"
        self._log = directory / f"{name}.log"
        self._counters = DriveCounters(directory / f"{name}.counters")
        with self.medium.open("xb") as file:
            file.truncate(model.traits.size)
        self.power_on()

    def power_on(self) -> None:
        """Start the process and wait until it listens. Raises RigError."""
        self._on = True
        self.socket.unlink(missing_ok=True)
        self._control.unlink(missing_ok=True)
        self._counters.set("dirty_bytes", 0)
        # The socket exists before nbdkit listens on it. nbdkit writes this file once it listens (nbdkit(1)).
        ready = self._log.with_suffix(".pid")
        ready.unlink(missing_ok=True)
        argv = ["nbdkit", "--foreground", "--exit-with-parent", "--unix", str(self.socket), "--threads", "16"]
        argv += ["--pidfile", str(ready)]
        self.process = process.start([*argv, *self._plugin()], self._log)
        deadline = time.monotonic() + 30
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                process.end(self.process)
                words = self._log.read_text(errors="replace").strip()
                raise RigError(
                    f"nbdkit for {self.name} did not start: {words or 'no answer in 30 s'}",
                    hint="run ./plugpull run once; it installs what is missing, also nbdkit's Python plugin",
                )
            time.sleep(0.002)  # it takes a few ms, and there is no descriptor to wait on

    def _plugin(self) -> list[str]:
        if self.model.plain:
            return ["file", str(self.medium)]
        model = {"traits": asdict(self.model.traits), "defects": self.model.defects, "seed": self.model.seed}
        files = [f"medium={self.medium}", f"counters={self._counters.path}", f"control={self._control}"]
        return ["python", str(PLUGIN), *files, f"model={json.dumps(model)}"]

    @property
    def powered(self) -> bool:
        return self.process.poll() is None

    @property
    def died(self) -> str:
        """A sentence on how the process ended although it had power, or an empty string.

        No disk does that, so it is a failure of the bench.
        """
        status = self.process.poll()
        if not self._on or status is None:
            return ""
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        words = self._log.read_text(errors="replace").strip().rpartition("\n")[2]
        return f"nbdkit, the firmware of {self.name}, {how}{f': {words}' if words else ''}"

    def power_off(self) -> None:
        """Kill the process with everything it held in memory.

        A healthy firmware gets no warning. One with defects first does what they make it do when power fails.
        """
        self._on = False
        if self.model.defects and self.powered:
            with suppress(RigError):  # a firmware that hangs or has died loses its power all the same
                self._ask("power-failing")
        process.end(self.process)

    # --- counters and commands --------------------------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        """The counters since the firmware was created; the names are ``COUNTERS``.

        Reading them costs the firmware nothing. After a power cut they hold the values at its death: ``dirty_bytes``
        is what was lost with the cache. Raises RigError for a plain firmware, which counts nothing.
        """
        self._needs_plugin()
        return {name: self._counters[name] for name in COUNTERS}

    def stall(self, seconds: float) -> None:
        """Answer no request for ``seconds`` from now on; 0 ends a stall. The cache stays. Raises RigError."""
        self._ask("stall", seconds)

    def fail(self, *errors: FailingSectors) -> None:
        """Make exactly these sectors bad from now on; without arguments, all are good again. Raises RigError."""
        self._ask("fail", [[bad.first, bad.count, bad.reads, bad.writes] for bad in errors])

    def write_out(self) -> None:
        """Write the whole cache to the medium, as an idle disk does. Raises RigError."""
        self._ask("write-out")

    def _needs_plugin(self) -> None:
        if self.model.plain:
            raise RigError(
                f"the firmware of {self.name} is nbdkit's file plugin, which has no counters and takes no commands",
                hint="give the disk a cache or a latency in the rig file",
            )

    def _ask(self, *request: Any) -> None:
        self._needs_plugin()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(ANSWER)
                connection.connect(str(self._control))
                connection.sendall(json.dumps(request).encode() + b"\n")
                answer = connection.makefile("rb").readline()
            said = json.loads(answer)
        except (OSError, ValueError) as error:
            raise RigError(f"the firmware of {self.name} did not answer the command {request[0]!r}: {error}") from None
        if said is not None:
            raise RigError(f"the firmware of {self.name} refused the command {request[0]!r}: {said}")

    # --- from outside -----------------------------------------------------------------------------------------------

    def hang(self) -> None:
        """Stop the whole process, like a firmware that is busy with internal work."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self.process.pid, signal.SIGCONT)

    def stand_still(self, on: bool) -> None:
        """Answer nothing from now on, or answer again. A disk with a cache forgets then what it was sent meanwhile, as
        one that was reset may; a plain disk executes it late."""
        if not self.model.plain:
            self._ask("stall", STILL if on else 0.0, True)
        elif on:
            self.hang()
            self._wait_stopped()
        else:
            self.resume()

    def _wait_stopped(self) -> None:
        """Wait until every thread has stopped: one that was not run since the signal still answers."""
        deadline = time.monotonic() + ANSWER
        states = os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG
        with suppress(ChildProcessError):  # it died and was waited for already
            while os.waitid(os.P_PID, self.process.pid, states) is None and time.monotonic() < deadline:
                time.sleep(0.001)  # nothing can be waited on that says when a process has stopped; it takes a few ms

    def flip_bit(self, offset: int) -> None:
        """Invert the lowest bit of one byte of the medium without the firmware's knowledge."""
        with self.medium.open("r+b") as file:
            file.seek(offset)
            value = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([value ^ 1]))

    def close(self) -> None:
        process.end(self.process)
