"""A copy from disk to disk: the program on the DUT, and what the load makes of its report."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from plugpull.dut.agent import copy_program
from plugpull.load.copying import _report

BLOCK, LENGTH = 64 << 10, 1 << 20


def copied(source: Path, target: Path, *, seconds: float = 0.5) -> dict[str, Any]:
    """Run the program on two files until it has made a pass, as the agent does on disks."""
    fds = (os.open(source, os.O_RDWR), os.open(target, os.O_RDWR))
    try:
        probe = os.open(target, os.O_RDWR | os.O_DIRECT)
    except OSError:
        pytest.skip("this file system cannot be read past the page cache")
    os.close(probe)
    words = [sys.executable, copy_program.__file__, *map(str, (*fds, LENGTH, BLOCK))]
    process = subprocess.Popen(words, pass_fds=fds, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    before = target.read_bytes()
    while process.poll() is None and target.read_bytes() == before and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(seconds)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    said = _report(process.communicate(timeout=60)[0])
    for fd in fds:
        os.close(fd)
    assert said is not None
    return said


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(LENGTH))
    target.write_bytes(bytes(2 * LENGTH))
    return source, target


def test_both_hold_the_same(disks: tuple[Path, Path]) -> None:
    source, target = disks
    said = copied(source, target)
    assert (said["errno"], said["bad"]) == (0, [])
    assert said["copied"] >= LENGTH
    assert said["checked"] == LENGTH
    assert target.read_bytes() == source.read_bytes() + bytes(LENGTH), "nothing beyond it is written"


def test_a_source_that_ends_early_is_an_error(disks: tuple[Path, Path]) -> None:
    source, target = disks
    os.truncate(source, LENGTH // 2)
    said = copied(source, target)
    assert (said["errno"], said["side"], said["offset"]) == (errno.EIO, "source", LENGTH // 2)


def test_a_difference_is_found(disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = disks
    written = os.pwritev

    def forgetful(fd: int, buffers: Any, offset: int) -> int:
        """A disk that loses one write."""
        return len(buffers[0]) if offset == 3 * BLOCK else written(fd, buffers, offset)

    monkeypatch.setattr(os, "pwritev", forgetful)
    monkeypatch.setattr(copy_program, "ENDING", _AfterSo(LENGTH // BLOCK))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(os, "O_DIRECT", 0)
    lines: list[str] = []
    monkeypatch.setattr("builtins.print", lines.append)
    fds = (os.open(source, os.O_RDWR), os.open(target, os.O_RDWR))
    copy_program.main(*fds, LENGTH, BLOCK)
    assert json.loads(lines[0])["bad"] == [[3 * BLOCK, BLOCK]]


class _AfterSo(list[int]):
    """Empty until it was asked so often."""

    def __init__(self, often: int) -> None:
        self._left = often

    def __bool__(self) -> bool:
        self._left -= 1
        return self._left < 0


def test_a_report_that_is_not_there() -> None:
    assert _report("") is None
    assert _report("Traceback (most recent call last):\nOSError") is None
    assert _report('{"copied": 1}') is None
