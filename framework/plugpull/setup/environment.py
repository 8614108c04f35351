"""The Python environment of the command: one for each checkout, lock file and interpreter.

An environment cannot be moved, so it is made in place, under an exclusive lock that pip inherits. When a launcher is
killed half-way, the next one waits for its pip to end, finds no ``entry.json`` and starts over.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from plugpull.setup.packages import Step, tail
from plugpull.setup.place import CONTENT, ENTRY, SetupError, lock, make_writable, trusted

KIND = "env"
_DEPENDS_ON = ("requirements.lock", "pyproject.toml", "framework/plugpull/__init__.py")
BUILDERS = ("setuptools",)
"""Builds those packages of the lock file that are published only as source. It is installed before them."""
_UNUSED_AFTER = 30 * 86400.0


class Environment(NamedTuple):
    """An environment that is ready. While the descriptor ``hold`` is open, nobody removes the environment."""

    path: str
    hold: int

    def program(self, name: str) -> str:
        return os.path.join(self.path, "bin", name)


def environment_key(checkout: str) -> str:
    """The key of the environment for ``checkout`` (its real path) and the running interpreter."""
    digest = sha256(f"{checkout}\0{_base_python()}\0{sys.version_info[:2]}".encode())
    for name in _DEPENDS_ON:
        try:
            with open(os.path.join(checkout, name), "rb") as file:
                digest.update(b"\0" + file.read())
        except OSError as error:
            raise SetupError(
                f"cannot read {error.filename}: {error.strerror}", hint="check that the checkout is complete"
            ) from None
    return digest.hexdigest()[:16]


def ready(checkout: str, root: str) -> Environment | None:
    """The environment for ``checkout`` if it exists, else None. Every start of the command waits for this."""
    place = os.path.join(root, KIND, environment_key(checkout))
    trusted(root, os.path.dirname(place), place, os.path.join(place, CONTENT))
    if not os.path.exists(os.path.join(place, ENTRY)):
        return None
    return _hold(place)


def make(checkout: str, root: str, step: Step, notify: Callable[[str], None]) -> Environment:
    """Make the environment for ``checkout``, unless another process made it meanwhile. Raises SetupError."""
    make_writable(root, KIND)
    place = os.path.join(root, KIND, environment_key(checkout))

    said: list[str] = []

    def waiting() -> None:
        if not said:
            said.append("waiting for another plugpull that is making the same environment")
            notify(said[0])

    while True:
        if (found := _hold(place, waiting)) is not None:
            return found
        fd = lock(place + ".lock", wait=False)
        if fd is None:
            waiting()
            # Another one has begun to make it: the next shared lock waits for that, and not for who then uses it. Or it
            # is broken and in use, and there is nothing to wait on.
            time.sleep(0.05)
            continue
        try:
            if not _usable(place):
                _build(checkout, place, root, fd, step)
                _prune(os.path.dirname(place), spare=place)
        finally:
            os.close(fd)


def _hold(place: str, waiting: Callable[[], None] | None = None) -> Environment | None:
    if not os.path.isdir(os.path.dirname(place)):
        return None
    fd = lock(place + ".lock", shared=True, on_wait=waiting)
    if fd is None or not _usable(place):
        if fd is not None:
            os.close(fd)
        return None
    os.utime(os.path.join(place, ENTRY))  # the time of the last use, for `plugpull cache`
    return Environment(os.path.join(place, CONTENT), fd)


def _usable(place: str) -> bool:
    """True if it is complete and its interpreter still exists: an upgrade of the system may have removed it."""
    python = os.path.join(place, CONTENT, "bin", "python")
    return os.path.exists(os.path.join(place, ENTRY)) and os.access(python, os.X_OK)


def _base_python() -> str:
    # _base_executable is the interpreter behind a virtual environment. An environment made from another one's
    # interpreter must not depend on that environment.
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def _build(checkout: str, place: str, root: str, fd: int, step: Step) -> None:
    import json
    import shutil

    content = os.path.join(place, CONTENT)
    log = os.path.join(root, "log", "environment.log")
    make_writable(root, "log")
    pip = [os.path.join(content, "bin", "python"), "-m", "pip", "--disable-pip-version-check", "install", "--no-input"]
    lock_file = os.path.join(checkout, "requirements.lock")

    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place, 0o700)
    step("making the Python environment", lambda: _run([_base_python(), "-m", "venv", content], log, fd))
    builders = os.path.join(place, "builders.lock")
    with open(builders, "w", encoding="utf-8") as file:
        file.write(locked(lock_file, BUILDERS))
    # The lock file is complete, so there is nothing to resolve. A package published only as source is built with the
    # locked build tool, not with unpinned packages that pip would fetch for it (build isolation).
    pinned = [*pip, "--no-deps", "--require-hashes"]

    def install() -> None:
        _run([*pinned, "--only-binary", ":all:", "-r", builders], log, fd)
        _run([*pinned, "--no-build-isolation", "--use-pep517", "-r", lock_file], log, fd)

    step("installing Python packages", install)
    step(
        "installing plugpull",
        lambda: _run([*pip, "--no-deps", "--no-build-isolation", "--no-index", "-e", checkout], log, fd),
    )
    entry = {
        "description": f"Python {sys.version_info.major}.{sys.version_info.minor} for {checkout}",
        "size": sum(_sizes(content)),
        "built": time.time(),
        "checkout": checkout,
    }
    with open(os.path.join(place, ENTRY + ".new"), "w", encoding="utf-8") as file:
        json.dump(entry, file)
    os.rename(os.path.join(place, ENTRY + ".new"), os.path.join(place, ENTRY))


def locked(lock_file: str, names: Sequence[str]) -> str:
    """The lines of a lock file for these packages, with their hashes."""
    with open(lock_file, encoding="utf-8") as file:
        entries = file.read().replace("\\\n", "\\\0").splitlines()
    kept = [entry for entry in entries if entry.split("==")[0] in names]
    return "".join(entry.replace("\0", "\n") + "\n" for entry in kept)


def _run(command: list[str], log: str, fd: int) -> None:
    import shlex
    import subprocess

    with open(log, "ab") as out:
        out.write(f"\n$ {shlex.join(command)}\n".encode())
        out.flush()
        start = out.tell()
        status = subprocess.run(
            command, stdout=out, stderr=subprocess.STDOUT, check=False, env=_clean(os.environ), pass_fds=[fd]
        ).returncode
    if status:
        raise SetupError(f"{shlex.join(command)} failed:\n{tail(log, start)}", hint=f"see the full output in {log}")


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    """Without variables that make pip install elsewhere or other packages. Those that name package indexes stay."""
    elsewhere = {
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_ROOT",
        "PIP_REQUIREMENT",
        "PIP_CONSTRAINT",
        "PYTHONHOME",
        "PYTHONPATH",
    }
    env = {name: value for name, value in environ.items() if name not in elsewhere}
    return env | {"PIP_USER": "0", "PIP_REQUIRE_HASHES": "0"}


def _sizes(folder: str) -> Iterator[int]:
    for path, _, names in os.walk(folder):
        for name in names:
            yield os.lstat(os.path.join(path, name)).st_blocks * 512


def _prune(folder: str, spare: str) -> None:
    """Remove environments whose checkout is gone or that were not used for a month."""
    import json
    import shutil

    for name in os.listdir(folder):
        place = os.path.join(folder, name)
        if place == spare or not os.path.isdir(place):
            continue
        fd = lock(place + ".lock", wait=False)
        if fd is None:
            continue
        try:
            entry: dict[str, Any] = {}
            stamp = os.path.join(place, ENTRY)
            if os.path.exists(stamp):
                with open(stamp, encoding="utf-8") as file:
                    entry = json.load(file)
                if os.path.isdir(entry.get("checkout", "")) and time.time() - os.stat(stamp).st_mtime < _UNUSED_AFTER:
                    continue
                os.unlink(stamp)
            shutil.rmtree(place, ignore_errors=True)
            os.unlink(place + ".lock")
        finally:
            os.close(fd)
