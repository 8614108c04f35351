"""A bench is plugged in, and every disk of the rig file is waited for."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.locate import rigs_dir
from plugpull.plugging import let_none_settle, plug_everything
from plugpull.rig.load import load_rig
from plugpull.rig.model import Disk

PATH = "/sys/module/usb_storage/parameters/delay_use"
PORTS = "/sys/bus/usb/devices/*/*-port*/quirks"


class Context(Mock):
    """A context that notes what is done, in order. ``missing`` are the disks that do not come."""

    def __init__(self, missing: tuple[str, ...] = (), delay: str = "1") -> None:
        super().__init__()
        self.done: list[str] = []
        self.rig = load_rig(rigs_dir() / "quick.toml")
        self.recorded: list[ev.Event] = []
        self.recorder.record = self.recorded.append
        self.bench.power_everything = lambda: self.done.append("power")
        self.values = {"timers.settle": delay, "ports": "00000000"}
        self.missing = missing
        self.bench.link.call = self.call

    def call(self, op: str, **asked: str) -> dict[str, Any]:
        (value,), path = asked.values(), PATH if op == "timers.settle" else PORTS
        self.done.append(f"{op} {value}")
        before, self.values[op] = self.values[op], self.values[op] and value
        return {"at": 1.0, "changed": [(path, before, value)] if before else [], "failed": {}}

    def disk(self, name: str) -> Disk:
        return next(disk for disk in self.rig.disk if disk.name == name)

    def wait_attached(self, names: tuple[str, ...], within: float) -> tuple[str, ...]:
        self.done.append("wait")
        return self.missing

    def _get_child_mock(self, /, **more: Any) -> Mock:
        return Mock(**more)


def test_a_guest_lets_no_disk_settle_while_all_are_plugged_in() -> None:
    context = Context()
    plug_everything(context, "virtual")
    assert context.done == ["timers.settle 0", "ports 3", "power", "wait", "ports 0", "timers.settle 1"]
    moments = [(event.moment, event.changed) for event in context.recorded if isinstance(event, ev.TimersSet)]
    changes = [(PATH, "1", "0"), (PORTS, "00000000", "3"), (PORTS, "3", "0"), (PATH, "0", "1")]
    assert moments == [("plugging", (change,)) for change in changes]


def test_a_guest_without_usb_storage_has_nothing_to_put_back() -> None:
    context = Context(delay="")
    plug_everything(context, "virtual")
    assert context.done == ["timers.settle 0", "ports 3", "power", "wait", "ports 0"]


@pytest.mark.parametrize("kind", ["local", "ssh"])
def test_a_real_machine_keeps_its_delay(kind: str) -> None:
    context = Context()
    plug_everything(context, kind)
    assert context.done == ["power", "wait"]


def test_stories_about_what_is_on_disks_give_emulated_ones_no_time_to_settle() -> None:
    context = Context()
    let_none_settle(context)
    assert context.done == ["timers.settle 0", "ports 3"]
    changed = [event.changed for event in context.recorded if isinstance(event, ev.TimersSet)]
    assert changed == [((PATH, "1", "0"),), ((PORTS, "00000000", "3"),)]
    context = Context()
    context.rig = context.rig.model_copy(update={"dut": context.rig.dut.model_copy(update={"kind": "ssh"})})
    let_none_settle(context)
    assert (context.done, context.recorded) == ([], [])


def test_a_disk_that_does_not_come_is_named_with_its_serial_number() -> None:
    context = Context(missing=("disk2",))
    serial = next(disk.serial for disk in context.rig.disk if disk.name == "disk2")
    with pytest.raises(RigError, match=rf"not found within 60 s: disk2 \(serial {serial}\)"):
        plug_everything(context, "virtual")
    assert context.done[-2:] == ["ports 0", "timers.settle 1"]
