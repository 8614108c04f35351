"""Programs for the guest from packages that are unpacked and not installed: real apt and dpkg on made-up packages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from package_archives import apt_for, deb

from plugpull.cache import Cache
from plugpull.setup.apt import Apt
from plugpull.virtual import unpacked_programs
from plugpull.virtual.image import Tree, libraries, missing_libraries
from plugpull.virtual.unpacked_programs import unpack_programs

TOOL, WANTED = "plugpull-made-up-tool", {"plugpull-made-up-tool": ("mkfs.made-up",)}


def archive(folder: Path, program: str = "mkfs.made-up") -> Apt:
    """A package with a program in /sbin and documentation, which needs one with a library."""
    tool, library = folder / "tool", folder / "library"
    for place in (tool / "sbin", tool / "usr/share/doc", library / "usr/lib/x86_64-linux-gnu"):
        place.mkdir(parents=True)
    shutil.copy(shutil.which("true") or "", tool / "sbin" / program)
    (tool / "usr/share/doc/copyright").write_text("made up")
    (library / "usr/lib/x86_64-linux-gnu/libmadeup.so.1").write_text("made up")
    apt = apt_for(
        folder,
        [
            deb(folder, TOOL, "1:4.2-5", "plugpull-made-up-library", tool),
            deb(folder, "plugpull-made-up-library", "0.9", content=library),
        ],
    )
    apt.update()
    return Apt((*apt.options, "-o", "Dir::State::Status=/dev/null"))


def test_a_package_comes_with_the_libraries_that_are_not_installed(tmp_path: Path) -> None:
    said: list[str] = []
    apt = archive(tmp_path)
    for _ in range(2):
        made = unpack_programs(WANTED, Cache(tmp_path / "cache"), said.append, apt)
        assert made is not None
        assert made.program("mkfs.made-up") == made.root / "sbin/mkfs.made-up"
        assert made.program("fsck.made-up") is None
        assert made.libraries == (made.root / "usr/lib/x86_64-linux-gnu",)
        assert not (made.root / "usr/share").exists()
    assert [line.split(" (")[0] for line in said] == [
        f"downloading plugpull-made-up-library=0.9, {TOOL}=1:4.2-5",
    ], "the second time, it is in the cache"


def test_a_package_without_the_program_is_refused(tmp_path: Path) -> None:
    said: list[str] = []
    apt = archive(tmp_path, "another-program")
    assert unpack_programs(WANTED, Cache(tmp_path / "cache"), said.append, apt) is None
    assert said[-1] == f"not in the guest: {TOOL}: {TOOL} has no mkfs.made-up"


def test_a_program_whose_library_is_missing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked_programs, "missing_libraries", lambda path, folders: ["libmadeup.so.1"])
    said: list[str] = []
    assert unpack_programs(WANTED, Cache(tmp_path / "cache"), said.append, archive(tmp_path)) is None
    assert said[-1].endswith("mkfs.made-up of plugpull-made-up-tool needs libmadeup.so.1, which no package brings")


def test_a_package_that_nobody_has_is_named(tmp_path: Path) -> None:
    said: list[str] = []
    assert unpack_programs({"plugpull-nothing": ()}, Cache(tmp_path / "cache"), said.append, archive(tmp_path)) is None
    assert said[0].endswith("do not have plugpull-nothing; updating them")
    assert said[-1].startswith("not in the guest: plugpull-nothing: apt cannot install plugpull-nothing: ")


def test_a_machine_without_apt_gets_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program, path=None: None)
    assert unpack_programs(WANTED, Cache(tmp_path), print) is None
    assert not list(tmp_path.iterdir())


def test_libraries_that_are_not_installed_go_where_the_loader_looks(tmp_path: Path) -> None:
    """A program linked against a library that only ``folders`` have."""
    program = shutil.which("mke2fs", path="/usr/sbin:/sbin") or ""
    original = next(path for path in libraries(program) if "libext2fs" in path)
    shutil.copy(original, tmp_path / Path(original).name)
    assert str(tmp_path / Path(original).name) in libraries(program, [tmp_path])
    assert missing_libraries(program) == []
    tree = Tree()
    tree.program(program, "/usr/bin/mke2fs", [tmp_path])
    assert f"usr/lib/{Path(original).name}" in {member.path for member in tree.entries()}
