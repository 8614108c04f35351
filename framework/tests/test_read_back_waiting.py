"""A read-back is waited for as long as its disk moves, and ended when the disk stands still."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from desks import Desk, desk

from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.integrity.writing import session
from plugpull.integrity.writing.session import StampRunner, StreamJob

STILL = 1.0
TIMEOUT = 4 * STILL
"""Seconds. A test machine that hangs for ``STILL`` seconds between two samples would see a disk stand still."""


def recorded(on: Desk, patch: pytest.MonkeyPatch, step: int) -> str:
    """Why a read-back is given up that never ends, while its disk moves ``step`` bytes from sample to sample."""
    patch.setattr(session, "STILL", STILL)
    stopped: list[str] = []
    over = threading.Event()

    def sample() -> None:
        moved = 0
        while not over.wait(0.02):
            moved += step
            on.context.recorder.record(ev.Sampled(at=1.0, disks={"sda": Counters(1, moved, 0, 1, 0, 0, 0, 0)}))

    def stop(jobs: list[StreamJob]) -> dict[str, object]:
        stopped.extend(job.name for job in jobs)
        return {}

    runner = StampRunner(on.context)
    patch.setattr(runner, "stop", stop)
    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        runner.finish([StreamJob("readback1-disk1", "disk1", "sda", 1 << 20)], TIMEOUT)
    finally:
        over.set()
        sampler.join()
    assert stopped == ["readback1-disk1"]
    (ended,) = on.recorded(ev.ReadBackEnded)
    return ended.why


def test_a_disk_that_stands_still_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk(tmp_path) as on:
        assert recorded(on, monkeypatch, 0) == f"reading back stood still for {STILL:g} s"


def test_a_slow_disk_has_all_of_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk(tmp_path) as on:
        assert recorded(on, monkeypatch, 512) == f"reading back did not finish within {TIMEOUT:g} s"
