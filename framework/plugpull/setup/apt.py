"""Finds and downloads kernel packages of the distribution. Nothing is installed.

Debian's ``linux-image-amd64`` and Ubuntu's ``linux-image-generic`` are empty packages that depend on the current
version's package. Ubuntu keeps image and modules in two packages. Following ``Depends`` handles both.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from plugpull.errors import UsageError

DEFAULT_KERNELS = ("linux-image-amd64", "linux-image-generic", "linux-image-virtual")
_PARTS = re.compile(r"linux-(image|modules|binary)-")
_VERSIONED = re.compile(r"linux-(image|modules|binary)-([a-z]+-)*\d")


@dataclass(frozen=True)
class KernelPackage:
    """One package of a kernel, in the version that apt would install."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}={self.version}"


@dataclass(frozen=True)
class Apt:
    """apt's tools with ``options`` before every command."""

    options: tuple[str, ...] = ()

    def with_own_lists(self, folder: Path) -> Apt:
        """The same sources, but with package lists kept in ``folder``, where any user can update them."""
        own = (f"Dir::State::Lists={folder}/lists", f"Dir::Cache={folder}/cache", "APT::Sandbox::User=root")
        for path in (folder / "lists" / "partial", folder / "cache" / "archives" / "partial"):
            path.mkdir(parents=True, exist_ok=True)
        return Apt((*self.options, *(word for option in own for word in ("-o", option))))

    def update(self) -> None:
        """Fetch the package lists. Failures are ignored: the lists of the sources that answered are used."""
        self._run("apt-get", "update")

    def kernel(self, names: Iterable[str]) -> tuple[KernelPackage, ...]:
        """All packages that make up the first of ``names`` that apt has; empty when it has none."""
        for name in names:
            found: dict[str, KernelPackage] = {}
            self._follow(name, found)
            if found:
                # A package that only depends on the current version is empty. Skipping it makes two names for one
                # kernel resolve to the same packages.
                return tuple(p for p in found.values() if _VERSIONED.match(p.name)) or tuple(found.values())
        return ()

    def package(self, name: str) -> KernelPackage | None:
        """The version of one package that apt would install; ``None`` if it has none."""
        with suppress(UsageError):
            answer = self._run("apt-cache", "show", "--no-all-versions", name)
            fields = dict(re.findall(r"^(Package|Version): (.*)$", answer.stdout, re.MULTILINE))
            if not answer.returncode and fields.get("Package") == name:
                return KernelPackage(name, fields["Version"])
        return None

    def needed(self, names: Iterable[str]) -> tuple[KernelPackage, ...]:
        """What apt would install for these packages: themselves, and what they need that is not installed. Raises
        UsageError with apt's message."""
        answer = self._run("apt-get", "--simulate", "--no-install-recommends", "install", *names)
        if answer.returncode:
            raise UsageError(f"apt cannot install {', '.join(names)}: {_last_error(answer.stderr)}")
        # "Inst libc6 [2.36-9] (2.36-10 Debian:12/stable [amd64])"; the brackets only for an upgrade
        found = re.findall(r"^Inst (\S+)(?: \[[^]]*\])? \((\S+) ", answer.stdout, re.MULTILINE)
        return tuple(KernelPackage(name, version) for name, version in found)

    def names(self, pattern: str) -> list[str]:
        """Names of packages that match a regular expression, for hints."""
        answer = self._run("apt-cache", "pkgnames", "linux-image-").stdout.split()
        return sorted((name for name in answer if re.search(pattern, name)), key=_by_version)

    def download(self, packages: Sequence[KernelPackage], folder: Path) -> list[Path]:
        """Download the packages' files into ``folder``. Raises UsageError with apt's message."""
        answer = self._run("apt-get", "download", *map(str, packages), cwd=folder)
        files = sorted(folder.glob("*.deb"))
        if answer.returncode or len(files) < len(packages):
            raise UsageError(f"cannot download {', '.join(map(str, packages))}: {_last_error(answer.stderr)}")
        return files

    def _follow(self, name: str, found: dict[str, KernelPackage]) -> None:
        answer = self._run("apt-cache", "show", "--no-all-versions", name)
        fields = dict(re.findall(r"^(Package|Version|Depends|Pre-Depends): (.*)$", answer.stdout, re.MULTILINE))
        if answer.returncode or fields.get("Package") != name:
            return
        found[name] = KernelPackage(name, fields["Version"])
        for clause in f"{fields.get('Depends', '')},{fields.get('Pre-Depends', '')}".split(","):
            # Of several alternatives, apt would install the first.
            depends = re.sub(r"[ (:|].*", "", clause.strip())
            if _PARTS.match(depends) and depends not in found:
                self._follow(depends, found)

    def _run(self, tool: str, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"LC_ALL": "C.UTF-8"}
        try:
            return subprocess.run(
                [tool, *self.options, *words], capture_output=True, text=True, check=False, cwd=cwd, env=env,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except FileNotFoundError:
            raise UsageError(
                f"{tool} is not installed, so plugpull cannot download a kernel for the guest",
                hint="pass --kernel a build tree, a directory, or .deb files",
            ) from None


@dataclass(frozen=True)
class KernelSource:
    """A source of kernel packages: the system's package lists, or own ones if those are missing or stale."""

    lists: Path
    notify: Callable[[str], None]
    apt: Apt = field(default_factory=Apt)

    def resolve(self, names: Sequence[str]) -> tuple[KernelPackage, ...]:
        """The packages of the first of ``names`` that exists. Raises UsageError that lists similar packages."""
        if packages := self.apt.kernel(names):
            return packages
        self.notify("the kernel is not in apt's package lists; updating them")
        if packages := self._refreshed().kernel(names):
            return packages
        near = self._own().names(r"^linux-image-\d[^-]*(-\d+)?-(amd64|generic)$")[-4:]
        there = f"choose one of: {', '.join(near)}" if near else "check apt's sources and the network"
        raise UsageError(f"there is no package for the kernel {' or '.join(names)}", hint=there)

    def needed(self, names: Sequence[str]) -> tuple[KernelPackage, ...]:
        """What apt would install for these packages. Raises UsageError."""
        for apt in (self.apt, self._own()):
            with suppress(UsageError):
                return apt.needed(names)
        self.notify(f"apt's package lists do not have {' or '.join(names)}; updating them")
        return self._refreshed().needed(names)

    def fetch(self, packages: Sequence[KernelPackage], folder: Path) -> list[Path]:
        """The packages' files, downloaded into ``folder``. Raises UsageError."""
        for apt in (self.apt, self._own()):
            with suppress(UsageError):
                return apt.download(packages, folder)
        # Lists that are older than the archive name files that no longer exist.
        self.notify("the download failed; updating apt's package lists")
        try:
            return self._refreshed().download(packages, folder)
        except UsageError as error:
            raise UsageError(error.what, hint="check the network and apt's sources") from None

    def _own(self) -> Apt:
        return self.apt.with_own_lists(self.lists)

    def _refreshed(self) -> Apt:
        own = self._own()
        own.update()
        return own


def _by_version(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _last_error(text: str) -> str:
    errors = [line.removeprefix("E: ") for line in text.splitlines() if line.startswith("E:")]
    return errors[-1] if errors else text.strip()[-300:] or "apt-get gave no reason"
