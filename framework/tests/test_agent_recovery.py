"""The agent has the kernel reset a disk until it is asked to end, and never another disk."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from plugpull.dut.agent import recovery
from plugpull.dut.agent.disks import Refused
from plugpull.dut.agent.recovery import Recovery
from plugpull.dut.recovering import Recovering
from plugpull.errors import NotServed, RigError

WANTED = {"kname": "sdz", "serial": "S-1", "place": "0000:00:05.0/1:0", "size": 1 << 20, "diskseq": 3, "sockets": []}
ON_USB = "/sys/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1:1.0/host2/target2:0:0/2:0:0:0/block/sdz"
ON_SCSI = "/sys/devices/pci0000:00/0000:00:11.0/virtio3/host0/target0:0:3/0:0:3:0/block/sdz"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A disk whose resets are listed, by their level; it is found as it is wanted."""
    levels: list[int] = []
    file = tmp_path / "sdz"
    file.touch()
    monkeypatch.setattr(recovery, "describe", lambda kname: {**WANTED, "driver": "usb-storage", "sysfs": ON_USB})
    monkeypatch.setattr(recovery.os, "open", lambda path, flags: os.dup(1))  # type: ignore[attr-defined]
    monkeypatch.setattr(recovery.os.path, "exists", lambda path: True)  # type: ignore[attr-defined]

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


def test_a_disk_that_is_reset_at_once_is_not_reset_all_the_time(asked: list[int]) -> None:
    """The kernel logs each reset."""
    made = Recovery()
    made.begin(WANTED)
    time.sleep(0.3)
    said = made.end()
    assert 1 <= said["resets"] <= 1 + (said["until"] - said["begun"]) / recovery.PERIOD


def test_a_uas_disk_is_reset_by_itself(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "describe", lambda kname: {**WANTED, "driver": "uas", "sysfs": ON_USB})
    made = Recovery()
    made.begin(WANTED)
    deadline = time.monotonic() + 10
    while not asked and time.monotonic() < deadline:
        time.sleep(0.005)
    made.end()
    assert set(asked) == {1}


@pytest.mark.parametrize("other", [{"serial": "S-2"}, {"size": 1 << 21}, {"diskseq": 4}])
def test_another_disk_is_refused(asked: list[int], monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]) -> None:
    monkeypatch.setattr(recovery, "describe", lambda kname: {**WANTED, "driver": "uas", "sysfs": ON_USB, **other})
    with pytest.raises(Refused, match="is not the disk it was"):
        Recovery().begin(WANTED)
    assert asked == []


def fails(*_: object) -> int:
    raise OSError(5, "Input/output error")


def test_a_disk_on_a_scsi_bus_is_reset_by_itself(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "describe", lambda kname: {**WANTED, "driver": "ahci", "sysfs": ON_SCSI})
    made = Recovery()
    assert made.begin(WANTED) == ""
    assert made.end()["resets"]
    assert set(asked) == {1}


DRIVERS = [("usb-storage", ON_USB), ("ums-realtek", ON_USB), ("virtio_scsi", ON_SCSI)]


@pytest.mark.parametrize(("driver", "sysfs"), DRIVERS)
def test_a_reset_that_fails_is_counted(
    asked: list[int], monkeypatch: pytest.MonkeyPatch, driver: str, sysfs: str
) -> None:
    monkeypatch.setattr(recovery.fcntl, "ioctl", fails)  # type: ignore[attr-defined]
    monkeypatch.setattr(recovery, "describe", lambda kname: {**WANTED, "driver": driver, "sysfs": sysfs})
    made = Recovery()
    assert made.begin(WANTED) == ""
    time.sleep(0.1)
    said = made.end()
    assert (said["resets"], said["why"]) == (0, "Input/output error")
    assert said["failed"] >= 1


@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_was_removed_is_let_go(asked: list[int], monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """A disk that is open keeps its name for as long, and comes back under another."""
    opened = os.dup(1)
    monkeypatch.setattr(recovery.os, "open", lambda path, flags: opened)  # type: ignore[attr-defined]
    monkeypatch.setattr(recovery.fcntl, "ioctl", fails)  # type: ignore[attr-defined]
    monkeypatch.setattr(recovery.os.path, "exists", lambda path: there)  # type: ignore[attr-defined]
    made = Recovery()
    assert made.begin(WANTED) == ""
    assert made._thread is not None
    made._thread.join(0.3)
    assert made._thread.is_alive() is there
    if not there:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(opened)
    assert bool(made.end()["failed"]) is there


def test_a_driver_without_a_reset_is_named(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery.fcntl, "ioctl", fails)  # type: ignore[attr-defined]
    monkeypatch.setattr(recovery, "describe", lambda kname: {**WANTED, "driver": "ahci", "sysfs": ON_SCSI})
    made = Recovery()
    assert made.begin(WANTED) == "ahci refuses to reset it: Input/output error"
    monkeypatch.undo()
    assert not made.end()["stuck"], "nothing goes on"


def recovering(said: dict[str, object]) -> Mock:
    made = Mock()
    made.listener.lost = ""
    made.bench.link.call.side_effect = lambda op, *_, **__: said[op]
    return made


def test_a_disk_that_cannot_be_reset_on_request_skips_the_scenario() -> None:
    made = recovering({"recover": "ahci refuses to reset it: Input/output error"})
    with pytest.raises(NotServed, match="cannot be asked to reset disk1: ahci refuses"):
        Recovering(made, "disk1").__enter__()
    made.recorder.record.assert_not_called()


def test_a_disk_whose_resets_all_fail_is_judged() -> None:
    end = {"begun": 1.0, "until": 2.0, "resets": 0, "failed": 4, "why": "Input/output error"}
    made = recovering({"recover": "", "recover.end": end})
    with pytest.raises(RigError, match="did not recover disk1: Input/output error"), Recovering(made, "disk1"):
        pass
    (recorded,) = (one.args[0] for one in made.recorder.record.call_args_list)
    assert (recorded.resets, recorded.failed) == (0, 4)
