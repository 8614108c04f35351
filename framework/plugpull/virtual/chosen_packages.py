"""What apt said about packages, which takes it 0.5 to 2 s: kept until something changes that decides its answer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from plugpull.cache import Cache
from plugpull.setup.apt import Apt, KernelPackage

_STATE = ("/var/lib/apt/lists", "/var/lib/dpkg/status", "/etc/apt/preferences", "/etc/apt/preferences.d")
"""What decides which packages apt would install: the packages on offer, the installed ones, and the preferences."""


def chosen_packages(
    cache: Cache, apt: Apt, question: str, names: Sequence[str], ask: Callable[[], Iterable[KernelPackage]]
) -> tuple[KernelPackage, ...]:
    """The answer of ``ask`` to a ``question`` about the packages ``names``, or that of an earlier run.

    Raises what ``ask`` raises, which is not kept."""
    state = [str(Path(path).stat().st_mtime_ns) if Path(path).exists() else "" for path in _STATE]

    def build(place: Path) -> None:
        (place / "packages").write_text("\n".join(map(str, ask())))

    words = [question, *names, *state, str(apt.options)]
    key = "apt-" + hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
    text = (cache.get("choice", key, build, description=f"packages of {', '.join(names)}") / "packages").read_text()
    return tuple(KernelPackage(*line.split("=", 1)) for line in text.splitlines())
