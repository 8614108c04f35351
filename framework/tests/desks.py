"""A bench on a desk: no DUT, but the real link, listener, disk table, history and context; a test plays the agent."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rig_builder import a_rig

from plugpull.dut.bench import PostMortem
from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.link import AgentLink
from plugpull.dut.listener import Listener
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder
from plugpull.rig.load import load_rig
from plugpull.rig.model import Mechanism
from plugpull.rig.topology import Topology
from plugpull.streams import Streams
from plugpull.switches.base import Capabilities, Identity, PortByPort

PATIENCE = 60.0
"""Seconds for what takes a moment, on a machine that may be busy."""

DESK = (
    a_rig("desk")
    .switch(ports=2)
    .controller()
    .disks("disk1", "disk2", serial="S-{n}", size="16 MiB", cable="cables.{n}", scratch=True)
)
RIG = DESK.text

USB = "/sys/devices/pci0000:00/0000:00:05.0/usb1/1-1"
BLOCK = f"{USB}/1-1:1.0/host0/target0:0:0/0:0:0:0/block"


def described(serial: str = "S-1", kname: str = "sda", diskseq: int = 7, **other: Any) -> dict[str, Any]:
    """A disk as the agent describes it."""
    return {
        "kname": kname,
        "devt": "8:0",
        "diskseq": diskseq,
        "size": 16 << 20,
        "serial": serial,
        "place": "0000:00:05.0/1:0",
        "driver": "uas",
        "speed": "5000",
        "model": "QEMU HARDDISK",
        "read_only": False,
        "type": 0,
        "sysfs": f"{BLOCK}/{kname}",
        **other,
    }


E = TypeVar("E", bound=ev.Event)


@dataclass
class DeskSwitch(PortByPort):
    """Ports that keep the state they were set to, and fail on request. ``done`` lists every edge that was made."""

    name: str = "cables"
    mechanism: Mechanism = Mechanism.DATA
    ports: dict[str, bool] = field(default_factory=dict)
    broken: dict[str, Exception] = field(default_factory=dict)
    lying: set[str] = field(default_factory=set)
    readable: bool = True
    done: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(self.mechanism, read_back=self.readable, latching=False)

    @property
    def identity(self) -> Identity:
        return Identity("desk")

    def close(self) -> None:
        pass

    def _command(self, port: str, on: bool) -> None:
        if port in self.broken:
            raise self.broken[port]
        self.done.append((port, on))
        if port not in self.lying:
            self.ports[port] = on

    def read(self, port: str) -> bool | None:
        return self.ports.get(port, True) if self.readable else None


@dataclass
class DeskBench:
    link: AgentLink
    disk_table: DiskTable
    cables: DeskSwitch = field(default_factory=DeskSwitch)
    others: dict[str, DeskSwitch] = field(default_factory=dict)

    def ready(self) -> ev.DutReady:
        return ev.DutReady(kernel="0.0.0", kind="virtual", how="found", took=0.0)

    def switch(self, name: str) -> DeskSwitch:
        if name not in (self.cables.name, *self.others):
            raise RigError(f"there is no switch {name}")
        return self.others.get(name, self.cables)

    @property
    def can_move(self) -> bool:
        return True

    def move(self, sockets: Mapping[str, str]) -> dict[str, str]:
        return {disk: f"0000:00:05.0/{socket}:0" for disk, socket in sockets.items()}

    @property
    def can_stall(self) -> bool:
        return False

    def stall(self, disk: str, on: bool) -> None:
        raise RigError(f"nobody can make {disk} stand still")

    def lift_rates(self, to: int | None) -> None:
        pass

    def harmed_by_sleep(self, kernel: str) -> str:
        return ""

    def power_everything(self) -> None:
        pass

    def post_mortem(self, timeout: float) -> PostMortem:
        return PostMortem()

    def bring_back(self) -> PostMortem:
        return PostMortem()

    def flushes(self) -> dict[str, int]:
        return {}

    def cpu_seconds(self) -> float | None:
        return None

    def seen_from_outside(self) -> Iterable[ev.SeenFromOutside]:
        return ()

    def close(self) -> None:
        self.link.close()


@dataclass(frozen=True)
class Desk:
    context: ScenarioContext
    bench: DeskBench
    listener: Listener
    recorder: Recorder
    theirs: socket.socket
    writing: threading.Lock

    def send(self, line: bytes) -> None:
        with self.writing:
            self.theirs.sendall(line)

    def report(self, message: dict[str, Any]) -> None:
        """Say this for the agent."""
        self.send(json.dumps(message).encode() + b"\n")

    def attach(self, number: int) -> None:
        """Have the kernel find disk ``number`` of the rig."""
        self.report({"ev": "disk.add", "at": 1.0, "disk": described(f"S-{number}", f"sd{number}")})
        self.wait_for(ev.DiskAttached, of=lambda event: event.disk == f"disk{number}")

    def hang_up(self) -> None:
        self.theirs.shutdown(socket.SHUT_RDWR)

    def wait_for(self, kind: type[E], *, since: int | None = 0, of: Callable[[Any], bool] = lambda event: True) -> E:
        found = self.recorder.wait_for(lambda e: isinstance(e, kind) and of(e), PATIENCE, since=since)
        assert isinstance(found, kind), f"no {kind.__name__} came"
        return found

    def recorded(self, kind: type[E]) -> list[E]:
        return [event for event in self.recorder.since(0) if isinstance(event, kind)]


def _answer(theirs: socket.socket, writing: threading.Lock) -> None:
    """The agent's clock is this machine's; nothing else is answered."""
    with suppress(OSError), theirs.makefile("rb") as lines:
        for line in lines:
            request = json.loads(line)
            if request["op"] == "clock":
                answer = {"id": request["id"], "ok": True, "r": {"at": time.monotonic(), "real": time.time()}}
                with writing:
                    theirs.sendall(json.dumps(answer).encode() + b"\n")


@contextmanager
def desk(directory: Path, early: Iterable[dict[str, Any]] = (), rig: str = RIG) -> Iterator[Desk]:
    """``early`` is reported before anybody listens."""
    file = directory / "rig.toml"
    file.write_text(rig)
    model = load_rig(file)
    ours, theirs = socket.socketpair()
    writing = threading.Lock()
    recorder = Recorder(directory / "history.jsonl")
    listener = Listener(recorder)
    for message in early:
        listener.hear(message)
    bench = DeskBench(AgentLink(ours, listener.hear), DiskTable({disk.name: disk.serial for disk in model.disk}, {}))
    agent = threading.Thread(target=_answer, args=(theirs, writing), daemon=True)
    agent.start()
    try:
        listener.begin(bench)
        context = ScenarioContext(model, Topology(model), bench, listener, recorder, Streams(1, ""))
        yield Desk(context, bench, listener, recorder, theirs, writing)
    finally:
        listener.end()
        bench.close()
        recorder.close(quietly=True)
        ours.close()
        theirs.close()
        agent.join(PATIENCE)
