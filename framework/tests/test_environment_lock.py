"""Who waits for an environment that another process makes does not wait for those who use it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from plugpull.setup import environment
from plugpull.setup.place import CONTENT, ENTRY, lock

DEADLINE = 60.0


def both_find_none(hold: Callable[..., environment.Environment | None]) -> Callable[..., Any]:
    """``hold`` whose first two calls, one in each thread, end together: both find that there is none."""
    both, seen = threading.Barrier(2), threading.local()

    def look(place: str, waiting: Callable[[], None] | None = None) -> environment.Environment | None:
        found = hold(place, waiting)
        if not hasattr(seen, "looked"):
            seen.looked = True
            both.wait(DEADLINE)
        return found

    return look


def lock_without_waiting_for_users(path: str, *, shared: bool = False, wait: bool = True, **more: Any) -> int | None:
    """An exclusive lock that is waited for would be granted only when nobody uses the environment any more."""
    assert shared or not wait
    return lock(path, shared=shared, wait=wait, **more)


def test_who_waited_does_not_wait_for_its_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    building, built = threading.Event(), threading.Event()

    def build(checkout: str, place: str, root: str, fd: int, step: object) -> None:
        building.set()
        assert built.wait(DEADLINE)
        python = Path(place, CONTENT, "bin", "python")
        python.parent.mkdir(parents=True)
        python.touch(mode=0o755)
        Path(place, ENTRY).touch()

    monkeypatch.setattr(environment, "_build", build)
    monkeypatch.setattr(environment, "environment_key", lambda checkout: "key")
    said = list[str]()
    monkeypatch.setattr(environment, "_hold", both_find_none(environment._hold))
    monkeypatch.setattr(environment, "lock", lock_without_waiting_for_users)

    def make() -> environment.Environment:
        return environment.make(str(tmp_path), str(tmp_path / "cache"), lambda *_, **__: None, said.append)

    with ThreadPoolExecutor(2) as pool:
        makers = [pool.submit(make), pool.submit(make)]
        assert building.wait(DEADLINE)
        deadline = time.monotonic() + DEADLINE
        while not said:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        built.set()
        # Both hold it: neither has closed the descriptor that says so.
        for maker in makers:
            os.fstat(maker.result(DEADLINE).hold)
    assert said == ["waiting for another plugpull that is making the same environment"]
