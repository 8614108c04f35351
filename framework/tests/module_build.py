"""Builds a kernel module for the guest's kernel, against headers that are fetched as the kernel is: never installed."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from plugpull.cache import Cache
from plugpull.errors import PlugpullError
from plugpull.setup.apt import Apt, KernelPackage
from plugpull.virtual.kernel import find_kernel

SOURCES = Path(__file__).parent / "modules"
_HEADERS = re.compile(r"\b(linux-(?:headers|kbuild)-[\w.+~-]+)")
_VERSION = re.compile(r"^Version: (.*)$", re.MULTILINE)


def build(name: str) -> Path:
    """The module's file, from the cache if it was built before. Skips the test where a tool or the headers are not to
    be had; a module that does not build is a failure."""
    for tool in ("make", "apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} to build a kernel module with")
    cache = Cache.default(notify=lambda text: None)
    version = find_kernel(None, cache).version
    source = (SOURCES / f"{name}.c").read_bytes()
    key = f"{name}-{hashlib.sha256(version.encode() + source).hexdigest()[:16]}"
    try:
        made = cache.get("module", key, lambda place: _make(name, version, place), description=f"{name} for {version}")
    except PlugpullError as why:
        pytest.skip(f"the headers of {version} cannot be fetched: {why}")
    except subprocess.CalledProcessError as why:
        raise AssertionError(f"{name}.ko does not build for {version}: {str(why.stderr)[-2000:]}") from why
    return made / f"{name}.ko"


def variables() -> list[str]:
    """More arguments for make: the installed compiler, and no type information, for which kernels from 6.11 on need
    pahole."""
    compiler = [] if shutil.which("gcc-12") else ["CC=cc"]
    return [*compiler, "CONFIG_DEBUG_INFO_BTF_MODULES="]


def _make(name: str, version: str, place: Path) -> None:
    with TemporaryDirectory(prefix="plugpull-module-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        headers = _headers(version, root)
        (root / "module").mkdir()
        shutil.copy(SOURCES / f"{name}.c", root / "module")
        (root / "module" / "Makefile").write_text(f"obj-m := {name}.o\n")
        line = ["make", "-C", str(headers), f"M={root / 'module'}", "modules", *variables()]
        subprocess.run(line, check=True, capture_output=True, text=True, timeout=300)
        shutil.copy(root / "module" / f"{name}.ko", place)


def _headers(version: str, root: Path) -> Path:
    """A directory that modules of this kernel can be built in: the machine's own, or unpacked packages."""
    own = Path(f"/lib/modules/{version}/build")
    if own.is_dir():
        return own
    packages: dict[str, KernelPackage] = {}
    _follow(f"linux-headers-{version}", packages)
    if not packages:
        raise PlugpullError(f"apt knows no linux-headers-{version}")
    (root / "debs").mkdir()
    for deb in Apt().download(tuple(packages.values()), root / "debs"):
        subprocess.run(["dpkg-deb", "-x", str(deb), str(root)], check=True, capture_output=True, text=True)
    headers = root / "usr/src" / f"linux-headers-{version}"
    # Debian's is a file that includes the common part's by its absolute path; Ubuntu's is a link.
    makefile = headers / "Makefile"
    text = makefile.read_text()
    makefile.unlink()
    makefile.write_text(text.replace("include /usr/src/", f"include {root}/usr/src/"))
    return headers


def _follow(name: str, packages: dict[str, KernelPackage]) -> None:
    answer = subprocess.run(
        ["apt-cache", "show", "--no-all-versions", name], capture_output=True, text=True, check=False
    ).stdout
    found = _VERSION.search(answer)
    if found is None or name in packages:
        return
    packages[name] = KernelPackage(name, found.group(1))
    depends = next((line for line in answer.splitlines() if line.startswith("Depends:")), "")
    for other in _HEADERS.findall(depends):
        _follow(other, packages)
