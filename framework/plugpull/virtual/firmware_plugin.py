"""An nbdkit plugin: a disk with a volatile cache and with defects. ``firmware.py`` runs it as

    nbdkit python firmware_plugin.py medium=FILE counters=FILE control=SOCKET model=JSON

``model`` has ``traits`` (the fields of ``Traits``), ``defects`` ([kind, parameters] pairs) and optionally a ``seed``.
The control socket takes one JSON array per line, [method, arguments ...]. It answers each with null or an error
message. The table ``CONTROLS`` lists the methods.

Source of the callbacks: nbdkit-python-plugin(3), nbdkit-plugin(3).
"""

from __future__ import annotations

import errno
import json
import os
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbdkit  # type: ignore[import-not-found]  # exists only inside nbdkit

# nbdkit runs this with the system's Python. That one may have another version, does not know where plugpull is, and
# must not leave files there.
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from plugpull.virtual import firmware_defects  # noqa: E402
from plugpull.virtual.firmware_drive import Drive, DriveCounters, FailingSectors, Traits  # noqa: E402

del sys.path[0]

API_VERSION = 2

_given: dict[str, str] = {}
_drive: list[Drive] = []
"""The drive once it exists; global because nbdkit's callbacks are functions of this module."""

CONTROLS: dict[str, Callable[..., None]] = {
    "stall": lambda drive, seconds, forgets=False: drive.stall(seconds, forgets),
    "fail": lambda drive, errors: drive.fail([FailingSectors(*bad) for bad in errors]),
    "power-failing": lambda drive: drive.power_failing(),
    "write-out": lambda drive: drive.write_out_older_than(0.0),
}


class Control(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            answer = None
            try:
                method, *arguments = json.loads(line)
                CONTROLS[method](_drive[0], *arguments)
            except Exception as error:  # any failure is reported to the client
                answer = f"{type(error).__name__}: {error}"
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def config(key: str, value: str) -> None:
    _given[key] = value


def config_complete() -> None:
    model = json.loads(_given["model"])
    defects = [firmware_defects.make(kind, parameters) for kind, parameters in model["defects"]]
    medium = os.open(_given["medium"], os.O_RDWR | os.O_CLOEXEC)
    counters = DriveCounters(Path(_given["counters"]))
    _drive.append(Drive(medium, Traits(**model["traits"]), counters, defects, model.get("seed")))


def after_fork() -> None:
    """Start the threads: nbdkit allows that only after it has forked."""
    server = socketserver.ThreadingUnixStreamServer(_given["control"], Control)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="control", daemon=True).start()
    if _drive[0].traits.write_back is not None:
        threading.Thread(target=_age, args=(_drive[0].traits.write_back,), name="write-back", daemon=True).start()


def _age(seconds: float) -> None:
    while True:
        time.sleep(min(seconds / 4, 0.5))  # blocks age with time; there is no event to wait for
        _drive[0].write_out_older_than(seconds * 3 / 4)


def thread_model() -> int:
    model: int = nbdkit.THREAD_MODEL_PARALLEL
    return model


def open(readonly: bool) -> Drive:
    return _drive[0]


def get_size(drive: Drive) -> int:
    return drive.size


def can_fua(drive: Drive) -> int:
    native: int = nbdkit.FUA_NATIVE
    return native


def can_multi_conn(drive: Drive) -> bool:
    """All connections share one cache: a flush on one of them covers all."""
    return True


def _failing(error: OSError) -> None:
    nbdkit.set_error(error.errno or errno.EIO)


def pread(drive: Drive, buffer: Any, offset: int, flags: int) -> None:
    try:
        drive.read(offset, memoryview(buffer))
    except OSError as error:
        _failing(error)
        raise


def pwrite(drive: Drive, buffer: Any, offset: int, flags: int) -> None:
    try:
        drive.write(offset, bytes(buffer), bool(flags & nbdkit.FLAG_FUA))
    except OSError as error:
        _failing(error)
        raise


def flush(drive: Drive, flags: int) -> None:
    drive.flush()


def zero(drive: Drive, count: int, offset: int, flags: int) -> None:
    try:
        drive.zero(offset, count, bool(flags & nbdkit.FLAG_FUA))
    except OSError as error:
        _failing(error)
        raise


def trim(drive: Drive, count: int, offset: int, flags: int) -> None:
    zero(drive, count, offset, flags)
