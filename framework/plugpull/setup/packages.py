"""The system packages that plugpull needs: finds the missing ones and installs them with apt-get.

To add one, add a line to ``PACKAGES``. It is found by its commands or files, so a hand-built fio counts too.
"""

from __future__ import annotations

import glob
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from plugpull.setup.place import SetupError


class Package(NamedTuple):
    """One package. All of ``gives`` must exist: commands, or absolute path patterns; ``a|b`` is either one.

    ``group`` is ``base`` (every command), ``bench`` (commands that boot a guest) or ``test`` (the framework's own
    tests). plugpull goes on without an ``optional`` one if the distribution does not have it.
    """

    name: str
    gives: tuple[str, ...]
    why: str
    group: str = "bench"
    optional: bool = False


Step = Callable[[str, Callable[[], None]], None]
"""Runs a callable under a heading that is shown to the user."""

# Another apt or an unattended upgrade may hold the lock.
_PATIENT = ("-o", "DPkg::Lock::Timeout=300")
_LIBS = "/lib/*-linux-gnu*/{0}|/usr/lib/*-linux-gnu*/{0}|/usr/lib64/{0}|/usr/lib/{0}"

PACKAGES = (
    Package("libudev1", (_LIBS.format("libudev.so.1"),), "reads the kernel's device events", "base"),
    Package("qemu-system-x86", ("qemu-system-x86_64",), "emulates the machine, its USB controllers, hubs and disks"),
    Package("nbdkit", ("nbdkit",), "serves as the firmware of the emulated disks"),
    Package(
        "nbdkit-plugin-python",
        (_LIBS.format("nbdkit/plugins/nbdkit-python-plugin.so"),),
        "adds a cache and defects to that firmware",
    ),
    Package("fio", ("fio",), "loads the disks"),
    Package("busybox", ("busybox",), "boots the guest"),
    Package("python3", ("/usr/bin/python3",), "runs the agent in the guest"),
    Package("e2fsprogs", ("mkfs.ext4", "e2fsck"), "makes and checks file systems"),
    Package("kmod", ("depmod", "modinfo"), "sorts the guest's kernel modules"),
    Package("zstd", ("zstd",), "unpacks compressed kernel modules"),
    Package("util-linux", ("setpriv",), "ends helper processes together with the run"),
    Package("gcc", ("cc|gcc|clang",), "compiles the program that writes stamps on the DUT"),
    Package("libc6-dev", (_LIBS.format("libc.a"),), "provides the C library for that program"),
    Package("make", ("make",), "builds the kernel module that crashes the guest in tests", "test"),
    Package("openssh-client", ("ssh", "ssh-keygen"), "connects to the lab's guest as a DUT", "test"),
    Package("uhubctl", ("uhubctl",), "switches the hub ports of the lab's guest", "test"),
    Package("sispmctl", ("sispmctl",), "switches EnerGenie strips", "test"),
    Package(
        "chromium", ("chromium|chromium-browser|google-chrome",), "renders reports as a reader sees them", "test", True
    ),
)

# Commands that read files and use no guest. All other commands need a bench.
_LIGHT = frozenset({"", "help", "log", "switch", "check", "report", "rig", "cache", "trend", "compare"})


def groups_for(argv: Sequence[str]) -> frozenset[str]:
    """Groups of packages that the command line ``argv`` (without the program's name) needs."""
    command = next((word for word in argv if not word.startswith("-")), "")
    if command in _LIGHT or "--help" in argv or "-h" in argv or "--version" in argv:
        return frozenset({"base"})
    return frozenset({"base", "bench", "test"} if command == "test" else {"base", "bench"})


def venv_package(executable: str) -> Package | None:
    """The package that ``executable`` needs before it can make environments, ``None`` if it needs none.

    Debian and Ubuntu leave ensurepip out of the interpreter's own package.
    """
    from importlib.util import find_spec

    if find_spec("ensurepip") is not None and find_spec("venv") is not None:
        return None
    name = f"python3.{sys.version_info.minor}-venv"
    if not os.path.realpath(executable).startswith("/usr/bin/"):
        raise SetupError(
            f"{executable} cannot make environments: it has no ensurepip", hint=f"install {name} or another Python"
        )
    return Package(name, (), "makes plugpull's Python environment", "base")


def missing(groups: Iterable[str], packages: Sequence[Package] = PACKAGES) -> list[Package]:
    """Those of ``packages`` in ``groups`` that are not completely installed."""
    wanted = frozenset(groups)
    return [p for p in packages if p.group in wanted and not all(_there(thing) for thing in p.gives)]


def _there(alternatives: str) -> bool:
    return any(_one_there(thing) for thing in alternatives.split("|"))


def _one_there(thing: str) -> bool:
    if thing.startswith("/"):
        return bool(glob.glob(thing)) if "*" in thing else os.path.exists(thing)
    # On Debian, ordinary users have no sbin on their PATH, but mkfs.ext4 is there.
    path = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"
    return any(os.access(os.path.join(folder or ".", thing), os.X_OK) for folder in path.split(":"))


def apt_command(names: Sequence[str]) -> list[str]:
    """The command that installs ``names`` without recommended packages and without removing any."""
    return ["apt-get", "install", "-y", "--no-install-recommends", "--no-remove", *names]


def install(packages: Sequence[Package], log: str, step: Step) -> list[Package]:
    """Install ``packages`` with apt-get, as root or through sudo. Output goes to the file ``log``.

    Returns the optional packages that are not available. Raises SetupError without root rights or when apt-get fails.
    """
    needed = [p for p in packages if not p.optional]
    if not needed and _lists_there() and not any(_known(p.name) for p in packages):
        return list(packages)
    if not _one_there("apt-get"):
        if not needed:
            return list(packages)
        raise SetupError(
            "this system has no apt-get; install these packages by hand: " + ", ".join(p.name for p in needed),
            hint="the names are Debian's; looked for: " + ", ".join(thing for p in needed for thing in p.gives),
        )
    try:
        quiet = [*_as_root([p.name for p in packages]), "env", "DEBIAN_FRONTEND=noninteractive"]
    except SetupError:
        if needed:
            raise
        return list(packages)
    # Not checked: a third-party source that does not answer must not block the distribution's own.
    update = [*quiet, "apt-get", *_PATIENT, "update"]
    step("apt-get update", lambda: _logged(update, log, check=False))
    if needed:
        names = [p.name for p in needed]
        step(f"apt-get install {' '.join(names)}", lambda: _logged([*quiet, *apt_command(names), *_PATIENT], log))
    return [p for p in packages if p.optional and not _install_optional(p, quiet, log, step)]


def _install_optional(package: Package, quiet: Sequence[str], log: str, step: Step) -> bool:
    if not _known(package.name):
        return False
    try:
        step(f"apt-get install {package.name}", lambda: _logged([*quiet, *apt_command([package.name]), *_PATIENT], log))
    except SetupError:
        return False
    return True


def _lists_there() -> bool:
    return bool(glob.glob("/var/lib/apt/lists/*_Packages*"))


def _known(name: str) -> bool:
    """True if apt can install a package ``name``."""
    if not _one_there("apt-cache"):
        return False
    answer = subprocess.run(["apt-cache", "show", "--no-all-versions", name], capture_output=True, check=False)
    return answer.returncode == 0 and bool(answer.stdout)


def _as_root(names: Sequence[str]) -> list[str]:
    """The prefix that runs a command as root. Raises SetupError when there is no way."""
    if os.geteuid() == 0:
        return []
    if _one_there("sudo"):
        if subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0:
            return ["sudo", "-n"]
        if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
            return ["sudo"]
    raise SetupError(
        "installing packages needs root, and sudo does not work without a password here",
        hint=f"run: sudo apt-get update && sudo {shlex.join(apt_command(names))}",
    )


def _logged(command: Sequence[str], log: str, *, check: bool = True) -> None:
    with open(log, "ab") as out:
        out.write(f"\n$ {shlex.join(command)}\n".encode())
        out.flush()
        start = out.tell()
        status = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    if check and status:
        raise SetupError(f"apt-get failed:\n{tail(log, start)}", hint=f"see the full output in {log}")


def tail(log: str, start: int = 0, lines: int = 12) -> str:
    """The last lines of a log from byte ``start`` on, indented."""
    with open(log, "rb") as file:
        file.seek(start)
        text = file.read().decode(errors="replace")
    return "\n".join("    " + line for line in text.rstrip().splitlines()[-lines:])
