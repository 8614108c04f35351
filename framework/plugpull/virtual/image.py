"""The guest's root filesystem: an initramfs built from programs that are installed on this machine.

Python, fio, mkfs and their libraries are copied. Nothing has to be built or downloaded, and the guest's user space
matches the controller's. The result is one uncompressed cpio archive (newc format,
Documentation/driver-api/early-userspace/buffer-format.rst): under emulation, unpacking costs more than reading.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from plugpull.dut.conversation.agent_zip import agent_zip
from plugpull.errors import RigError
from plugpull.virtual.fewer_libraries import __file__ as edited_by
from plugpull.virtual.fewer_libraries import with_libraries
from plugpull.virtual.kernel_modules import module_name

PROGRAMS = ("fio", "mke2fs", "e2fsck")
BUSYBOX_APPLETS = ("sh", "mount", "insmod", "mkdir", "cat", "ln", "dmesg", "ls", "ps", "poweroff", "umount", "sleep")
FIO_LIBRARIES = ("libaio", "libm", "libnuma", "libz", "libpthread", "libdl", "librt")
"""What fio needs besides the C library to work on disks and files."""
LIBRARIES = ("libudev.so.1", "libblkid.so.1")
"""Libraries that the agent loads with ctypes: for uevents, and for the signatures on a disk."""
SYSTEM_PYTHON = "/usr/bin/python3"
_PORT = "plugpull.agent"

# Parts of the standard library that no agent uses; they would only fill the guest's memory.
_PYTHON_LEFT_OUT = re.compile(
    r"/(test|tests|idlelib|lib2to3|ensurepip|tkinter|turtledemo|distutils|pydoc_data|sqlite3|config-[^/]*|unittest)(/|$)"
    r"|/(_sqlite3|_tkinter|_test|_codecs_|xxlimited|_decimal|_curses)[^/]*$"
)

INIT = """#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
mount -t devtmpfs dev /dev
# The kernel found no console in the archive and started us without standard streams; whatever is opened first would
# become one.
exec </dev/console >/dev/console 2>&1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t debugfs debug /sys/kernel/debug
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm
ln -s /proc/self/fd /dev/fd
while read -r module options; do
  insmod "/plugpull/modules/$module" $options || echo "plugpull: cannot load $module"
done </plugpull/modules.order
while [ ! -e /sys/class/virtio-ports ] || [ -z "$(ls /sys/class/virtio-ports)" ]; do sleep 0.05; done
{before}/plugpull/python -I -B /plugpull/agent.zip --port {port}
echo "plugpull: the agent ended with status $?"
while :; do sleep 3600; done
"""


@dataclass(frozen=True)
class ArchiveMember:
    """One member of the archive: a file's bytes, a link's target or a directory."""

    path: str
    mode: int
    data: bytes = b""
    mtime: int = 0


@dataclass(frozen=True)
class Additions:
    """Additions to the plain bench's guest: tests of the framework use them for doubles of real hardware."""

    digest: str = ""
    """Changes when any of these additions does; part of the snapshot's key."""
    modules: tuple[str, ...] = ()
    """More kernel modules, as modprobe names, loaded at boot."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Module name -> its parameters in the form of insmod."""
    files: Callable[[], Iterable[ArchiveMember]] = tuple
    """Returns more files; called only when an image is built."""
    init: tuple[str, ...] = ()
    """Lines of shell that init runs before it starts the agent."""

    def joined(self, other: Additions) -> Additions:
        """Both of them."""
        digests = " ".join(digest for digest in (self.digest, other.digest) if digest)
        modules = tuple(dict.fromkeys((*self.modules, *other.modules)))
        options = {**self.options, **other.options}
        return Additions(digests, modules, options, lambda: [*self.files(), *other.files()], (*self.init, *other.init))


def cpio(entries: Iterable[ArchiveMember]) -> bytes:
    """Encode the entries as a newc archive."""
    parts: list[bytes] = []
    for number, entry in enumerate([*entries, ArchiveMember("TRAILER!!!", 0)], start=1):
        name = entry.path.encode() + b"\0"
        fields = (number, entry.mode, 0, 0, 1, entry.mtime, len(entry.data), 0, 0, 0, 0, len(name), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        parts.append(header + b"\0" * (-len(header) % 4))
        parts.append(entry.data + b"\0" * (-len(entry.data) % 4))
    return b"".join(parts)


class Tree:
    """Collects files from this machine under their own paths, with the directories and libraries they need."""

    def __init__(self) -> None:
        self._entries: dict[str, ArchiveMember] = {}

    def entries(self) -> list[ArchiveMember]:
        return [self._entries[path] for path in sorted(self._entries)]

    def directory(self, path: str) -> None:
        path = path.strip("/")
        while path and path not in self._entries:
            self._entries[path] = ArchiveMember(path, stat.S_IFDIR | 0o755)
            path = os.path.dirname(path)

    def file(self, path: str, data: bytes, mode: int = 0o644, mtime: int = 0) -> None:
        self.directory(os.path.dirname(path))
        self._entries[path.strip("/")] = ArchiveMember(path.strip("/"), stat.S_IFREG | mode, data, mtime)

    def link(self, path: str, target: str) -> None:
        self.directory(os.path.dirname(path))
        self._entries[path.strip("/")] = ArchiveMember(path.strip("/"), stat.S_IFLNK | 0o777, target.encode())

    def copy(self, path: str, to: str | None = None) -> None:
        """Copy a file with its content. Links are followed: the guest has no merged /usr to resolve them."""
        real = os.path.realpath(path)
        mode = 0o755 if os.access(real, os.X_OK) else 0o644
        # Dates are kept: Python uses a compiled module only if the date of its source matches.
        self.file(to or path, Path(real).read_bytes(), mode, int(os.stat(real).st_mtime))

    def program(self, path: str, to: str | None = None, folders: Iterable[Path] = ()) -> None:
        """Copy a program or shared object with every library it is linked against. ``folders`` have libraries that are
        not installed."""
        self.copy(path, to)
        for library in libraries(path, folders):
            # One that is not installed here goes where the guest's loader looks.
            place = library if library.startswith(("/lib", "/usr/lib")) else f"/usr/lib/{os.path.basename(library)}"
            if place.strip("/") not in self._entries:
                self.copy(library, place)


def libraries(path: str, folders: Iterable[Path] = ()) -> list[str]:
    """Absolute paths of the libraries that a dynamic object is linked against, also in ``folders``, from ``ldd``."""
    return re.findall(r"(?:=>\s+|^\s+)(/\S+)\s+\(", _linked(path, folders), re.MULTILINE)


def missing_libraries(path: str, folders: Iterable[Path] = ()) -> list[str]:
    """Names of the libraries that a dynamic object is linked against and that are not to be found."""
    return re.findall(r"^\s*(\S+) => not found", _linked(path, folders), re.MULTILINE)


def _linked(path: str, folders: Iterable[Path]) -> str:
    inherited = os.environ.get("LD_LIBRARY_PATH", "")
    named = ":".join([*map(str, folders), *([inherited] if inherited else [])])
    environ = os.environ | ({"LD_LIBRARY_PATH": named} if named else {})
    return subprocess.run(
        ["ldd", os.path.realpath(path)], capture_output=True, text=True, check=False, env=environ
    ).stdout


def _need(program: str) -> str:
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise RigError(
            f"{program} is not installed, and the guest needs a copy of it",
            hint="run ./plugpull run once; it installs what is missing",
        )
    return path


def _python_files() -> list[str]:
    """The parts of the system Python's standard library that a guest needs."""
    script = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    stdlib = subprocess.run([SYSTEM_PYTHON, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    found = [os.path.join(folder, name) for folder, _, names in os.walk(stdlib) for name in names]
    left_out = (".opt-1.pyc", ".opt-2.pyc")
    return [p for p in found if not _PYTHON_LEFT_OUT.search(p) and not p.endswith(left_out) and os.path.exists(p)]


def _add_python(tree: Tree) -> None:
    tree.program(SYSTEM_PYTHON)
    for path in _python_files():
        if path.endswith(".so"):
            tree.program(path)
        else:
            tree.copy(path)
    tree.link("/plugpull/python", SYSTEM_PYTHON)


def _add_library(tree: Tree, name: str) -> None:
    """Add a shared library that the agent loads by this name if it exists; nothing is linked against it."""
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = re.search(rf"^\s*{re.escape(name)} \([^)]*x86-64[^)]*\) => (\S+)", listing, re.MULTILINE)
    if found is not None:
        tree.program(found.group(1))


def _add_fio(tree: Tree) -> None:
    """Add fio without the libraries of storage that the guest does not have, if such a copy works here."""
    path = _need("fio")
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "fio"
        try:
            copy.write_bytes(with_libraries(Path(path).read_bytes(), FIO_LIBRARIES))
            copy.chmod(0o755)
            works = _fio_works(copy)
        except (ValueError, OSError, subprocess.TimeoutExpired):
            works = False
        tree.program(str(copy) if works else path, "/usr/bin/fio")


def _fio_works(fio: Path) -> bool:
    """Whether it writes and verifies a file as loads do."""
    words = ["--name=try", f"--filename={fio.parent / 'file'}", "--size=64k", "--ioengine=libaio", "--thread"]
    words += ["--rw=write", "--verify=crc32c", "--verify_state_save=0", "--do_verify=1", "--output-format=json"]
    return subprocess.run([fio, *words], cwd=fio.parent, capture_output=True, check=False, timeout=60).returncode == 0


def base_tree(*, without: frozenset[str] = frozenset(), init: Sequence[str] = ()) -> Tree:
    """User space: busybox, Python, fio, mkfs, the agent.

    ``without`` leaves programs out, for tests; ``init`` are shell lines that run before the agent starts.
    """
    tree = Tree()
    for path in ("/proc", "/sys", "/dev", "/run", "/tmp", "/etc", "/mnt"):
        tree.directory(path)
    tree.program(_need("busybox"), "/bin/busybox")  # linked statically, or dynamically since Debian 13
    for applet in BUSYBOX_APPLETS:
        tree.link(f"/bin/{applet}", "/bin/busybox")
    for program in PROGRAMS:
        if program == "fio" and program not in without:
            _add_fio(tree)
        elif program not in without:
            tree.program(_need(program), f"/usr/bin/{program}")
    tree.link("/usr/bin/mkfs.ext4", "/usr/bin/mke2fs")
    if os.path.exists("/etc/mke2fs.conf"):
        tree.copy("/etc/mke2fs.conf")
    _add_python(tree)
    for library in LIBRARIES:
        _add_library(tree, library)
    tree.file("/etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    tree.file("/etc/group", b"root:x:0:\n")
    tree.file("/plugpull/agent.zip", agent_zip())
    before = "".join(f"{line}\n" for line in init)
    tree.file("/init", INIT.replace("{port}", _PORT).replace("{before}", before).encode(), 0o755)
    return tree


def module_tree(modules: Iterable[tuple[str, bytes]], options: Mapping[str, str] | None = None) -> Tree:
    """Kernel modules: ``(file name, uncompressed bytes)`` in load order, and parameters by module name."""
    tree = Tree()
    order = []
    for name, data in modules:
        tree.file(f"/plugpull/modules/{name}", data)
        order.append(f"{name} {(options or {}).get(module_name(name), '')}".rstrip())
    tree.file("/plugpull/modules.order", ("\n".join(order) + "\n").encode())
    return tree


def ingredients(without: frozenset[str] = frozenset()) -> str:
    """Identifies the inputs of an image by dates and sizes, which is much quicker than building it.

    The loader's index stands for the libraries: it is rewritten whenever a library is installed.
    """
    programs = [_need(name) for name in ("busybox", *PROGRAMS) if name not in without]
    files = [SYSTEM_PYTHON, *programs, *sorted(_python_files()), "/etc/ld.so.cache", __file__, edited_by]
    lines = []
    for path in files:
        real = os.stat(path)
        lines.append(f"{path} {real.st_size} {real.st_mtime_ns}")
    lines.append(hashlib.sha256(agent_zip()).hexdigest())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
