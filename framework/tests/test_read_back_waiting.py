"""A read-back is waited for as long as its disk moves, and ended when the disk stands still."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from desks import Desk, desk

from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.integrity.writing import session
from plugpull.integrity.writing.session import StampRunner, StreamJob

STILL = 1.0
TIMEOUT = 4 * STILL
"""Seconds. A test machine that hangs for ``STILL`` seconds between two samples sees a disk stand still: such an attempt
shows nothing, and is made again."""
ATTEMPTS = 20


def sampled(moved: int) -> ev.Sampled:
    still, moving = Counters(1, 7, 0, 1, 0, 0, 0, 0), Counters(2, moved, 0, 1, 0, 0, 0, 0)
    return ev.Sampled(at=1.0, disks={"sda": still, "sdb": moving})


def given_up(folder: Path, patch: pytest.MonkeyPatch, step: int) -> set[str]:
    """Why two read-backs are given up, from an attempt in which the samples came in time."""
    for attempt in range(ATTEMPTS):
        (folder / str(attempt)).mkdir()
        with desk(folder / str(attempt)) as on:
            why, longest = attempted(on, patch, step)
        if longest < STILL / 2:
            return why
    raise AssertionError(f"none of {ATTEMPTS} attempts was sampled in time")


def attempted(on: Desk, patch: pytest.MonkeyPatch, step: int) -> tuple[set[str], float]:
    """Why two read-backs are given up that never end. The first disk stands still; the other one moves ``step`` bytes
    from sample to sample. And the longest time between two samples."""
    patch.setattr(session, "STILL", STILL)
    stopped: list[str] = []
    over = threading.Event()
    at = [time.monotonic()]

    def sample() -> None:
        moved = 0
        while not over.wait(0.02):
            moved += step
            on.context.recorder.record(sampled(moved))
            at.append(time.monotonic())

    def stop(jobs: list[StreamJob]) -> dict[str, object]:
        stopped.extend(job.name for job in jobs)
        return {}

    runner = StampRunner(on.context)
    patch.setattr(runner, "stop", stop)
    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        disks = (("disk1", "sda"), ("disk2", "sdb"))
        runner.finish([StreamJob(f"read-{disk}", disk, kname, 1 << 20) for disk, kname in disks], TIMEOUT)
    finally:
        over.set()
        sampler.join()
    assert stopped == ["read-disk1", "read-disk2"]
    ended = on.recorded(ev.ReadBackEnded)
    assert [one.disk for one in ended] == ["disk1", "disk2"]
    return {one.why for one in ended}, max(later - sooner for sooner, later in pairwise([*at, time.monotonic()]))


def test_disks_that_all_stand_still_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert given_up(tmp_path, monkeypatch, 0) == {f"reading back stood still for {STILL:g} s"}


def test_a_disk_that_moves_has_all_of_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert given_up(tmp_path, monkeypatch, 512) == {f"reading back did not finish within {TIMEOUT:g} s"}
