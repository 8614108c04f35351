"""What the guest gets for filesystems other than ext4."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugpull.dut.agent.checkers import CHECKERS, MAKERS, SMALLEST, known_filesystems, lacking
from plugpull.virtual import filesystems
from plugpull.virtual.filesystems import PROGRAMS, filesystem_additions
from plugpull.virtual.kernel import KernelTree


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> KernelTree:
    """A kernel that has all but f2fs, and a machine that has ``true`` for every program but those of xfs."""
    monkeypatch.setattr(
        filesystems, "missing_modules", lambda tree, names: [n for n in names if n in ("f2fs", "nls_utf8")]
    )
    monkeypatch.setattr(filesystems, "_found", lambda program: None if "xfs" in program else "/bin/true")
    return KernelTree("1.0", Path("vmlinuz"), Path("modules"), "made up", "digest")


def test_a_filesystem_needs_its_programs_and_its_module(kernel: KernelTree) -> None:
    made = filesystem_additions(kernel)
    assert made.modules == ("btrfs", "vfat", "nls_cp437", "nls_ascii", "nls_iso8859_1", "exfat", "ntfs3")
    assert "usr/bin/true" in {member.path for member in made.files()}
    assert made.digest == filesystem_additions(kernel).digest


def test_a_machine_without_the_programs_has_a_plain_guest(monkeypatch: pytest.MonkeyPatch, kernel: KernelTree) -> None:
    monkeypatch.setattr(filesystems, "_found", lambda program: None)
    made = filesystem_additions(kernel)
    assert (made.digest, made.modules, tuple(made.files())) == ("", (), ())


def test_the_guest_gets_what_the_agent_runs() -> None:
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
