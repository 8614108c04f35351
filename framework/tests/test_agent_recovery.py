"""The agent has the kernel reset a disk until it is asked to end, and never another disk."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from plugpull.dut.agent import recovery
from plugpull.dut.agent.disks import Refused
from plugpull.dut.agent.recovery import Recovery

WANTED = {"kname": "sdz", "serial": "S-1", "place": "0000:00:05.0/1:0", "size": 1 << 20, "diskseq": 3, "sockets": []}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A disk whose resets are listed, by their level; it is found as it is wanted."""
    levels: list[int] = []
    file = tmp_path / "sdz"
    file.touch()
    monkeypatch.setattr(recovery, "describe", lambda kname: {**WANTED, "driver": "usb-storage"})
    monkeypatch.setattr(recovery.os, "open", lambda path, flags: os.dup(1))  # type: ignore[attr-defined]

    def reset(fd: int, request: int, argument: bytes) -> int:
        assert request == recovery._SG_SCSI_RESET
        levels.append(argument[0])
        time.sleep(0.005)
        return 0

    monkeypatch.setattr(recovery.fcntl, "ioctl", reset)  # type: ignore[attr-defined]
    return levels


def test_it_is_reset_until_the_end(asked: list[int]) -> None:
    made = Recovery()
    made.begin(WANTED)
    with pytest.raises(Refused, match="another disk is being recovered"):
        made.begin(WANTED)
    deadline = time.monotonic() + 10
    while len(asked) < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    said = made.end()
    assert said["resets"] == len(asked) >= 3
    assert set(asked) == {2}
    assert (said["failed"], said["stuck"]) == (0, False)
    assert said["until"] > said["begun"]
    time.sleep(0.05)
    assert said["resets"] == len(asked), "nothing is reset after the end"


def test_a_uas_disk_is_reset_by_itself(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "describe", lambda kname: {**WANTED, "driver": "uas"})
    made = Recovery()
    made.begin(WANTED)
    deadline = time.monotonic() + 10
    while not asked and time.monotonic() < deadline:
        time.sleep(0.005)
    made.end()
    assert set(asked) == {1}


@pytest.mark.parametrize("other", [{"serial": "S-2"}, {"size": 1 << 21}, {"diskseq": 4}])
def test_another_disk_is_refused(asked: list[int], monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]) -> None:
    monkeypatch.setattr(recovery, "describe", lambda kname: {**WANTED, "driver": "uas", **other})
    with pytest.raises(Refused, match="is not the disk it was"):
        Recovery().begin(WANTED)
    assert asked == []


def test_a_reset_that_fails_is_counted(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(recovery.fcntl, "ioctl", fails)  # type: ignore[attr-defined]
    made = Recovery()
    made.begin(WANTED)
    time.sleep(0.1)
    said = made.end()
    assert (said["resets"], said["why"]) == (0, "Input/output error")
    assert said["failed"] >= 1
