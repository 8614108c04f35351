"""What a guest needs for arrays: md's modules, and mdadm.

mdadm is taken from this machine, or else from the distribution's package, which is unpacked and not installed: mdadm's
package installs rules that assemble arrays on the machine it is installed on.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from plugpull.cache import Cache
from plugpull.errors import RigError, UsageError
from plugpull.setup.apt import Apt, KernelSource
from plugpull.virtual.chosen_packages import chosen_packages
from plugpull.virtual.image import Additions, ArchiveMember, Tree
from plugpull.virtual.kernel import KernelTree, missing_modules

MODULES = ("raid0", "raid1", "raid10", "raid456")
_PROGRAM = "mdadm"
_BYTES = 8 << 20


def array_tools(kernel: KernelTree, cache: Cache, notify: Callable[[str], None]) -> Additions:
    """What is added to the guest for arrays. Without mdadm or md's modules, nothing: then no array can be made, and
    scenarios that need one are skipped."""
    program = find_mdadm(cache, notify)
    if program is None or missing_modules(kernel, MODULES):
        return Additions()
    digest = "mdadm " + hashlib.sha256(program.read_bytes()).hexdigest()

    def files() -> list[ArchiveMember]:
        tree = Tree()
        tree.program(str(program), "/usr/bin/mdadm")
        return tree.entries()

    return Additions(digest=digest, modules=MODULES, files=files)


def find_mdadm(cache: Cache, notify: Callable[[str], None], apt: Apt | None = None) -> Path | None:
    """The program; ``None`` if it is not installed and cannot be downloaded from the distribution."""
    installed = shutil.which(_PROGRAM, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if installed is not None:
        return Path(installed)
    source = KernelSource(cache.root / "apt", notify, apt or Apt())
    packages = chosen_packages(
        cache, source.apt, "package", [_PROGRAM], lambda: filter(None, [source.apt.package(_PROGRAM)])
    )
    if not packages:
        return None
    package = packages[0]

    def build(place: Path) -> None:
        with TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as folder:
            notify(f"downloading {package} (it is unpacked, not installed)")
            _unpack(source.fetch([package], Path(folder))[0], place)

    key = f"pkg-{hashlib.sha256(str(package).encode()).hexdigest()[:16]}"
    try:
        place = cache.get("program", f"{_PROGRAM}-{key}", build, description=str(package), needs=_BYTES)
    except (RigError, UsageError) as error:
        notify(f"no arrays in the guest: {error.what}")
        return None
    return place / _PROGRAM


def _unpack(package: Path, place: Path) -> None:
    with TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as stage:
        subprocess.run(["dpkg-deb", "-x", str(package), stage], check=True, capture_output=True)
        found = [path for path in (Path(stage, "sbin/mdadm"), Path(stage, "usr/sbin/mdadm")) if path.is_file()]
        if not found:
            raise UsageError(f"{package.name} has no mdadm in it")
        shutil.copy2(found[0], place / _PROGRAM)
