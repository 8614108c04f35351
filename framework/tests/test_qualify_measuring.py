"""Measuring a port: the test controls the switch, and reports what the DUT does as an agent would."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from boards import Nobody
from desks import described
from rig_builder import a_rig

from plugpull.dut.conversation.link import AgentGone
from plugpull.errors import RigError
from plugpull.qualify.judgement import findings, unknowns, verdict
from plugpull.qualify.measuring import Plan, PortBench, measure
from plugpull.qualify.observer import PortObserver, PortScope, tops_of
from plugpull.rig.topology import Topology
from plugpull.switches.base import Acknowledged, Capabilities, Identity, PortByPort

PCI = "/sys/devices/pci0000:00/0000:00:05.0"
RIG_OF_DESK = (
    a_rig("desk", "local")
    .switch("plugs", "command", 3, "mains", on="true", off="true")
    .controller(path="0000:00:05.0")
    .hub("hub1", "usb.3", power="plugs.3")
    .disk("disk1", "usb.1", "S-1", "16 MiB", power="plugs.1")
    .disk("disk2", "hub1.2", "S-2", "16 MiB", power="plugs.2")
    .load()
)


def disk(serial: str, kname: str, name: str, place: str) -> dict[str, Any]:
    way = "/".join(name[: end + 1] for end in range(2, len(name), 2))
    return described(serial, kname, place=f"0000:00:05.0/{place}:0", sysfs=f"{PCI}/usb1/{way}/x/block/{kname}")


ONE, TWO = disk("S-1", "sda", "1-1", "1"), disk("S-2", "sdb", "1-3.2", "3.2")


class World:
    """The DUT of the desk, and a switch whose port 1 is ``disk1``'s. ``on_edge`` is what an edge does; ``kept`` makes
    the agent's list of disks differ from its reports."""

    def __init__(self, observer: PortObserver, on_edge: Callable[[World, bool], None]) -> None:
        self.observer = observer
        self.on_edge = on_edge
        self.there = {"sda": ONE, "sdb": TWO}
        self.on = True
        self.lies = False
        self.switch = Plug(self)

    def take(self, taken: dict[str, Any]) -> None:
        if self.there.pop(taken["kname"], None):
            self.observer.receive({"ev": "disk.remove", "at": 1.0, "kname": taken["kname"], "diskseq": 1})

    def give(self, given: dict[str, Any]) -> None:
        if given["kname"] not in self.there:
            self.there[given["kname"]] = given
            self.observer.receive({"ev": "disk.add", "at": 1.0, "disk": given})

    def says(self, text: str) -> None:
        self.observer.receive({"ev": "kmsg", "at": 1.0, "level": 3, "seq": 1, "text": text})

    def unplug(self, name: str) -> None:
        path = f"/devices/pci0000:00/0000:00:05.0/usb1/{name}"
        event = {"action": "remove", "subsystem": "usb", "devtype": "usb_device", "devpath": path, "seqnum": 1}
        self.observer.receive({"ev": "uevent", "at": 1.0, **event})

    # --- the agent's answers ------------------------------------------------------------------------------------------

    lost = ""

    def call(self, op: str, timeout: float, /, **arguments: Any) -> Any:
        if op == "disks":
            return list(self.there.values())
        # Ports of the sysfs tree: all are there, and none has a peer.
        return [] if str(arguments.get("pattern", "")).endswith("/peer") else [arguments.get("pattern", "")]

    # --- the hands ----------------------------------------------------------------------------------------------

    def power(self, name: str, ports: tuple[str, ...]) -> tuple[Acknowledged, ...]:
        return tuple(self.switch.set(port, True) for port in ports)


class Plug(PortByPort):
    name = "plugs"

    def __init__(self, world: World) -> None:
        self._world = world
        self.mechanism = RIG_OF_DESK.switch[0].mechanism
        self.capabilities = Capabilities(self.mechanism, read_back=True, latching=True)
        self.identity = Identity("command")

    def _command(self, port: str, on: bool) -> None:
        self._world.on = on
        self._world.on_edge(self._world, on)

    def read(self, port: str) -> bool | None:
        return self._world.on != self._world.lies

    def close(self) -> None:
        pass


class Held:
    """Hands with one switch."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.power = world.power

    def switch(self, name: str) -> Plug:
        return self._world.switch


def good(world: World, on: bool) -> None:
    (world.give if on else world.take)(ONE)


def nothing(text: str) -> None:
    pass


@contextmanager
def bench(
    on_edge: Callable[[World, bool], None] = good,
    point: str = "disk1.power",
    hold: float = 0.3,
    report: Callable[[str], None] = nothing,
) -> Iterator[tuple[World, PortBench]]:
    observer = PortObserver()
    world = World(observer, on_edge)
    for each in world.there.values():
        observer.receive({"ev": "disk.add", "disk": each})
    plan = Plan(RIG_OF_DESK, Path(), point, cycles=2, hold=hold, seen_within=0.2, back_within=0.5, settling=0.0)
    hands: Any = Held(world)
    link: Any = world
    yield (
        world,
        PortBench(plan, Topology(RIG_OF_DESK).cut_point(point), hands, observer, link, Nobody(), report),
    )


def test_a_good_port_passes() -> None:
    with bench() as (_, made):
        measured = measure(made)
    assert (findings(measured), unknowns(measured), verdict(measured)) == ([], [], "PASS")
    assert len(measured.cycles) == 2
    assert (measured.came_back, measured.went, measured.returned) == (None, True, True)


def ganged(world: World, on: bool) -> None:
    good(world, on)
    (world.give if on else world.take)(TWO)


def other_device(world: World, on: bool) -> None:
    good(world, on)
    if not on:
        world.unplug("1-1")  # its own
        world.unplug("1-4")


def resets_the_neighbour(world: World, on: bool) -> None:
    good(world, on)
    world.says("usb 1-1: reset high-speed USB device number 5 using xhci_hcd")
    if not on:
        world.says("usb 1-3.2: reset high-speed USB device number 6 using xhci_hcd")


def trips_a_port(world: World, on: bool) -> None:
    good(world, on)
    world.says("usb usb1-port1: Cannot enable. Maybe the USB cable is bad?")
    world.says("usb 1-3-port4: Cannot enable. Maybe the USB cable is bad?")


def breaks_the_other_disk(world: World, on: bool) -> None:
    good(world, on)
    world.says("I/O error, dev sda, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0")
    world.says("I/O error, dev sdb, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0")


def does_nothing(world: World, on: bool) -> None:
    pass


def never_returns(world: World, on: bool) -> None:
    if not on:
        world.take(ONE)


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (ganged, "it is ganged with others, or disturbs them: sdb (S-2 at 0000:00:05.0/3.2:0) went away too"),
        (other_device, "it is ganged with others, or disturbs them: USB device 1-4 went away too"),
        (resets_the_neighbour, "it disturbs its neighbours: usb 1-3.2: reset high-speed"),
        (trips_a_port, "it disturbs its neighbours: usb 1-3-port4: Cannot enable"),
        (breaks_the_other_disk, "it disturbs its neighbours: I/O error, dev sdb"),
        (does_nothing, "it did not cut: disk1 stayed, 1 of 1 times"),
        (never_returns, "disk1 did not come back, 1 of 1 times"),
    ],
)
def test_what_a_bad_port_does_is_seen(behaviour: Callable[[World, bool], None], said: str) -> None:
    with bench(behaviour) as (_, made):
        measured = measure(made)
    assert findings(measured)[0].startswith(said), findings(measured)
    assert not any("1-1:" in text or "sda" in text for text in findings(measured)), "what is its own is no neighbour"


def test_power_that_comes_back_by_itself() -> None:
    given: list[threading.Thread] = []

    def report(text: str) -> None:
        if text.startswith("left off for"):
            # Before or while it is waited for: both must be seen.
            given.append(threading.Thread(target=world.give, args=(ONE,)))
            given[-1].start()

    with bench(hold=60.0, report=report) as (world, made):
        measured = measure(made)
    given[0].join()
    assert measured.came_back is not None
    assert findings(measured)[0].startswith("power came back by itself after ")


def test_a_read_back_that_lies() -> None:
    with bench() as (world, made):
        world.lies = True
        measured = measure(made)
    assert "its read-back is wrong, 4 of 4 times" in findings(measured)


def test_a_connection_that_breaks_is_no_finding() -> None:
    def breaks(world: World, on: bool) -> None:
        if not on:
            world.observer.receive({"ev": "link.lost", "why": "ssh bench2: the stream ended"})

    with bench(breaks) as (_, made), pytest.raises(AgentGone, match="the stream ended"):
        measure(made)


def test_an_agent_that_cannot_see_is_no_finding() -> None:
    with bench() as (world, made):
        world.observer.receive({"ev": "watcher.broken", "at": 1.0, "what": "uevents", "why": "no netlink"})
        with pytest.raises(RigError, match="a disk that goes is not noticed: no netlink"):
            measure(made)


def test_a_disk_that_went_untold_is_no_finding() -> None:
    def untold(world: World, on: bool) -> None:
        if not on:
            world.there.pop("sda", None)

    with bench(untold) as (_, made), pytest.raises(RigError, match="did not report when disk1 went"):
        measure(made)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"ev": "kmsg.lost", "at": 1.0, "count": 3}, "3 messages of the DUT were lost"),
        ({"ev": "dropped", "at": 1.0, "count": 9}, "9 messages of the DUT were lost"),
        (
            {"ev": "watcher.broken", "at": 1.0, "what": "the kernel log", "why": "Operation not permitted"},
            "the kernel log could not be watched on the DUT: Operation not permitted",
        ),
    ],
)
def test_lost_evidence_is_not_good(message: dict[str, Any], said: str) -> None:
    with bench() as (world, made):
        world.observer.receive(message)
        measured = measure(made)
    assert (unknowns(measured), verdict(measured)) == ([said], "UNKNOWN")


def test_what_the_samplers_do_is_nothing_to_a_port() -> None:
    with bench() as (world, made):
        world.observer.receive({"ev": "watcher.broken", "at": 1.0, "what": "the disks' counters", "why": "x"})
        assert verdict(measure(made)) == "PASS"


def test_a_disk_that_is_not_there_or_elsewhere_is_the_rigs_fault() -> None:
    with bench() as (world, made):
        world.take(ONE)
        world.on_edge = does_nothing
        with pytest.raises(RigError, match=r"disk1 cannot be seen although plugs.1 is on"):
            measure(made)
    with bench() as (world, made):
        world.take(ONE)
        world.give(disk("S-1", "sdc", "1-2", "2"))
        world.on_edge = does_nothing
        with pytest.raises(
            RigError, match=r"is plugged in at 0000:00:05.0/2, but the rig file says disk1 is at 0000:00:05.0/1"
        ):
            measure(made)


def test_all_behind_a_hub_is_the_hubs_own() -> None:
    point = Topology(RIG_OF_DESK).cut_point("hub1.power")
    assert tops_of(RIG_OF_DESK, point, (ONE, TWO)) == {"1-3"}
    scope = PortScope(frozenset({"S-2"}), frozenset({"1-3", "2-3"}))
    assert [scope.has_device(name) for name in ("1-3", "1-3.2", "2-3", "1-31", "1-1")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_waiting_has_a_deadline() -> None:
    begun = time.monotonic()
    assert PortObserver().wait(frozenset({"S-1"}), True, 0.1) is None
    assert time.monotonic() - begun >= 0.1
