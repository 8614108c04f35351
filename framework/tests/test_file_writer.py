"""The program that writes and scans files, on a directory of this machine, with the oracle as the judge."""

from __future__ import annotations

import ast
import errno
import fcntl
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest
from file_books import RUN, B

from plugpull.dut.agent.streams import compiled
from plugpull.integrity.file_patterns import ShortPlans
from plugpull.integrity.oracle.files.found import FoundTree, decode_found_tree
from plugpull.integrity.oracle.files.ledger import FileLedger, decode_file_ledger
from plugpull.integrity.oracle.files.promises import PROMISES, CutEffect, FilesystemClass
from plugpull.integrity.oracle.files.rules import FileOpinion, judge
from plugpull.integrity.oracle.files.wrong import FileDamage
from plugpull.integrity.oracle.stamp import Stamp
from plugpull.integrity.sequences import sequences
from plugpull.integrity.writing.files import __main__ as program
from plugpull.integrity.writing.files import scanner, writer
from plugpull.integrity.writing.files.__main__ import Asked, options_of
from plugpull.integrity.writing.files.bundle import MODULES, file_program
from plugpull.integrity.writing.files.plans import LEFT_ALONE, plan_of
from plugpull.integrity.writing.files.writer import FileWriter

# The strictest promises that hold for any directory here: link counts of directories differ between filesystems.
STRICT = PROMISES["btrfs"]
FIRST = 1000


@pytest.fixture(autouse=True)
def without_global_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's other filesystems are none of our business, and their syncs take long."""
    monkeypatch.setattr(os, "sync", lambda: None)
    monkeypatch.setattr(writer, "sync_filesystem", lambda fd: None)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def played(root: int, plan: list[dict[str, Any]], *, stop_at_error: bool = True) -> FileLedger:
    lines: list[bytes] = []
    FileWriter(root, RUN, lines.append).play(plan, stop_at_error=stop_at_error)
    return decode_file_ledger(b"".join(lines))


def scanned(root: int) -> FoundTree:
    return decode_found_tree(json.dumps(scanner.scan(root)).encode())


def opinion(root: int, ledger: FileLedger) -> FileOpinion:
    return judge(ledger, scanned(root), STRICT)


# --- everything that can be done --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "each"), [(1, 1), (2, 31)])
def test_after_a_clean_run_nothing_is_wrong(root: int, length: int, each: int) -> None:
    for sequence in islice(sequences(length), 0, None, each):
        ledger = played(root, plan_of(sequence, FIRST))
        assert ledger.problems == []
        assert [one.errno for one in ledger.operations] == [0] * len(ledger.operations), sequence.name
        made = opinion(root, ledger)
        assert [wrong.sentence() for wrong in made.wrong] == [], sequence.name
        assert made.intact
        left = scanner.remove_all(root, scanner.scan(root))
        assert (left["unremovable"], scanned(root).entries) == ([], ())


@pytest.mark.parametrize("fstype", ["vfat", "exfat"])
def test_a_file_that_is_left_alone_is_judged_where_names_are_not_atomic(root: int, fstype: FilesystemClass) -> None:
    for seed in range(20):
        ledger = played(root, cast("Any", ShortPlans(1).plan(fstype, FIRST, seed).data))
        assert [one.errno for one in ledger.operations] == [0] * len(ledger.operations)
        made = judge(ledger, scanned(root), PROMISES[fstype], CutEffect())
        assert (made.intact, made.problems) == (True, [])
        os.unlink(LEFT_ALONE, dir_fd=root)
        found = judge(ledger, scanned(root), PROMISES[fstype], CutEffect())
        assert [(one.kind, one.path) for one in found.wrong] == [(FileDamage.LOST, LEFT_ALONE)]
        scanner.remove_all(root, scanner.scan(root))


PLAN: list[dict[str, Any]] = [
    {"do": "mkdir", "path": "d", "file": 1},
    {"do": "create", "path": "d/a", "file": 2},
    {"do": "write", "path": "d/a", "offset": 0, "length": 4 * B},
    {"do": "fsync", "path": "d/a"},
    {"do": "write", "path": "d/a", "offset": B, "length": B},
    {"do": "append", "path": "d/a", "length": 9 * B},
    {"do": "mmap", "path": "d/a", "offset": 10 * B, "length": 2 * B},
    {"do": "fdatasync", "path": "d/a"},
    {"do": "create", "path": "b", "file": 3},
    {"do": "write", "path": "b", "offset": 16 * B, "length": B},
    {"do": "fsync", "path": "b"},
    {"do": "create", "path": "gone", "file": 4},
    {"do": "write", "path": "gone", "offset": 0, "length": B},
    {"do": "symlink", "path": "d/s", "file": 5, "target": "nowhere"},
    {"do": "link", "path": "b", "to": "d/b"},
    {"do": "fsyncdir", "path": ""},
    {"do": "unlink", "path": "gone"},
    {"do": "fsyncdir", "path": "d"},
    {"do": "fsyncdir", "path": ""},
]


def test_what_is_written_is_what_the_ledger_says(root: int, tmp_path: Path) -> None:
    ledger = played(root, PLAN)
    made = opinion(root, ledger)
    assert made.intact
    data = (tmp_path / "d/a").read_bytes()
    assert [data[B * at : B * at + 40] for at in (0, 1, 4, 11)] == [
        Stamp(RUN, 2, block, number, index, count).encode()[:40]
        for block, number, index, count in ((0, 3, 0, 4), (1, 5, 0, 1), (4, 6, 0, 9), (11, 7, 1, 2))
    ]
    (entry,) = [one for one in scanned(root).entries if one.path == "b"]
    assert [(one.content, one.first, one.blocks) for one in entry.content][-1] == ("stamped", 16, 1)
    assert {one.content for one in entry.content[:-1]} <= {"hole", "zero"}
    assert (entry.links, entry.size) == (2, 17 * B)


def patched(path: Path, block: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[block * B : block * B + len(data)] = data
    path.write_bytes(content)


def old_version(top: Path) -> None:
    patched(top / "d/a", 1, Stamp(RUN, 2, 1, 3, 1, 4).encode())


def another_file(top: Path) -> None:
    patched(top / "d/a", 2, (top / "b").read_bytes()[16 * B :])


def kept_beside(top: Path) -> Path:
    return top.parent / f"{top.name}-kept"


def removed_file_is_back(top: Path) -> None:
    kept_beside(top).rename(top / "gone")


def other_target(top: Path) -> None:
    (top / "d/s").unlink()
    (top / "d/s").symlink_to("elsewhere")


EDITS: tuple[tuple[FileDamage, Callable[[Path], object]], ...] = (
    (FileDamage.LOST, lambda top: (top / "d/s").unlink()),
    (FileDamage.LOST, lambda top: patched(top / "d/a", 3, bytes(B))),
    (FileDamage.OLD_VERSION, old_version),
    (FileDamage.FOREIGN, another_file),
    (FileDamage.FOREIGN, other_target),
    (FileDamage.CORRUPT, lambda top: patched(top / "d/a", 5, b"\x5a" * B)),
    (FileDamage.CORRUPT, lambda top: patched(top / "d/a", 5, b"\x5a")),
    (FileDamage.WRONG_SIZE, lambda top: os.truncate(top / "d/a", 12 * B)),
    (FileDamage.WRONG_SIZE, lambda top: os.truncate(top / "d/a", 13 * B + 7)),
    (FileDamage.RESURRECTED, removed_file_is_back),
    (FileDamage.LINK_COUNT, lambda top: os.link(top / "b", top.parent / f"{top.name}-link")),
    (FileDamage.UNKNOWN_NAME, lambda top: (top / "d/new").mkdir()),
)


@pytest.mark.parametrize(("kind", "edit"), EDITS, ids=[str(kind) for kind, _ in EDITS])
def test_an_edit_by_hand_is_named(
    root: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: FileDamage, edit: Callable[[Path], object]
) -> None:
    # The removed file keeps its inode beside the directory: a new one of its name could get any.
    unlink = os.unlink

    def unlink_and_keep(path: str, *, dir_fd: int | None = None) -> None:
        os.link(path, kept_beside(tmp_path), src_dir_fd=dir_fd)
        unlink(path, dir_fd=dir_fd)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "unlink", unlink_and_keep)
        ledger = played(root, PLAN)
    assert opinion(root, ledger).intact
    edit(tmp_path)
    assert {wrong.kind for wrong in opinion(root, ledger).wrong} == {kind}


# --- errors -----------------------------------------------------------------------------------------------------------


def test_an_operation_that_fails_is_recorded_and_ends_the_plan(root: int) -> None:
    plan = [{"do": "unlink", "path": "none"}, *PLAN]
    ledger = played(root, plan)
    assert ([one.errno for one in ledger.operations], ledger.problems) == ([errno.ENOENT], [])
    ledger = played(root, plan, stop_at_error=False)
    assert [one.errno for one in ledger.operations] == [errno.ENOENT] + [0] * len(PLAN)


def test_an_operation_is_reported_before_its_call(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[bytes] = []

    def fsync(fd: int) -> None:
        assert json.loads(lines[-1])["do"] == "fsync"
        raise OSError(errno.EIO, "made up")

    monkeypatch.setattr(os, "fsync", fsync)
    assert not FileWriter(root, RUN, lines.append).play(PLAN)
    assert json.loads(lines[-2])["errno"] == errno.EIO
    assert json.loads(lines[-1]) == {"do": "end", "operations": 4, "returned": 4}


def test_a_block_that_cannot_be_read_is_unreadable(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = played(root, PLAN)
    real = os.pread

    def pread(fd: int, length: int, offset: int) -> bytes:
        if offset == 8 * B:
            raise OSError(errno.EIO, "made up")
        return real(fd, length, offset)

    monkeypatch.setattr(os, "pread", pread)
    wrong = [each for each in opinion(root, ledger).wrong if each.path == "d/a"]
    assert {each.kind for each in wrong} == {FileDamage.UNREADABLE}
    assert sum(each.blocks for each in wrong) == 5


def test_a_directory_that_cannot_be_removed_is_reported(root: int, tmp_path: Path) -> None:
    ledger = played(root, PLAN)
    found = scanner.scan(root)
    (tmp_path / "d/hidden").write_bytes(b"")
    left = scanner.remove_all(root, found)
    assert left["unremovable"] == [{"path": "d", "errno": errno.ENOTEMPTY}]
    made = judge(ledger, decode_found_tree(json.dumps(left).encode()), STRICT)
    assert {wrong.kind for wrong in made.wrong} == {FileDamage.UNREMOVABLE}


def test_the_filesystem_is_synced_before_the_directory_of_a_round_is_made_and_before_that_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's descriptor of the root is a path only (O_PATH), which syncfs and fsync refuse."""
    root = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    calls: list[str] = []

    def noted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **options: Any) -> Any:
            calls.append(name)
            return call(*args, **options)

        return noting

    def syncfs(fd: int) -> None:
        assert os.path.sameopenfile(fd, root)
        assert not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_PATH

    monkeypatch.setattr(program, "sync_filesystem", noted("syncfs", syncfs))
    monkeypatch.setattr(os, "mkdir", noted("mkdir", os.mkdir))
    monkeypatch.setattr(os, "fsync", noted("fsync", os.fsync))
    os.close(program._made(root, "round2"))
    os.close(root)
    assert calls == ["syncfs", "mkdir", "syncfs", "fsync", "fsync"]


# --- on the DUT -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [bytes, compiled], ids=["as sent", "compiled"])
def test_the_program_runs_from_its_zip_file(
    root: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, made: Callable[[bytes], bytes]
) -> None:
    place = tmp_path_factory.mktemp("program") / "files.zip"
    place.write_bytes(made(file_program()))
    assert made(file_program()) == place.read_bytes()

    def run(*words: str, text: bytes = b"") -> bytes:
        command = [sys.executable, "-I", "-S", str(place), *words, "--root", str(root)]
        return subprocess.run(command, input=text, pass_fds=(root,), stdout=subprocess.PIPE, check=True).stdout

    ledger = decode_file_ledger(run("write", "--run", f"{RUN:x}", text=json.dumps(PLAN).encode()))
    assert judge(ledger, decode_found_tree(run("scan")), STRICT).intact
    assert judge(ledger, decode_found_tree(run("scan", "--remove")), STRICT).intact
    assert list(tmp_path.iterdir()) == []


def test_it_loads_little_when_it_starts(root: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """It is started three times for each cut, and these were a third of its start or more."""
    place = tmp_path_factory.mktemp("program") / "files.zip"
    place.write_bytes(file_program())
    command = [sys.executable, "-I", "-S", "-X", "importtime", str(place), "scan", "--root", str(root)]
    ran = subprocess.run(command, capture_output=True, pass_fds=(root,), check=True, text=True)
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "plugpull.integrity.writing.files.scanner" in loaded
    assert not {"argparse", "dataclasses", "inspect", "hashlib", "random", "subprocess"} & loaded


@pytest.mark.parametrize(
    "words", ["read --root 3", "scan", "scan --root", "scan --root 3 --all 1", "write --root 3 --run x"]
)
def test_what_it_cannot_understand_is_an_error(words: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        options_of(words.split())


def test_what_it_is_asked_for() -> None:
    asked = options_of(["write", "--root", "7", "--run", "ff", "--plan", "5", "--directory", "round1", "--go-on"])
    assert asked == Asked("write", 7, "round1", 255, 5, frozenset({"--go-on"}))
    scan = options_of(["scan", "--remove", "--root", "4", "--names"])
    assert scan == Asked("scan", 4, "", 0, 0, frozenset({"--names", "--remove"}))


def test_the_program_is_python_3_9_and_needs_nothing_else() -> None:
    archive = zipfile.ZipFile(BytesIO(file_program()))
    carried = {name.removesuffix(".py").replace("/", ".") for name in archive.namelist()}
    for name in archive.namelist():
        code = ast.parse(archive.read(name), name, feature_version=(3, 9))
        for node in ast.walk(code):
            if isinstance(node, ast.ImportFrom):
                assert node.module in carried or str(node.module).split(".")[0] in sys.stdlib_module_names
            elif isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
    assert all(import_module(module) for module in MODULES)
