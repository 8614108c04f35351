"""What the guest gets for filesystems other than ext4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from plugpull.cache import Cache
from plugpull.dut.agent.checkers import CHECKERS, MAKERS, SMALLEST, known_filesystems, lacking
from plugpull.virtual import filesystems
from plugpull.virtual.filesystems import OVERLAY, PACKAGES, PROGRAMS, filesystem_additions
from plugpull.virtual.image import Additions
from plugpull.virtual.kernel import KernelTree
from plugpull.virtual.unpacked_programs import UnpackedPrograms


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> KernelTree:
    """A kernel that has all but f2fs, and a machine that has ``true`` for every program but those of xfs. No package
    can be had."""
    monkeypatch.setattr(
        filesystems, "missing_modules", lambda tree, names: [n for n in names if n in ("f2fs", "nls_utf8")]
    )
    monkeypatch.setattr(filesystems, "_installed", lambda program: None if "xfs" in program else "/bin/true")
    monkeypatch.setattr(filesystems, "unpack_programs", lambda packages, cache, notify: None)
    return KernelTree("1.0", Path("vmlinuz"), Path("modules"), "made up", "digest")


def additions(kernel: KernelTree) -> Additions:
    return filesystem_additions(kernel, Cache(Path("/nonexistent")), print)


def test_a_filesystem_needs_its_programs_and_its_module(kernel: KernelTree) -> None:
    made = additions(kernel)
    assert made.modules == (*OVERLAY, "btrfs", "vfat", "nls_cp437", "nls_ascii", "nls_iso8859_1", "exfat", "ntfs3")
    paths = {member.path for member in made.files()}
    assert {"usr/bin/mkfs.btrfs", "usr/bin/fsck.vfat", "usr/bin/ntfsfix"} <= paths
    assert "usr/bin/mkfs.xfs" not in paths
    assert made.digest == additions(kernel).digest


def test_programs_that_are_not_installed_come_from_packages(
    monkeypatch: pytest.MonkeyPatch, kernel: KernelTree, tmp_path: Path
) -> None:
    asked: list[Mapping[str, Sequence[str]]] = []
    (tmp_path / "sbin").mkdir()
    for program in PROGRAMS["xfs"]:
        (tmp_path / "sbin" / program).write_bytes(Path("/bin/true").read_bytes())

    def unpack(packages: Mapping[str, Sequence[str]], cache: object, notify: object) -> UnpackedPrograms:
        asked.append(packages)
        return UnpackedPrograms(tmp_path)

    monkeypatch.setattr(filesystems, "unpack_programs", unpack)
    made = additions(kernel)
    assert asked == [{"xfsprogs": PROGRAMS["xfs"]}], "only for what the kernel has and the machine lacks"
    assert made.modules[: len(OVERLAY) + 1] == (*OVERLAY, "xfs")
    assert {"usr/bin/mkfs.xfs", "usr/bin/xfs_repair", "usr/bin/mkfs.btrfs"} <= {one.path for one in made.files()}


def test_a_machine_without_the_programs_has_only_what_ext4_needs(
    monkeypatch: pytest.MonkeyPatch, kernel: KernelTree
) -> None:
    monkeypatch.setattr(filesystems, "_installed", lambda program: None)
    made = additions(kernel)
    assert (made.modules, tuple(made.files())) == (OVERLAY, ())
    monkeypatch.setattr(filesystems, "missing_modules", lambda tree, names: ["dm_snapshot"])
    assert additions(kernel).modules == ()


def test_the_guest_gets_what_the_agent_runs() -> None:
    assert set(PACKAGES) == set(PROGRAMS)
    for name, programs in PROGRAMS.items():
        assert MAKERS[name][0] in programs
        assert name not in CHECKERS or CHECKERS[name][0] in programs


def test_what_a_dut_lacks_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert lacking("nofs", 1 << 40) == "mkfs.nofs is not installed on the DUT"
    assert lacking("xfs", SMALLEST["xfs"] - 1) == "a xfs needs a disk of 300 MiB"
    monkeypatch.setitem(MAKERS, "nofs", ("true",))
    assert lacking("nofs", 1 << 40) == "the DUT's kernel has no nofs"
    (tmp_path / "filesystems").write_text("nodev\tproc\n\text4\n\txfs\n")
    assert {"ext4", "xfs"} <= set(known_filesystems(str(tmp_path)))
    assert "proc" not in known_filesystems(str(tmp_path))
