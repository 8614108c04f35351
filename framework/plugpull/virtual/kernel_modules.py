"""The module files that a kernel must load for given modules, in load order, from depmod's output.

``modules.dep`` lists all dependencies of each file, nearest first. ``modules.softdep`` and ``modules.alias`` name
modules that should be loaded too (ext4's checksum, for one). Sources: depmod.d(5), modules.dep(5), kmod's
libkmod-module.c.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from plugpull.errors import UsageError

_SUFFIX = re.compile(r"\.ko(\.(gz|xz|zst))?$")


def module_name(path: Path | str) -> str:
    """The module's name in the kernel: ``usb_storage`` for ``.../usb-storage.ko.xz``."""
    return _SUFFIX.sub("", os.path.basename(path)).replace("-", "_")


def read_module(path: Path) -> bytes:
    """A module file's content, uncompressed."""
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", str(path)], capture_output=True, check=True).stdout
    return path.read_bytes()


def modinfo(path: Path, field: str) -> str:
    """One field of a module file, such as ``vermagic``. Raises UsageError when the file is not a module."""
    answer = subprocess.run(
        [kmod_tool("modinfo"), "-F", field, str(path.absolute())], capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise UsageError(f"{path} is not a kernel module: {answer.stderr.strip() or 'modinfo cannot read it'}")
    return answer.stdout.strip()


_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class ModuleIndex:
    """A ``lib/modules/VERSION`` directory as depmod describes it. Names have ``_`` for ``-``."""

    folder: Path
    files: Mapping[str, Path]
    """Module name -> its file."""
    needs: Mapping[str, tuple[str, ...]]
    """Module name -> names of all modules that it depends on, nearest first."""
    soft: Mapping[str, tuple[str, ...]]
    """Module name -> names or aliases that should be loaded before or after it."""
    aliases: tuple[tuple[str, str], ...]
    builtin: frozenset[str]

    @classmethod
    def read(cls, folder: Path) -> ModuleIndex:
        """Raises UsageError when depmod has not indexed the directory."""
        if not (folder / "modules.dep").is_file():
            raise UsageError(f"{folder} has no modules.dep", hint=f"run: depmod -b {folder.parents[2]} {folder.name}")
        files: dict[str, Path] = {}
        needs: dict[str, tuple[str, ...]] = {}
        for line in _lines(folder / "modules.dep"):
            path, _, after = line.partition(":")
            files[module_name(path)] = folder / path
            needs[module_name(path)] = tuple(module_name(word) for word in after.split())
        soft = {
            words[1].replace("-", "_"): tuple(word for word in words[2:] if word not in ("pre:", "post:"))
            for words in map(str.split, _lines(folder / "modules.softdep"))
        }
        aliases = tuple(
            (words[1], words[2].replace("-", "_")) for words in map(str.split, _lines(folder / "modules.alias"))
        )
        builtin = frozenset(module_name(line) for line in _lines(folder / "modules.builtin"))
        return cls(folder, files, needs, soft, aliases, builtin)

    def has(self, name: str) -> bool:
        """True if the kernel has the module, as a file or built in."""
        name = name.replace("-", "_")
        return name in self.files or name in self.builtin

    def resolve(self, name: str) -> tuple[str, ...]:
        """The modules with files that match ``name``, a module or an alias; empty when built in or unknown."""
        plain = name.replace("-", "_")
        if plain in self.files:
            return (plain,)
        if plain in self.builtin:
            return ()
        # A kernel has 25,000 aliases, and compiling a pattern for each takes seconds. Comparing the beginning rules out
        # most of them.
        likely = ((pattern, module) for pattern, module in self.aliases if name.startswith(_literal(pattern)))
        return tuple(dict.fromkeys(module for pattern, module in likely if fnmatchcase(name, pattern)))


def _literal(pattern: str) -> str:
    """The part of an alias before its first wildcard."""
    return _WILDCARD.split(pattern, maxsplit=1)[0]


def required(index: ModuleIndex, wanted: Iterable[str], overrides: Mapping[str, Path]) -> list[Path]:
    """Files to load, in order, for ``wanted`` modules (built-in ones need none) and all of ``overrides``.

    ``overrides`` maps module names to files that replace the kernel's own. Raises UsageError for a module that the
    kernel does not have, for an override built for another kernel, and for an override of something built in.
    """
    instead = {name.replace("-", "_"): path for name, path in overrides.items()}
    for name, path in instead.items():
        _check_override(index, name, path)
    names = [*(name.replace("-", "_") for name in wanted), *instead]
    if absent := sorted({name for name in names if name not in instead and not index.has(name)}):
        raise UsageError(f"the kernel {index.folder.name} has no module {', '.join(absent)}")

    order: dict[str, Path] = {}
    pending: set[str] = set()

    def visit(name: str) -> None:
        if name in order or name in pending or (name not in index.files and name not in instead):
            return
        pending.add(name)
        for soft in index.soft.get(name, ()):
            for module in index.resolve(soft):
                visit(module)
        for need in _needs(index, name, instead):
            visit(need)
        order[name] = instead.get(name) or index.files[name]

    for name in names:
        visit(name)
    return list(order.values())


def _needs(index: ModuleIndex, name: str, instead: Mapping[str, Path]) -> Iterable[str]:
    if name in instead:
        return [word.replace("-", "_") for word in modinfo(instead[name], "depends").split(",") if word]
    return reversed(index.needs.get(name, ()))


def _check_override(index: ModuleIndex, name: str, path: Path) -> None:
    if name in index.builtin:
        raise UsageError(f"{path}: {name} is built into the kernel {index.folder.name}; a module cannot replace it")
    magic = modinfo(path, "vermagic")
    # Any module of the kernel shows the whole of its vermagic; without one, only the version can be compared.
    own = index.files.get(name) or next(iter(index.files.values()), None)
    expected = modinfo(own, "vermagic") if own is not None else index.folder.name
    built_for, _, rest = magic.partition(" ")
    if built_for != index.folder.name or (own is not None and rest.split() != expected.split()[1:]):
        raise UsageError(
            f"{path} was built for the kernel '{magic}', but the guest runs '{expected}'",
            hint=f"build it against the headers of {index.folder.name}, or choose its kernel with --kernel",
        )


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def kmod_tool(name: str) -> str:
    """The path of one of kmod's programs. Raises UsageError when it is not installed."""
    # Ordinary users of Debian have no sbin on their PATH.
    found = shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if found is None:
        raise UsageError(f"{name} is not installed", hint="install the package kmod")
    return found
