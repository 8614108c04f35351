"""Decide whether this machine can run a guest with KVM, by a trial of a few seconds.

/dev/kvm may exist and be unusable: nested without support, or broken so that a guest hangs in its boot ROM.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import shutil
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from plugpull.cache import Cache
from plugpull.errors import RigError, UsageError
from plugpull.virtual import process
from plugpull.virtual.machine import QEMU, qemu_version

PROBE_DEADLINE = 5.0
"""Seconds a guest gets to print its first line; with a working KVM it takes less than one."""


@dataclass(frozen=True)
class Accel:
    """``name`` is ``kvm`` or ``tcg``; ``why`` is the reason for the choice."""

    name: str
    why: str


def find_accel(wanted: str, kernel: Path, cache: Cache) -> Accel:
    """Choose the accelerator. ``wanted`` is ``auto``, ``kvm`` or ``tcg``.

    The result of a trial is kept until this machine boots again.
    """
    if wanted == "tcg":
        return Accel("tcg", "as requested")
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        why = "/dev/kvm cannot be opened" if os.path.exists("/dev/kvm") else "/dev/kvm does not exist"
        if wanted == "kvm":
            raise UsageError(f"KVM was requested, but {why}", hint="use --accel tcg or auto")
        return Accel("tcg", why)
    works, why = _remembered_trial(kernel, cache)
    if wanted == "kvm" and not works:
        raise RigError(f"KVM was requested, but {why}", hint="use --accel tcg or auto")
    return Accel("kvm" if works else "tcg", why)


def _remembered_trial(kernel: Path, cache: Cache) -> tuple[bool, str]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    key = hashlib.sha256(f"{boot} {qemu_version()} {PROBE_DEADLINE}".encode()).hexdigest()[:24]

    def build(directory: Path) -> None:
        works, why = _trial(kernel)
        (directory / "kvm.json").write_text(json.dumps({"works": works, "why": why}))

    found = json.loads((cache.get("kvm", key, build, description="does KVM work here") / "kvm.json").read_text())
    return bool(found["works"]), str(found["why"])


def _trial(kernel: Path) -> tuple[bool, str]:
    ours, theirs = socket.socketpair()
    directory = Path(tempfile.mkdtemp(prefix="plugpull-kvm-"))
    line = [QEMU, "-nodefaults", "-no-user-config", "-machine", "q35", "-accel", "kvm", "-cpu", "host", "-m", "256M"]
    line += [
        "-display",
        "none",
        "-no-reboot",
        "-kernel",
        str(kernel),
        "-append",
        "console=ttyS0 earlyprintk=serial panic=-1",
    ]
    line += ["-chardev", f"socket,id=console,fd={theirs.fileno()}", "-serial", "chardev:console"]
    guest = process.start(line, directory / "qemu.log", pass_fds=[theirs.fileno()])
    theirs.close()
    try:
        said = _first_words(ours)
        if b"Linux version" in said:
            return True, "a trial guest started"
        if guest.poll() is not None:
            words = (directory / "qemu.log").read_text(errors="replace").strip().splitlines()
            return False, f"QEMU cannot use it: {words[-1] if words else 'no reason given'}"
        return False, f"a trial guest printed nothing within {PROBE_DEADLINE:g} s"
    finally:
        process.end(guest)
        ours.close()
        shutil.rmtree(directory, ignore_errors=True)


def _first_words(connection: socket.socket) -> bytes:
    said, deadline = b"", time.monotonic() + PROBE_DEADLINE
    while b"Linux version" not in said and (left := deadline - time.monotonic()) > 0:
        if not select.select([connection], [], [], left)[0]:
            break
        chunk = connection.recv(65536)
        if not chunk:
            break
        said += chunk
    return said
