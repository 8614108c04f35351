"""What a made array asks of the agent when members go and return."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock

import pytest
from stories import SURVIVORS, VICTIM, healthy

from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.rig.topology import Topology
from plugpull.targets.array import Array, RaidLevel, is_clean
from plugpull.targets.disk import RigDisk
from plugpull.targets.made_array import MadeArray

Asked = list[tuple[str, tuple[str, ...], dict[str, Any]]]


def disks() -> tuple[RigDisk, RigDisk]:
    return RigDisk("disk1", Mock(spec=Topology)), RigDisk("disk2", Mock(spec=Topology))


def made(monkeypatch: pytest.MonkeyPatch, context: Mock, *refused: str) -> tuple[MadeArray, Asked]:
    """An array whose agent refuses some actions, and what it was asked."""
    array = MadeArray(context, Array("array1", RaidLevel.MIRRORED, disks(), "u", "md127"), (), Mock())
    asked: Asked = []

    def do(action: str, of: tuple[RigDisk, ...], arguments: dict[str, Any], **how: Any) -> dict[str, Any]:
        asked.append((action, tuple(one.name for one in of), arguments))
        return {"ok": action not in refused, "seconds": 0.1, "detail": ""}

    monkeypatch.setattr(array, "_do", do)
    monkeypatch.setattr(array, "_claim", lambda: {"kname": "md127"})
    monkeypatch.setattr(array, "_identities", lambda of: [{"kname": one.name} for one in of])
    return array, asked


def test_a_member_that_comes_back_is_added_again(monkeypatch: pytest.MonkeyPatch) -> None:
    array, asked = made(monkeypatch, Mock())
    array.readd(array.members[0])
    assert [(action, of) for action, of, _ in asked] == [("remove_gone", ()), ("readd", ("disk1",))]
    assert asked[-1][2]["again"] is True


def test_a_member_that_is_refused_is_added_as_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    array, asked = made(monkeypatch, Mock(), "readd")
    array.readd(array.members[0])
    assert [action for action, _, _ in asked] == ["remove_gone", "readd", "add"]
    assert asked[-1][2]["again"] is False


def test_udev_gets_the_name_that_the_disk_had(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, context = healthy(), Mock()
    bench.drop(ev.DiskAttached)
    bench.attach(VICTIM, 10.0, kname="sda")
    bench.attach(VICTIM, 20.0, kname="sdc")
    bench.attach(SURVIVORS[0], 21.0, kname="sdb")
    context.recorder.since.return_value = bench.events
    array, asked = made(monkeypatch, context)
    array.remove_as_udev(array.members[0])
    assert asked == [("udev_remove", ("disk1",), {"array": {"kname": "md127"}, "kname": "sdc"})]
    assert context.wait_for.called


def marking(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> tuple[MadeArray, Mock]:
    """An array whose bitmap marks so many bytes, one number after the other, and its context."""
    context, left = Mock(), list(numbers)
    array, _ = made(monkeypatch, context)
    monkeypatch.setattr(array, "_do", lambda *asked, **how: {"marked": left.pop(0) if len(left) > 1 else left[0]})
    return array, context


def test_it_is_looked_until_the_bitmap_marks_little(monkeypatch: pytest.MonkeyPatch) -> None:
    array, context = marking(monkeypatch, 2 << 20, 512 << 10, 256 << 10)
    assert array.wait_unmarked("256 KiB")
    assert context.pause.call_count == 2


def test_a_bitmap_that_stays_marked_is_left_to_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    array, _ = marking(monkeypatch, 2 << 20)
    assert not array.wait_unmarked("256 KiB", within=0.0)


def array_state(**members: str) -> ev.ArrayState:
    slots = {disk: ("none" if says == "faulty" else "0", says) for disk, says in members.items()}
    return ev.ArrayState(at=1.0, array="array1", kname="md127", values={"array_state": "clean"}, members=slots)


def test_a_member_that_was_assembled_is_not_added_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of the agent may come before the first state of the assembled array."""
    context, recorded = Mock(), [ev.ArrayState(at=0.5, array="array1", kname="md127", values={}, members={})]
    context.recorder.since.side_effect = lambda mark: list(recorded)
    waiting = [array_state(disk2="in_sync")]

    def wait_for(look: Any, within: float, since: int) -> ev.Event | None:
        recorded.extend(waiting)
        return next((event for event in recorded if look(event)), None)

    context.wait_for.side_effect = wait_for
    array, asked = made(monkeypatch, context)
    done = array._do
    monkeypatch.setattr(array, "_do", lambda *words, **how: {**done(*words, **how), "kname": "md127"})
    assert array.assemble(*array.members, force=True)
    array.add_missing()
    assert [(action, of) for action, of, _ in asked] == [("assemble", ("disk1", "disk2")), ("add", ("disk1",))]


@pytest.mark.parametrize("in_sync", [False, True])
def test_an_array_that_does_not_get_in_sync_is_stopped(monkeypatch: pytest.MonkeyPatch, in_sync: bool) -> None:
    context = Mock()
    context.listener.lost = ""
    context.untimed = nullcontext
    array, asked = made(monkeypatch, context)
    done = array._do
    monkeypatch.setattr(array, "_do", lambda *words, **how: {**done(*words, **how), "kname": "md127", "size": 1 << 20})
    monkeypatch.setattr(array, "_record_made", Mock())
    monkeypatch.setattr(array, "wait_clean", lambda: in_sync)
    with nullcontext() if in_sync else pytest.raises(RigError, match="was not in sync"):
        array.__enter__()
    assert [action for action, _, _ in asked] == (["make"] if in_sync else ["make", "stop", "erase"])


@pytest.mark.parametrize(
    ("values", "clean"),
    [
        ({"sync_action": "idle", "degraded": "0", "resync_start": "none"}, True),
        ({"sync_action": "idle", "degraded": "0"}, True),
        ({}, True),
        ({"resync_start": "0"}, True),  # a level without redundancy
        ({"sync_action": "idle", "degraded": "0", "resync_start": "0"}, False),
        ({"sync_action": "resync", "degraded": "0", "resync_start": "none"}, False),
        ({"sync_action": "idle", "degraded": "1", "resync_start": "none"}, False),
        ({"sync_action": "recover", "degraded": "0", "sync_completed": "none"}, True),  # md's thread has no time
        ({"sync_action": "recover", "degraded": "1", "sync_completed": "none"}, False),
        ({"sync_action": "recover", "degraded": "0", "sync_completed": "520 / 8192"}, False),
        ({"sync_action": "resync", "degraded": "0", "sync_completed": "none"}, False),
    ],
)
def test_an_array_is_not_clean_while_a_resync_is_due(values: dict[str, str], clean: bool) -> None:
    assert is_clean({"array_state": "active", **values}) is clean
