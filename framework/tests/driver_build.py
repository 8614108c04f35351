"""Rebuilds drivers of the guest's kernel from the distribution's source, as they are or with a bug put in."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

import module_build
import pytest

from plugpull.cache import Cache
from plugpull.errors import PlugpullError, RigError
from plugpull.setup.apt import Apt, KernelPackage
from plugpull.virtual.kernel import find_kernel

ASKED = os.environ.get("PLUGPULL_DRIVER_BUGS", "") not in ("", "0")
"""Whether what takes long may be done: fetching the kernel's source, 140 MB, of which 12 MB are kept."""
DRIVER = "drivers/usb/storage"


class Part(NamedTuple):
    """A part of the kernel's source. ``past`` is what comes after all that is ``wanted``: these archives are sorted.
    ``known`` is one of its files."""

    name: str
    wanted: str
    past: str
    known: str


USB_SCSI = Part(
    "usb-scsi",
    r"[^/]+/(drivers/usb/(?:storage|core|common)/.+|drivers/usb/host/[^/]+|drivers/scsi/[^/]+)$",
    r"[^/]+/(drivers/usb/[t-z]|drivers/[v-z]|[e-z])",
    f"{DRIVER}/usb.c",
)
MD = Part(
    "md",
    r"[^/]+/(drivers/md/[^/]+)$",
    r"[^/]+/(drivers/me|drivers/m[f-z]|drivers/[n-z]|[e-z])",
    "drivers/md/raid1.c",
)
FILESYSTEMS = Part(
    "filesystems",
    r"[^/]+/(fs/(?:btrfs|ext4|f2fs|fat|jbd2|xfs)/.+)$",
    r"[^/]+/(fs/z|[g-z])",
    "fs/xfs/xfs_file.c",
)

KUNIT = Part(
    "kunit",
    r"[^/]+/(tools/testing/kunit/[^/]+\.py)$",
    r"[^/]+/(tools/testing/[l-z]|tools/[u-z]|[u-z])",
    "tools/testing/kunit/kunit_parser.py",
)
"""The reader of KTAP that the kernel's own tests use."""


def source_of(part: Part) -> Path:
    """A directory with a part of the source of the guest's kernel. Skips the test where that is neither cached nor to
    be fetched."""
    cache = Cache.default(notify=lambda text: None)
    try:
        return _source(find_kernel(None, cache).version, cache, part)
    except PlugpullError as error:
        pytest.skip(f"the guest's kernel is not known here: {error.what}")


def usb_storage(patch: str = "") -> Path:
    """``usb-storage.ko`` for the guest's kernel, from the cache if it was built before. ``patch`` names a file of
    ``modules/``. Skips the test where the source is neither cached nor to be fetched."""
    cache = Cache.default(notify=lambda text: None)
    version = find_kernel(None, cache).version
    change = (module_build.SOURCES / f"{patch}.patch").read_text() if patch else ""
    source = _source(version, cache, USB_SCSI)
    key = f"usb-storage-{hashlib.sha256(f'{version} {change}'.encode()).hexdigest()[:16]}"
    what = f"usb-storage with {patch or 'no change'} for {version}"

    def make(place: Path) -> None:
        _make(version, source, DRIVER, "usb-storage", lambda tree: _patched(tree, change), place)

    return cache.get("module", key, make, description=what) / "usb-storage.ko"


def driver(folder: str, module: str, edit: Callable[[Path], None], name: str, part: Part = USB_SCSI) -> Path:
    """``module.ko`` of ``folder``, such as ``drivers/scsi``, after ``edit`` changed that part of the source; from the
    cache if it was built before under this ``name``, which must be different for every change."""
    cache = Cache.default(notify=lambda text: None)
    version = find_kernel(None, cache).version
    source = _source(version, cache, part)
    key = f"{module}-{hashlib.sha256(f'{version} {name}'.encode()).hexdigest()[:16]}"

    def make(place: Path) -> None:
        _make(version, source, folder, module, edit, place)

    return cache.get("module", key, make, description=f"{module} with a bug for {version}") / f"{module}.ko"


def noting(folder: str, module: str, file: str, part: Part = USB_SCSI) -> Path:
    """A directory with ``module.ko`` that logs each basic block of its code when it runs first, and ``module.debug``,
    the same with debugging information. ``file`` is one of its source files."""
    cache = Cache.default(notify=lambda text: None)
    version = find_kernel(None, cache).version
    source = _source(version, cache, part)
    notes = (module_build.SOURCES / "plugpull_lines.c").read_text()
    key = f"{module}-{hashlib.sha256(f'{version} {notes} {file}'.encode()).hexdigest()[:16]}"

    def edit(tree: Path) -> None:
        for name, more in ((file, notes), ("Makefile", "ccflags-y += -fsanitize-coverage=trace-pc -g\n")):
            place = tree / folder / name
            place.write_text(f"{place.read_text()}\n{more}")

    def make(place: Path) -> None:
        _make(version, source, folder, module, edit, place, debug=True)

    return cache.get("module", key, make, description=f"{module} that notes what runs, for {version}")


def _source(version: str, cache: Cache, part: Part) -> Path:
    """A directory with a part of the kernel's source, below its names in the kernel's tree."""
    packages: dict[str, KernelPackage] = {}
    headers = f"linux-headers-{version}"
    module_build._follow(headers, packages)
    numbers = re.match(r"\d+\.\d+", version)
    if headers not in packages or numbers is None:
        pytest.skip(f"apt knows no {headers} to build {part.name} with")
    package = KernelPackage(f"linux-source-{numbers[0]}", packages[headers].version)
    key = f"drivers-{part.name}-{package.version.replace(':', '_')}"
    if ASKED:
        what = f"drivers ({part.name}) of {package}"
        cache.get("source", key, lambda place: _fetch(package, part, place), description=what)
    try:
        with cache.hold("source", key) as place:
            return place
    except RigError:
        pytest.skip(f"the cache has no source of {part.name}, of {package}: PLUGPULL_DRIVER_BUGS=1 fetches it")


def _fetch(package: KernelPackage, part: Part, place: Path) -> None:
    with TemporaryDirectory(prefix="plugpull-source-") as folder:
        # apt drops its privileges to download, so that somebody else must be able to write here.
        Path(folder).chmod(0o755)
        (deb,) = Apt().download((package,), Path(folder))
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as unpacking:
            assert unpacking.stdout is not None
            for path, content in _wanted(unpacking.stdout, part):
                (place / path).parent.mkdir(parents=True, exist_ok=True)
                (place / path).write_bytes(content)
            # The rest is of no interest.
            unpacking.kill()
    if not (place / part.known).is_file():
        raise PlugpullError(f"{package} has no {part.known}")


def _wanted(package: IO[bytes], part: Part) -> Iterator[tuple[str, bytes]]:
    """The package holds an archive of the tree."""
    with tarfile.open(fileobj=package, mode="r|") as outer:
        for member in outer:
            if not re.search(r"/linux-source-[\d.]+\.tar\.xz$", member.name) or not member.isfile():
                continue
            with tarfile.open(fileobj=outer.extractfile(member), mode="r|xz") as tree:
                for file in tree:
                    if re.match(part.past, file.name):
                        return
                    content = tree.extractfile(file) if file.isfile() else None
                    if content is not None and (found := re.match(part.wanted, file.name)):
                        yield found[1], content.read()


def _patched(tree: Path, change: str) -> None:
    if change:
        # Outside of any repository git applies a patch to the files as they are.
        line = ["git", "apply", "--whitespace=nowarn", "-"]
        ceiling = os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent)}
        subprocess.run(line, cwd=tree, input=change, check=True, text=True, env=ceiling)


def _make(
    version: str,
    source: Path,
    folder: str,
    module: str,
    edit: Callable[[Path], None],
    place: Path,
    *,
    debug: bool = False,
) -> None:
    with TemporaryDirectory(prefix="plugpull-driver-") as temporary:
        root = Path(temporary)
        root.chmod(0o755)
        headers = module_build._headers(version, root)
        tree = root / "linux"
        shutil.copytree(source, tree)
        edit(tree)
        make = ["make", "-C", str(headers), f"M={tree / folder}", f"{module}.ko", *module_build.variables()]
        done = subprocess.run(make, capture_output=True, text=True, timeout=1800, check=False)
        if done.returncode:
            raise PlugpullError(f"{module} does not build for {version}: {done.stderr[-1000:]}")
        if debug:
            shutil.copy(tree / folder / f"{module}.ko", place / f"{module}.debug")
        if shutil.which("strip"):
            # xfs has 43 MB of debugging information, which the guest would have to read.
            subprocess.run(["strip", "--strip-debug", str(tree / folder / f"{module}.ko")], check=True)
        shutil.copy(tree / folder / f"{module}.ko", place)
