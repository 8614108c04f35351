"""The endless plan of the file writer: every operation can succeed, and a seed repeats it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from file_books import RUN

from plugpull.integrity.file_patterns import BETWEEN_PLANS, FileStorm, ShortPlans, file_storm, fsync_storm, rename_storm
from plugpull.integrity.oracle.files.found import decode_found_tree
from plugpull.integrity.oracle.files.ledger import decode_file_ledger
from plugpull.integrity.oracle.files.operations import Synced
from plugpull.integrity.oracle.files.promises import PROMISES
from plugpull.integrity.oracle.files.rules import judge
from plugpull.integrity.writing.files import scanner
from plugpull.integrity.writing.files.bundle import file_program
from plugpull.integrity.writing.files.storm import Storm
from plugpull.integrity.writing.files.writer import FileWriter

PATTERNS = (file_storm, rename_storm, fsync_storm)


def storm(pattern: FileStorm, seed: int, fstype: str = "ext4") -> Storm:
    plan = pattern.plan(fstype, BETWEEN_PLANS, seed).data
    assert isinstance(plan, dict)
    return Storm(**plan)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
@pytest.mark.parametrize("seed", range(4))
def test_every_operation_succeeds_and_nothing_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: FileStorm, seed: int
) -> None:
    monkeypatch.setattr(FileWriter, "_syncfs", lambda self, fields: 0)
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    root = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    lines: list[bytes] = []
    try:
        assert FileWriter(root, RUN, lines.append).play(islice(storm(pattern, seed).steps(), 600))
        found = decode_found_tree(json.dumps(scanner.scan(root)).encode())
    finally:
        os.close(root)
    ledger = decode_file_ledger(b"".join(lines))
    assert (len(ledger.operations), ledger.problems) == (600, [])
    syncs = sum(isinstance(operation, Synced) for operation in ledger.operations)
    assert 100 < syncs < 400
    for name in ("ext4", "btrfs", "vfat"):
        made = judge(ledger, found, PROMISES[name])
        assert ([wrong.sentence() for wrong in made.wrong if "link count" not in wrong.sentence()], made.problems) == (
            [],
            [],
        )
        assert made.kept > 0


def test_a_seed_repeats_the_plan() -> None:
    one, same, other = (list(islice(storm(file_storm, seed).steps(), 200)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


@pytest.mark.parametrize("fstype", ["vfat", "exfat", "ntfs3"])
def test_no_links_where_there_are_none(fstype: str) -> None:
    assert "link" in {step["do"] for step in islice(storm(file_storm, 1).steps(), 2000)}
    assert "link" not in {step["do"] for step in islice(storm(file_storm, 1, fstype).steps(), 2000)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_writer_that_is_asked_to_end_completes_its_ledger(tmp_path: Path, number: int) -> None:
    program = tmp_path / "files.zip"
    program.write_bytes(file_program())
    plan = tmp_path / "plan"
    plan.write_text(json.dumps(FileStorm("few", {"create": 1, "write": 2}).plan("ext4", 1, 1).data))
    root, text = os.open(tmp_path, os.O_PATH), os.open(plan, os.O_RDONLY)
    arguments = ["write", "--root", str(root), "--directory", "here", "--run", f"{RUN:x}", "--plan", str(text)]
    with subprocess.Popen(
        [sys.executable, "-I", str(program), *arguments], pass_fds=(root, text), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        begun = b"".join(process.stdout.readline() for _ in range(60))
        process.send_signal(number)
        data = begun + process.stdout.read()
        assert process.wait(30) == 0
    os.close(root)
    os.close(text)
    ledger = decode_file_ledger(data)
    assert ledger.problems == []
    assert all(operation.succeeded for operation in ledger.operations)
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"A", "B", "K"}


@pytest.mark.parametrize(("fstype", "many"), [("xfs", 102), ("vfat", 76)])
def test_a_short_plan_is_drawn_from_all_there_are(fstype: str, many: int) -> None:
    drawn = {ShortPlans(1).plan(fstype, 1, seed).name for seed in range(1000)}
    assert many - 3 <= len(drawn) <= many
    assert any(name.startswith("link ") for name in drawn) is (fstype == "xfs")
    assert ShortPlans(1).plan(fstype, 1, 7) == ShortPlans(1).plan(fstype, 1, 7)
