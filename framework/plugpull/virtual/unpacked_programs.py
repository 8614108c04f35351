"""Programs for the guest from the distribution's packages. They are unpacked into the cache and never installed.

The guest's user space is a copy of this machine's, so the packages are those that apt would install here, with the
libraries that they need and this machine lacks.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from plugpull.cache import Cache
from plugpull.errors import RigError, UsageError
from plugpull.setup.apt import Apt, KernelSource
from plugpull.virtual.chosen_packages import chosen_packages
from plugpull.virtual.image import missing_libraries

_BYTES = 64 << 20
_FOLDERS = ("usr/sbin", "sbin", "usr/bin", "bin")


@dataclass(frozen=True)
class UnpackedPrograms:
    """Packages below ``root``."""

    root: Path

    def program(self, name: str) -> Path | None:
        """The file of a program; ``None`` if no package contains it."""
        return next((path for folder in _FOLDERS if (path := self.root / folder / name).is_file()), None)

    @property
    def libraries(self) -> tuple[Path, ...]:
        """Directories with shared libraries, for the loader."""
        return tuple(sorted({path.parent for path in self.root.rglob("*.so*") if path.is_file()}))


def unpack_programs(
    programs: Mapping[str, Sequence[str]], cache: Cache, notify: Callable[[str], None], apt: Apt | None = None
) -> UnpackedPrograms | None:
    """The ``programs`` of packages: package name to names of programs. ``None``, with the reason to ``notify``, if a
    package cannot be had."""
    if shutil.which("apt-get") is None:
        return None
    source = KernelSource(cache.root / "apt", notify, apt or Apt())
    try:
        names = sorted(programs)
        packages = chosen_packages(cache, source.apt, "needed", names, lambda: source.needed(names))
        key = f"unpacked-{_hash(packages)}"
        title = ", ".join(map(str, packages))

        def build(place: Path) -> None:
            with TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as folder:
                notify(f"downloading {title} (unpacked, not installed)")
                _unpack(source.fetch(packages, Path(folder)), place)
            _prove(UnpackedPrograms(place), programs)

        return UnpackedPrograms(cache.get("program", key, build, description=title, needs=_BYTES))
    except (RigError, UsageError) as error:
        notify(f"not in the guest: {', '.join(sorted(programs))}: {error.what}")
        return None


def _unpack(packages: Iterable[Path], place: Path) -> None:
    for package in packages:
        answer = subprocess.run(
            ["dpkg-deb", "-x", str(package), str(place)], capture_output=True, text=True, check=False
        )
        if answer.returncode:
            raise UsageError(f"{package.name} cannot be unpacked: {answer.stderr.strip()}")
    shutil.rmtree(place / "usr/share", ignore_errors=True)  # documentation


def _prove(found: UnpackedPrograms, programs: Mapping[str, Sequence[str]]) -> None:
    """Raises UsageError for a program that is not there or would not start in the guest."""
    for package, names in programs.items():
        for name in names:
            path = found.program(name)
            if path is None:
                raise UsageError(f"{package} has no {name}")
            if missing := missing_libraries(str(path), found.libraries):
                raise UsageError(f"{name} of {package} needs {', '.join(missing)}, which no package brings")


def _hash(words: Iterable[object]) -> str:
    return hashlib.sha256("\n".join(map(str, words)).encode()).hexdigest()[:16]
