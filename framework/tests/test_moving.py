"""A person who moves disks of a real bench."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rig_builder import PCI, a_rig

from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.real.bench import places_of
from plugpull.dut.real.moving import Mover
from plugpull.errors import RigError

DESK = a_rig("desk", "local").switch(ports=2).controller().disk("disk1", cable="cables.1").disk("disk2").load()


class Someone:
    """Does what is asked, unless away."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False

    def do(self, request: str, timeout: float) -> float:
        if self.away:
            raise RigError("there is nobody to ask")
        self.asked.append(request)
        return 0.0

    def ask(self, question: str, answers: Sequence[str], timeout: float) -> str:
        return answers[0]


def mover(person: Someone) -> tuple[Mover, DiskTable]:
    table = DiskTable({disk.name: disk.serial for disk in DESK.disk}, places_of(DESK))
    return Mover(DESK, person, table, places_of), table


def test_the_guard_looks_for_the_disk_where_it_was_plugged_in() -> None:
    person = Someone()
    made, table = mover(person)
    table.sockets["disk1"] = (f"{PCI}/usb3-1:0",)
    assert made.able
    assert made.move({"disk1": "usb.5"}) == {"disk1": f"{PCI}/5:0"}
    assert table.places == {"disk1": f"{PCI}/5:0", "disk2": f"{PCI}/2:0"}
    assert table.sockets == {}, "its socket is learned again"
    assert person.asked == ["disk1: PLUG it into usb.5"]


def test_what_was_moved_is_put_back_once() -> None:
    person = Someone()
    made, table = mover(person)
    made.move({"disk1": "usb.5", "disk2": "usb.6"})
    made.move({"disk2": "usb.2"})
    made.put_back()
    made.put_back()
    assert person.asked[3:] == ["disk1: PLUG it into usb.1"]
    assert table.places == places_of(DESK)


def test_nobody_to_ask() -> None:
    person = Someone()
    made, _ = mover(person)
    made.move({"disk1": "usb.5"})
    person.away = True
    with pytest.raises(RigError, match="nobody to ask"):
        made.move({"disk2": "usb.6"})
    made.put_back()


def test_a_bench_without_a_person_cannot_move_disks() -> None:
    bare = a_rig("bare", "local").controller().disk("disk1").load()
    assert not Mover(bare, Someone(), DiskTable({}, {}), places_of).able
