"""What a guest gets for arrays: mdadm of this machine or of the distribution's package, and md's modules."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from plugpull.cache import Cache
from plugpull.errors import UsageError
from plugpull.setup.apt import Apt, KernelPackage, KernelSource
from plugpull.virtual import array_tools
from plugpull.virtual.array_tools import find_mdadm
from plugpull.virtual.image import Additions, ArchiveMember
from plugpull.virtual.kernel import KernelTree

KERNEL = KernelTree("6.1", Path("vmlinuz"), Path("modules"), "made up", "digest")
PACKAGE = KernelPackage("mdadm", "4.2-5")
CONTROL = "Package: mdadm\nVersion: 4.2-5\nArchitecture: all\nMaintainer: nobody\nDescription: made up\n"


def test_additions_are_joined() -> None:
    one = Additions("one", ("xfs", "raid6_pq"), files=lambda: [ArchiveMember("a", 0)], init=("first",))
    two = Additions("two", ("raid1", "raid6_pq"), {"raid1": "x=1"}, lambda: [ArchiveMember("b", 0)])
    both = one.joined(two)
    assert (both.digest, both.modules, both.options) == ("one two", ("xfs", "raid6_pq", "raid1"), {"raid1": "x=1"})
    assert [member.path for member in both.files()] == ["a", "b"]
    assert both.init == ("first",)
    assert Additions().joined(Additions()).digest == ""


def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program, path=None: None)


def test_the_program_of_this_machine_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda program, path=None: f"/usr/sbin/{program}")
    assert find_mdadm(Cache(tmp_path), print) == Path("/usr/sbin/mdadm")


def test_the_package_is_unpacked_and_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    not_installed(monkeypatch)
    monkeypatch.setattr(Apt, "package", lambda self, name: PACKAGE)
    fetched: list[str] = []

    def fetch(self: KernelSource, packages: Sequence[KernelPackage], folder: Path) -> list[Path]:
        tree = folder / "tree"
        (tree / "sbin").mkdir(parents=True)
        (tree / "sbin/mdadm").write_text("program")
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text(CONTROL)
        subprocess.run(["dpkg-deb", "--build", str(tree), str(folder / "mdadm.deb")], check=True, capture_output=True)
        fetched.extend(map(str, packages))
        return [folder / "mdadm.deb"]

    monkeypatch.setattr(KernelSource, "fetch", fetch)
    for _ in range(2):
        found = find_mdadm(Cache(tmp_path), lambda text: None)
        assert found is not None
        assert found.read_text() == "program"
    assert fetched == ["mdadm=4.2-5"], "it is kept in the cache"


def test_without_a_package_there_are_no_arrays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    not_installed(monkeypatch)
    monkeypatch.setattr(Apt, "package", lambda self, name: None)
    assert find_mdadm(Cache(tmp_path), print) is None
    assert array_tools.array_tools(KERNEL, Cache(tmp_path), print) == Additions()


def test_without_the_network_there_are_no_arrays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    not_installed(monkeypatch)
    monkeypatch.setattr(Apt, "package", lambda self, name: PACKAGE)

    def fetch(self: KernelSource, packages: Sequence[KernelPackage], folder: Path) -> list[Path]:
        raise UsageError("cannot download mdadm=4.2-5: no network")

    monkeypatch.setattr(KernelSource, "fetch", fetch)
    said: list[str] = []
    assert find_mdadm(Cache(tmp_path), said.append) is None
    assert said[-1] == "no arrays in the guest: cannot download mdadm=4.2-5: no network"


def test_a_kernel_without_md_gets_no_mdadm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(array_tools, "find_mdadm", lambda cache, notify: tmp_path / "mdadm")
    monkeypatch.setattr(array_tools, "missing_modules", lambda kernel, names: ["raid456"])
    assert array_tools.array_tools(KERNEL, Cache(tmp_path), print) == Additions()
