"""The bench of a real DUT: an agent connected for each scenario, and switches kept open for the length of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from plugpull.dut.dut_host import DutHost
from plugpull.dut.hello import ANSWER, hello
from plugpull.dut.link import AgentLink, AgentLost
from plugpull.dut.reach import Connection, Reach, reach_of
from plugpull.dut.testimony import Register
from plugpull.dut.watch import Watch
from plugpull.errors import RigError, UsageError
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder
from plugpull.rig import model
from plugpull.rig.journal import Journal
from plugpull.rig.model import Mechanism, Rig
from plugpull.rig.topology import Topology
from plugpull.switches.base import Acknowledged, Capabilities, Identity, Switch
from plugpull.switches.host import Host, Person
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch
from plugpull.switches.person import TerminalPerson

Open = Callable[[Recorder, Path, Watch, str], "RealBench"]
RECONNECT_WITHIN = 30.0
"""Seconds tried to reach a DUT again whose connection broke, before it is left to be put right by a person."""


def _nothing(message: dict[str, object]) -> None:
    """For links whose testimony nobody asked for."""


@dataclass
class RealSetting:
    """What all scenarios of a run share: the way to the DUT, and the switches that are plugged into the controller."""

    rig: Rig
    folder: Path
    journal: Journal
    reach: Reach
    person: Person
    _switches: dict[str, Switch] = field(default_factory=dict)

    def declared(self, name: str) -> model.Switch:
        return next(switch for switch in self.rig.switch if switch.name == name)

    def switch(self, name: str) -> Switch:
        """A switch of the controller's, opened once and kept."""
        if name not in self._switches:
            self._switches[name] = self.open(name, LocalHost())
        return self._switches[name]

    def open(self, name: str, host: Host) -> Switch:
        declared = self.declared(name)
        return Journaled(open_switch(declared, host, self.person, self.folder), declared, self)

    def close(self) -> None:
        for switch in self._switches.values():
            with suppress(RigError):
                switch.close()
        self._switches.clear()


class Journaled:
    """A switch whose ports that are off stand in the journal, so that the next start restores them after a SIGKILL."""

    def __init__(self, switch: Switch, declared: model.Switch, setting: RealSetting) -> None:
        self._switch = switch
        self._declared = declared
        self._setting = setting

    @property
    def name(self) -> str:
        return self._switch.name

    @property
    def mechanism(self) -> Mechanism:
        return self._switch.mechanism

    @property
    def capabilities(self) -> Capabilities:
        return self._switch.capabilities

    @property
    def identity(self) -> Identity:
        return self._switch.identity

    def set(self, port: str, on: bool) -> Acknowledged:
        return self.set_many((port,), on)[0]

    def set_many(self, ports: Sequence[str], on: bool) -> tuple[Acknowledged, ...]:
        if not on:
            self._note(ports, on)
        done = (self._switch.set(ports[0], on),) if len(ports) == 1 else self._switch.set_many(ports, on)
        if on:
            self._note(ports, on)
        return done

    def _note(self, ports: Sequence[str], on: bool) -> None:
        setting = self._setting
        for port in ports:
            setting.journal.outlet(
                self._declared.model_dump(mode="json"),
                setting.rig.dut.model_dump(mode="json"),
                setting.folder,
                port,
                on,
            )

    def read(self, port: str) -> bool | None:
        return self._switch.read(port)

    def close(self) -> None:
        self._switch.close()


class RealBench:
    """A real DUT, ready: its agent answers, its switches are open. Made anew for each scenario."""

    def __init__(self, setting: RealSetting, recorder: Recorder, watch: Watch) -> None:
        self._setting = setting
        self._recorder = recorder
        self._lock = threading.RLock()
        self._held = ExitStack()
        self._on_dut: dict[str, Switch] = {}
        self._boot_id = ""
        rig, topology = setting.rig, Topology(setting.rig)
        paths = {controller.name: controller.path or "" for controller in rig.controller}
        places = {}
        for disk in rig.disk:
            path = topology.path_of(disk.name)
            places[disk.name] = f"{paths[path.controller]}/{'.'.join(map(str, path.ports))}:0"
        self.register = Register({disk.name: disk.serial for disk in rig.disk}, places)
        begun = time.monotonic()
        self.link = self._connect(watch.hear)
        self._took = time.monotonic() - begun
        try:
            self._meet(topology, watch)
        except BaseException:
            self.close()
            raise

    def _connect(self, tell: Callable[[dict[str, object]], None]) -> AgentLink:
        connection = Connection(self._setting.reach)
        link = AgentLink(connection.socket, tell)
        try:
            link.map_clock(ANSWER)
        except AgentLost:
            why = connection.why()
            link.close()
            connection.close()
            raise why from None
        self._held.callback(connection.close)
        self._held.callback(link.close)
        return link

    def _meet(self, topology: Topology, watch: Watch) -> None:
        """Look at the machine before anything is done to it. Raises UsageError for a rig that would cut what the DUT
        runs from, RigError for a DUT on which we may not do what we have to."""
        said = self.link.call("hello", ANSWER)
        self._boot_id = said["boot_id"]
        if said["uid"] != 0:
            raise RigError(
                f"{self._setting.reach.name}: the agent runs as user {said['uid']}, and only root may read the kernel "
                "log and open disks",
                mend="log in as root, or write sudo = true in [dut]",
            )
        disks = self.link.call("disks", ANSWER)
        self._refuse_system_disks(topology, disks)
        for disk in disks:
            watch.hear({"ev": "disk.add", "at": said["at"], "disk": disk})

    def _refuse_system_disks(self, topology: Topology, disks: list[dict[str, object]]) -> None:
        system = set(self.link.call("system_disks", ANSWER))
        lived_on = [disk for disk in disks if disk["kname"] in system]
        for disk in self._setting.rig.disk:
            if any(found["serial"] == disk.serial for found in lived_on):
                raise UsageError(f"{disk.name} (serial {disk.serial}) is a disk that the DUT's own system runs from")
        paths = {controller.name: controller.path for controller in self._setting.rig.controller}
        for point in topology.cut_points().values():
            if point.device == "dut":
                continue
            where = topology.path_of(point.device)
            below = f"{paths[where.controller]}/{'.'.join(map(str, where.ports))}"
            for found in lived_on:
                if str(found["place"]).startswith((f"{below}.", f"{below}:")):
                    raise UsageError(
                        f"cutting {point.name} would take {found['kname']} away, which the DUT's own system runs from",
                        mend="plug the system's disk in elsewhere",
                    )

    # --- the Bench protocol -----------------------------------------------------------------------------------------

    def ready(self) -> ev.DutReady:
        return hello(self.link, kind=self._setting.reach.kind, how="connected", took=self._took)

    def switch(self, name: str) -> Switch:
        with self._lock:
            if self._setting.declared(name).via == "controller":
                return self._setting.switch(name)
            if self._setting.reach.kind == "local":
                return self._setting.switch(name)
            if self.link.lost:
                self._reconnect()
            if name not in self._on_dut:
                self._on_dut[name] = self._setting.open(name, DutHost(self.link))
            return self._on_dut[name]

    def _reconnect(self) -> None:
        """Reach the DUT again, to restore what hangs off it. What it did meanwhile is lost all the same."""
        self._on_dut.clear()
        deadline = time.monotonic() + RECONNECT_WITHIN
        while True:
            try:
                self.link = self._connect(_nothing)
                return
            except RigError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)  # somebody else's machine or network: nothing tells when it is back

    def power_everything(self) -> None:
        outlets = {point.outlet: point for point in Topology(self._setting.rig).cut_points().values()}
        for point in outlets.values():
            switch = self.switch(point.switch)
            if switch.read(point.port) is not True:
                switch.set(point.port, True)

    def autopsy(self, timeout: float) -> ev.DutDied | None:
        """A broken connection is no death: only a DUT that has booted since, or says so on its console, has died."""
        try:
            connection = Connection(self._setting.reach)
        except RigError:
            return None
        link = AgentLink(connection.socket, _nothing)
        try:
            # ssh needs its time; nobody waits for this but the verdict.
            boot_id = link.call("hello", max(timeout, 10.0))["boot_id"]
        except RigError:
            return None
        finally:
            link.close()
            connection.close()
        if boot_id == self._boot_id:
            return None
        at = self.link.clock.now()[0] if self.link.clock.mapped else None
        return ev.DutDied(at=at, headline="the DUT restarted", evidence=(f"boot id {self._boot_id} -> {boot_id}",))

    def close(self) -> None:
        for switch in self._on_dut.values():
            with suppress(RigError):
                switch.close()
        self._on_dut.clear()
        self._held.close()


def prepare_real(rig: Rig, file: Path, journal: Journal, held: ExitStack, person: Person | None = None) -> Open:
    """What opens the bench of each scenario of this run. Switches are open until ``held`` is closed."""
    setting = RealSetting(rig, file.parent, journal, reach_of(rig.dut), person or TerminalPerson())
    held.callback(setting.close)

    def open_bench(recorder: Recorder, artefacts: Path, watch: Watch, scenario: str) -> RealBench:
        return RealBench(setting, recorder, watch)

    return open_bench


def restore(entry: model.Switch, dut: model.Dut, folder: Path, port: str) -> None:
    """Turn on a port that a run which was killed has left off. Raises RigError and UsageError."""
    if entry.via == "controller" or dut.kind == "local":
        _turn_on(entry, LocalHost(), folder, port)
        return
    connection = Connection(reach_of(dut))
    link = AgentLink(connection.socket, _nothing)
    try:
        link.map_clock(ANSWER)
        _turn_on(entry, DutHost(link), folder, port)
    except AgentLost:
        raise connection.why() from None
    finally:
        link.close()
        connection.close()


def _turn_on(entry: model.Switch, host: Host, folder: Path, port: str) -> None:
    switch = open_switch(entry, host, TerminalPerson(), folder)
    try:
        switch.set(port, True)
    finally:
        switch.close()
