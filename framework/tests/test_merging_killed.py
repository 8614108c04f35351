"""A merge that is killed goes on, and loses nothing."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from runs_in_parts import shard

from plugpull.cli import main
from plugpull.exit_status import EXIT_PASS, EXIT_UNKNOWN
from plugpull.history.reader import History
from plugpull.judging.judge import judge_history
from plugpull.judging.outcome import write_outcome
from plugpull.judging.results import Results, Verdict
from plugpull.merging.gather import gather
from plugpull.merging.manifest import read_manifest
from plugpull.merging.read import read_run

SHARDS = (("a", "c"), ("b", "d"))
"""The plans of two shards of the scenarios a to d, taken in turn."""


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """The runs of two healthy shards."""
    return shard(tmp_path / "one", 1, SHARDS), shard(tmp_path / "two", 2, SHARDS)


def judged(run: Path) -> Results:
    return judge_history(read_run(run))


def merged(out: Path, *runs: Path) -> Results:
    gather(out, runs)
    return write_outcome(out)[0]


WATCHED = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}


def killed_at(step: int, out: Path, runs: Sequence[Path]) -> int:
    """The exit status of a merge that is killed at its N-th access to the merged directory; -9 if it was killed."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = step

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in WATCHED and str(out) in str(arguments[0]):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    os._exit(main(["merge", str(out), *map(str, runs)]))


def test_a_merge_that_is_killed_at_any_step_goes_on(tmp_path: Path, two: tuple[Path, Path]) -> None:
    """Killed at one step after the other of one merge, again and again, until it ends."""
    out, step, statuses = tmp_path / "out", 1, list[int]()
    before = [(run / "history.jsonl").read_bytes() for run in two]
    while not statuses or statuses[-1] == -signal.SIGKILL:
        statuses.append(killed_at(step, out, two))
        step += 1
        found = read_run(out) if (out / "parts.json").exists() else History()
        assert not found.flawed, "what is there can be judged"
    assert len(statuses) > 20, statuses
    assert statuses[-1] == EXIT_PASS
    assert [(run / "history.jsonl").read_bytes() for run in two] == before
    assert {path.name for path in out.rglob(".*")} == {".merging.lock"}
    assert [(one.id, one.verdict) for one in judged(out).scenarios] == [(name, Verdict.PASS) for name in "acbd"]


def test_a_merge_that_is_killed_does_not_look_complete(tmp_path: Path, two: tuple[Path, Path]) -> None:
    out = tmp_path / "out"
    gather(out, two)
    manifest = read_manifest(out)
    assert manifest is not None
    (out / "parts.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(manifest, open=True)))
    assert judged(out).verdict is Verdict.UNKNOWN
    assert merged(out, *two).verdict is Verdict.PASS


def test_only_one_process_merges_at_a_time(tmp_path: Path, two: tuple[Path, Path]) -> None:
    out = tmp_path / "out"
    merged(out, two[0])
    with (out / ".merging.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert main(["merge", str(out), str(two[1])]) == EXIT_UNKNOWN
    assert main(["merge", str(out), str(two[1])]) == EXIT_PASS
