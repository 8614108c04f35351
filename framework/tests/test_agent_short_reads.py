"""The short reads that the agent makes of each disk."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from plugpull.dut.agent import short_reads as module
from plugpull.dut.agent.short_reads import short_reads


def test_reads_are_timed_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "sda").write_bytes(bytes(1 << 20))
    found = short_reads("sda", str(tmp_path))
    assert list(found) == ["read_ms"]
    assert 8 <= len([float(word) for word in found["read_ms"].split()]) <= 32


class Clock:
    """Time that passes while it is looked at: a read takes 40 ms, and 1 ms ``after`` so many seconds."""

    def __init__(self, after: float) -> None:
        self.now, self._after = 0.0, after

    def monotonic(self) -> float:
        self.now += 0.04 if self.now < self._after else 0.001
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("busy", "fastest"), [(2.5, 1.0), (60.0, 40.0)])
def test_a_busy_moment_passes_and_a_delay_of_each_command_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: float, fastest: float
) -> None:
    clock = Clock(busy)
    monkeypatch.setattr(module, "time", clock)
    (tmp_path / "sda").write_bytes(bytes(1 << 20))
    times: list[float] = []
    module._read(str(tmp_path / "sda"), times, [])
    assert round(1000 * min(times)) == fastest
    assert len(times) <= 32
    assert clock.now < 5.0


def test_a_disk_that_is_gone_is_no_error(tmp_path: Path) -> None:
    assert short_reads("sda", str(tmp_path)) == {}


def test_a_read_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "sda").mkdir()
    assert short_reads("sda", str(tmp_path)) == {"read_error": "Is a directory"}


def test_a_disk_that_does_not_answer_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()
    monkeypatch.setattr(module, "_read", lambda path, times, why: answers.wait(60))
    try:
        assert short_reads("sda", str(tmp_path), limit=0.1) == {"read_error": "no answer for 0.1 s"}
    finally:
        answers.set()
