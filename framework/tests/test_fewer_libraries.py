"""The copy of fio that a guest gets: it does the same work, with fewer libraries to load."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from fios import PATIENCE, needs_fio

from plugpull.virtual import image
from plugpull.virtual.fewer_libraries import with_libraries
from plugpull.virtual.image import FIO_LIBRARIES, base_tree, libraries

CODE = (".text", ".rodata", ".plt", ".init", ".dynstr", ".rela.dyn", ".rela.plt")
TABLES = {".dynamic", ".gnu.version", ".gnu.version_r", ".dynsym"}


def fio() -> Path:
    return Path(shutil.which("fio") or "fio")


def slim(folder: Path) -> Path:
    path = folder / "fio"
    path.write_bytes(with_libraries(fio().read_bytes(), FIO_LIBRARIES))
    path.chmod(0o755)
    return path


def run(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)


@needs_fio
def test_only_what_its_tables_ask_of_the_loader_is_changed() -> None:
    whole = fio().read_bytes()
    less = with_libraries(whole, FIO_LIBRARIES)
    assert len(less) == len(whole)
    sections = [(one.name, one["sh_offset"], one["sh_size"]) for one in ELFFile(io.BytesIO(whole)).iter_sections()]
    changed = {
        name for name, start, size in sections if whole[start : start + size] != less[start : start + size] and size
    }
    assert changed <= TABLES
    assert changed & TABLES
    assert not changed & set(CODE)


@needs_fio
def test_it_is_the_same_fio_and_says_nothing_more(tmp_path: Path) -> None:
    copy = slim(tmp_path)
    for words in (["--version"], ["--enghelp"]):
        one, other = run(fio(), *words), run(copy, *words)
        assert (other.returncode, other.stdout, other.stderr) == (one.returncode, one.stdout, one.stderr)
    names = {Path(path).name.partition(".so")[0] for path in libraries(str(copy))}
    assert names <= {*FIO_LIBRARIES, "libc", "ld-linux-x86-64"}
    assert "libaio" in names


@needs_fio
def test_it_finds_a_block_that_changed_after_it_was_written(tmp_path: Path) -> None:
    copy, file = slim(tmp_path), tmp_path / "file"
    words = ["--name=job", f"--filename={file}", "--size=256k", "--bs=4k", "--ioengine=libaio", "--thread"]
    words += ["--verify=crc32c", "--verify_state_save=0", "--output-format=json"]
    written = run(copy, *words, "--rw=write", "--do_verify=0")
    assert json.loads(written.stdout)["jobs"][0]["write"]["io_bytes"] == 256 << 10
    assert run(copy, *words, "--rw=read").returncode == 0
    with file.open("r+b") as data:
        data.seek(100_000)
        data.write(b"torn")
    assert run(copy, *words, "--rw=read").returncode != 0


@pytest.mark.parametrize(
    ("program", "why"),
    [(b"#!/bin/sh\n", "ELFError"), (b"", "ELFError"), (b"\x7fELF\x01\x01\x01" + bytes(200), "64 bits")],
    ids=["script", "empty", "32 bits"],
)
def test_what_is_not_such_a_program_is_left_as_it_is(program: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        with_libraries(program, FIO_LIBRARIES)


@needs_fio
def test_a_copy_that_does_not_work_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    taken = {one.path: one.data for one in base_tree().entries()}
    assert taken["usr/bin/fio"] == with_libraries(fio().read_bytes(), FIO_LIBRARIES)
    monkeypatch.setattr(image, "FIO_LIBRARIES", ("libm",))  # without libaio, it crashes at the first request
    taken = {one.path: one.data for one in base_tree().entries()}
    assert taken["usr/bin/fio"] == fio().read_bytes()
    assert any("libaio" in path for path in taken)
    assert not list(tmp_path.iterdir()), "fio leaves nothing where a run was started"
