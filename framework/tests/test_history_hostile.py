"""Histories with hostile content: they are refused, or their lines counted. The reader neither waits nor crashes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stories import encode, healthy, run_of

from plugpull.cli import main
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_UNKNOWN, EXIT_USAGE
from plugpull.history import events as ev
from plugpull.history import reader
from plugpull.history.reader import read_history
from plugpull.judging.judge import judge_history
from plugpull.judging.results import Verdict

WHOLE = encode(run_of(healthy().scenario()))


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "history.jsonl")
    with pytest.raises(UsageError, match="it is not a regular file"):
        read_history(tmp_path)


def test_a_device_is_refused() -> None:
    with pytest.raises(UsageError, match="it is not a regular file"):
        read_history(Path("/dev/zero"))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "elsewhere").write_bytes(WHOLE)
    (run / "history.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="symbolic link"):
        read_history(run)
    assert main(["check", str(run)]) == EXIT_USAGE


def test_a_link_to_a_run_directory_is(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/history.jsonl").write_bytes(WHOLE)
    (tmp_path / "latest").symlink_to("run")
    assert read_history(tmp_path / "latest").complete


def test_a_directory_of_that_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").mkdir()
    with pytest.raises(UsageError, match="cannot read the history"):
        read_history(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 200_000,
        b'{"type":"note","text":' + b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"type":"run.begin","rig":' + b'{"a":' * 100_000,
        b'{"type":"census","at":1,"n":' + b"9" * 5000 + b"}",
        b'{"type":"agent.lost","at":20.0}',
        b'{"type":"link.lost"}',
        b"\xff\xfe\x00",
        b'"\\ud800"',
    ],
    ids=lambda line: line[:24].decode(errors="replace"),
)
def test_a_line_that_cannot_be_read_is_counted(tmp_path: Path, line: bytes) -> None:
    lines = WHOLE.splitlines(keepends=True)
    (tmp_path / "history.jsonl").write_bytes(b"".join([*lines[:50], line + b"\n", *lines[50:]]))
    history = read_history(tmp_path)
    assert history.lost_lines + history.skipped_lines == 1
    assert judge_history(history).verdict is (Verdict.UNKNOWN if history.lost_lines else Verdict.PASS)


def test_a_history_of_nothing_but_depth_is_not_a_history(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_bytes(b"[" * 500_000)
    with pytest.raises(UsageError, match="is not a history"):
        read_history(tmp_path)


def test_a_line_without_end_is_read_in_bounded_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = max(map(len, WHOLE.splitlines(keepends=True)))
    monkeypatch.setattr(reader, "LONGEST_LINE", longest + 1)
    lines = WHOLE.splitlines(keepends=True)
    file = tmp_path / "history.jsonl"
    file.write_bytes(WHOLE)
    assert read_history(file).complete
    file.write_bytes(b"".join([*lines[:50], b"x" * (3 * longest) + b"\n", *lines[50:]]))
    history = read_history(file)
    assert history.lost_lines >= 1
    assert history.ended is not None
    assert judge_history(history).verdict is Verdict.UNKNOWN


def test_what_a_history_says_cannot_pass_for_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = healthy()
    bench.add(ev.RigFault(at=20.0, summary="\x1b[2Jfine\nPASS: 1 scenario passed"))
    (tmp_path / "history.jsonl").write_bytes(encode(run_of(bench.scenario())))
    assert main(["check", str(tmp_path)]) == EXIT_UNKNOWN
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.splitlines()[-1].startswith("UNKNOWN: ")
    assert not [line for line in out.splitlines() if line.startswith("PASS")]
