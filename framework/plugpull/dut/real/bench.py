"""The bench of a real DUT: an agent connected for each scenario, and switches kept open for the length of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from plugpull.coordination.journal import Journal
from plugpull.dut.bench import Autopsy
from plugpull.dut.console import Console
from plugpull.dut.conversation.hello import ANSWER, hello
from plugpull.dut.conversation.link import AgentLink, AgentLost, Message
from plugpull.dut.conversation.translation import Register
from plugpull.dut.listener import Watch
from plugpull.dut.post_mortem import HUNG, deaf, examine
from plugpull.dut.real.console_wires import wire_of
from plugpull.dut.real.dut_host import DutHost
from plugpull.dut.real.journaled import Journaled
from plugpull.dut.real.outlet import Outlet
from plugpull.dut.real.reach import CONNECT_WITHIN, Connection, Reach, Unreachable, reach_of
from plugpull.dut.real.safety import refuse_own_control, refuse_system_disks
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder
from plugpull.rig import model
from plugpull.rig.model import Rig
from plugpull.rig.topology import CutPoint, Topology
from plugpull.switches.host import Host, Person
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch
from plugpull.switches.person import TerminalPerson

Open = Callable[[Recorder, Path, Watch, str], "RealBench"]
BACK_WITHIN = 120.0
"""Seconds a DUT gets to be reached again after its connection broke, or its power was turned on: machines boot."""
PROOF = 5.0
"""Seconds in which a console has to answer sysrq to count as one that does."""
FORGOTTEN = 30.0
"""Seconds without a word from us after which an agent ends by itself. We map its clock every second."""


def _nothing(message: Message) -> None:
    """For links whose testimony nobody asked for."""


@dataclass
class RealSetting:
    """What all scenarios of a run share: the way to the DUT, and the switches that are plugged into the controller."""

    rig: Rig
    folder: Path
    journal: Journal
    reach: Reach
    person: Person
    last: Message = field(default_factory=dict)
    """What the agent of the last connection said hello with."""
    logged: tuple[str, int] = ("", -1)
    """Boot id, and number of the last record of the kernel log that was read."""
    patient: bool = False
    """Was the DUT lost, so that it may take its time to come back?"""
    cut: set[str] = field(default_factory=set)
    """Outlets that were turned off in this scenario."""
    sockets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Where each disk was plugged in when this run first saw it."""
    answers: bool = False
    """Has the DUT's console been seen to answer sysrq in this run?"""
    _switches: dict[str, Journaled] = field(default_factory=dict)

    def declared(self, name: str) -> model.Switch:
        return next(switch for switch in self.rig.switch if switch.name == name)

    def switch(self, name: str) -> Journaled:
        """A switch of the controller's, opened once and kept; opened anew after it failed."""
        return self.kept(self._switches, name, LocalHost)

    def kept(self, switches: dict[str, Journaled], name: str, host: Callable[[], Host]) -> Journaled:
        if name in switches and switches[name].broken:
            close_all(switches, name)
        if name not in switches:
            switches[name] = self._open(name, host())
        return switches[name]

    def _open(self, name: str, host: Host) -> Journaled:
        declared = self.declared(name)
        switch = open_switch(declared, host, self.person, self.folder)
        try:
            if self.reach.kind == "local" or declared.via == "dut":
                refuse_own_control(self.rig, name, host, switch.identity.place)
        except BaseException:
            switch.close()
            raise
        return Journaled(switch, partial(self._note, declared))

    def _note(self, declared: model.Switch, port: str, on: bool) -> None:
        if not on:
            self.cut.add(f"{declared.name}.{port}")
        self.journal.outlet(
            declared.model_dump(mode="json"), self.rig.dut.model_dump(mode="json"), self.folder, port, on
        )

    def close(self) -> None:
        close_all(self._switches)


def close_all(switches: dict[str, Journaled], *names: str) -> None:
    """Close these switches, or all, and forget them."""
    for name in names or tuple(switches):
        with suppress(RigError):
            switches.pop(name).close()


class RealBench:
    """A real DUT, ready: its agent answers, its switches are open. Made anew for each scenario."""

    def __init__(self, setting: RealSetting, watch: Watch, artefacts: Path) -> None:
        self._setting = setting
        self._lock = threading.RLock()
        self._held = ExitStack()
        self._on_dut: dict[str, Journaled] = {}
        self._died: ev.DutDied | None = None
        self._hung = False
        setting.cut.clear()
        serials = {disk.name: disk.serial for disk in setting.rig.disk}
        self.register = Register(serials, places_of(setting.rig), setting.sockets)
        begun = time.monotonic()
        self._console = self._open_console(artefacts / "console.log")
        try:
            self._power_dut()
            logged = setting.logged
            self._hear = watch.hear
            self.link, said = self._connect(self._listen)
            self._took = time.monotonic() - begun
            self._boot_id = said["boot_id"]
            self._missed = logged[1] if logged[0] == self._boot_id else None
            setting.logged = (self._boot_id, -1 if self._missed is None else self._missed)
            self._meet(said, watch)
        except BaseException:
            self.close()
            raise

    def _listen(self, message: Message) -> None:
        """Remember how far the kernel log was read: the next scenario goes on from there."""
        if message.get("ev") == "kmsg":
            boot, last = self._setting.logged
            self._setting.logged = (boot, max(last, int(message["seq"])))
        self._hear(message)

    def _catch_up(self) -> None:
        """Put on record what the kernel said since the scenario before this one, on the same boot."""
        if self._missed is None or self._missed < 0:
            return
        said = self.link.call("log.since", ANSWER, last=self._missed)
        if said["lost"]:
            self._hear({"ev": "kmsg.lost", "at": None, "count": said["lost"]})
        for record in said["records"]:
            self._hear({"ev": "kmsg.earlier", **record})

    def _power_dut(self) -> None:
        """Before it can be asked anything it has to run."""
        outlet = self._setting.rig.dut.power
        if outlet is not None:
            switch, _, port = outlet.partition(".")
            if self._setting.switch(switch).read(port) is False:
                self._setting.switch(switch).set(port, True)
                self._setting.patient = True

    def _open_console(self, path: Path) -> Console | None:
        wire = wire_of(self._setting.rig.dut)
        if wire is None:
            return None
        console = Console(wire, path)
        # Only one that is known to answer says something by not answering.
        self._setting.answers = self._setting.answers or console.sysrq("h", PROOF) is not None
        return console

    def _connect(self, tell: Callable[[Message], None]) -> tuple[AgentLink, Message]:
        """A link to a new agent, and its hello. Raises RigError for a DUT that cannot be reached: at once, or, one that
        was lost, when it has not come back in time."""
        setting = self._setting
        deadline = time.monotonic() + (BACK_WITHIN if setting.patient else 0.0)
        while True:
            try:
                link, said = dial(setting.reach, tell, self._held, setting.last)
                setting.patient, setting.last = False, said
                return link, said
            except RigError as error:
                if not isinstance(error, Unreachable) or time.monotonic() > deadline:
                    # Waited for once, and not before each scenario to come.
                    setting.patient = False
                    raise
                time.sleep(0.5)  # somebody else's machine or network: nothing tells when it is back

    def _meet(self, said: Message, watch: Watch) -> None:
        """Look at the machine before anything is done to it. Raises UsageError for a rig that would cut what the DUT
        runs from, RigError for a DUT on which we may not do what we have to."""
        setting = self._setting
        if said["uid"] != 0:
            who = "run plugpull as root" if setting.reach.kind == "local" else "log in as root"
            raise RigError(
                f"{setting.reach.name}: the agent runs as user {said['uid']}, and only root may read the kernel log "
                "and open disks",
                mend=f"{who}, or write sudo = true in [dut]",
            )
        self.link.call("expect", ANSWER, every=FORGOTTEN)
        disks = self.link.call("disks", ANSWER)
        system, used = self.link.call("system_disks", ANSWER), self.link.call("used_disks", ANSWER)
        refuse_system_disks(setting.rig, disks, system, used)
        for disk in disks:
            watch.hear({"ev": "disk.add", "at": said["at"], "disk": disk})

    # --- the Bench protocol -----------------------------------------------------------------------------------------

    def ready(self) -> ev.DutReady:
        ready = hello(self.link, kind=self._setting.reach.kind, how="connected", took=self._took)
        self._catch_up()
        return ready

    def switch(self, name: str) -> Journaled:
        with self._lock:
            setting = self._setting
            if setting.declared(name).via == "controller" or setting.reach.kind == "local":
                return setting.switch(name)
            if self.link.lost:
                self._reconnect()
            return setting.kept(self._on_dut, name, lambda: DutHost(self.link))

    def _reconnect(self) -> None:
        """Reach the DUT again, to restore what hangs off it. What it did meanwhile is lost all the same."""
        close_all(self._on_dut)
        self._held.close()
        self._setting.patient = True
        clock = self.link.clock
        self.link, said = self._connect(_nothing)
        # It may have booted since, and its time begun anew. The scenario's goes on.
        self.link.clock = clock
        self._judge_boot(said)

    def power_everything(self) -> None:
        outlets = {point.outlet: point for point in Topology(self._setting.rig).cut_points().values()}
        for point in outlets.values():
            try:
                self._power(point)
            except RigError as error:
                if isinstance(error, AgentLost):
                    raise
                self._power(point)  # a switch that was unplugged and plugged in again has to be opened anew

    def _power(self, point: CutPoint) -> None:
        switch = self.switch(point.switch)
        if switch.read(point.port) is True:
            return
        switch.set(point.port, True)
        if switch.read(point.port) is False:
            raise RigError(
                f"{point.name}: switch {point.switch} was told to turn port {point.port} on, and reads it back off",
                mend="is the switch powered, and its load within what it may carry?",
            )

    def autopsy(self, timeout: float) -> Autopsy:
        """A broken connection is no death: only a DUT that has booted since has died, or one whose console says so."""
        with ExitStack() as held:
            try:
                _, said = dial(self._setting.reach, _nothing, held, {}, timeout)
            except RigError:
                return self._ask_console()
        return Autopsy(self._judge_boot(said))

    def _ask_console(self) -> Autopsy:
        if self._console is None:
            return Autopsy()
        at = self.link.clock.at(self.link.heard)[0] if self.link.clock.mapped else None
        found = examine(self._console, at, proven=self._setting.answers) or deaf(self._console, at, ())
        self._died = found.death
        self._hung = found.death is not None and found.death.headline.startswith(HUNG)
        return found

    def inquest(self) -> Autopsy:
        with self._lock:
            if not self.link.lost:
                return Autopsy(self._died)
            # One that panicked or restarted may come back by itself; one that hangs does not.
            told = self._cycle() if self._hung else ""
            came = self._came_back()
            if not came and not told:
                told = self._cycle()
                came = self._came_back() if self._setting.rig.dut.power is not None else ""
            if told and came:
                told += f", and it {came}"
            return Autopsy(self._died, told)

    def _came_back(self) -> str:
        """Try to reach the DUT again, for as long as a machine takes to boot: in what manner it came back, empty if it
        did not."""
        before = self._boot_id
        try:
            self._reconnect()
        except RigError:
            return ""
        if self._boot_id == before:
            return "answered again without having restarted: does the outlet feed it?"
        return "answered again"

    def _cycle(self) -> str:
        """Power-cycle the DUT; what was done, as a sentence."""
        outlet = self._setting.rig.dut.power
        if outlet is None:
            return self._no_outlet()
        try:
            Outlet(outlet, self._setting.switch).cycle()
        except RigError as error:
            return f"the DUT's power could not be cycled: {error.what}"
        return f"the DUT's power was cycled through {outlet}"

    def _no_outlet(self) -> str:
        return f'{self._setting.reach.name} has no "power" outlet in [dut] to bring it back by: it waits for a person'

    def _judge_boot(self, said: Message) -> ev.DutDied | None:
        setting = self._setting
        if said["boot_id"] != self._boot_id and setting.rig.dut.power not in setting.cut:
            at = self.link.clock.now()[0] if self.link.clock.mapped else None
            evidence = (f"boot id {self._boot_id} -> {said['boot_id']}",)
            self._died = self._died or ev.DutDied(at=at, headline="the DUT restarted", evidence=evidence)
        self._boot_id = said["boot_id"]
        return self._died

    def cpu_seconds(self) -> None:
        """A real DUT has its processors to itself."""

    def seen_from_outside(self) -> Iterable[ev.SeenFromOutside]:
        return ()

    def close(self) -> None:
        link = getattr(self, "link", None)
        if link is not None and link.lost:
            self._setting.patient = True
        close_all(self._on_dut)
        self._held.close()
        if self._console is not None:
            self._console.close()


def places_of(rig: Rig) -> dict[str, str]:
    """Where the rig file says each disk hangs, as the agent writes it: ``0000:00:14.0/1.2:0``."""
    topology = Topology(rig)
    paths = {controller.name: controller.path or "" for controller in rig.controller}
    ways = {disk.name: topology.path_of(disk.name) for disk in rig.disk}
    return {name: f"{paths[way.controller]}/{'.'.join(map(str, way.ports))}:0" for name, way in ways.items()}


def dial(
    reach: Reach, tell: Callable[[Message], None], held: ExitStack, last: Message, within: float = CONNECT_WITHIN
) -> tuple[AgentLink, Message]:
    """A link to a new agent, and its hello; ``held`` closes it. ``last`` is the hello of an agent that it succeeds.
    Raises RigError, Unreachable when it may help to try again."""
    connection = Connection(reach, within)
    answer = min(ANSWER, 2 * within)

    def hear(message: Message) -> None:
        if message.get("ev") == "link.lost":
            words = connection.words().splitlines()
            message = {**message, "why": f"{reach.name}: {message['why']}{f': {words[-1]}' if words else ''}"}
        tell(message)

    dialling = ExitStack()
    dialling.callback(connection.close)
    try:
        link = AgentLink(connection.socket, hear)
        dialling.callback(link.close)
        link.map_clock(answer)
        # What a login shell prints comes before an agent's first word, and is none of it.
        link.unreadable = 0
        said: Message = link.call("hello", answer)
        if last and last["boot_id"] == said["boot_id"]:
            link.call("retire", answer, pid=last["pid"], started=last["started"])
    except AgentLost:
        why = connection.why()
        dialling.close()
        raise why from None
    except BaseException:
        dialling.close()
        raise
    held.push(dialling)
    return link, said


def prepare_real(rig: Rig, file: Path, journal: Journal, held: ExitStack, person: Person | None = None) -> Open:
    """What opens the bench of each scenario of this run. Switches are open until ``held`` is closed."""
    setting = RealSetting(rig, file.parent, journal, reach_of(rig.dut), person or TerminalPerson())
    held.callback(setting.close)

    def open_bench(recorder: Recorder, artefacts: Path, watch: Watch, scenario: str) -> RealBench:
        return RealBench(setting, watch, artefacts)

    return open_bench


def restore(entry: model.Switch, dut: model.Dut, folder: Path, port: str) -> None:
    """Turn on a port that a run which was killed has left off. Raises RigError and UsageError."""
    if entry.via == "controller" or dut.kind == "local":
        _turn_on(entry, LocalHost(), folder, port)
        return
    with ExitStack() as held:
        link, _ = dial(reach_of(dut), _nothing, held, {})
        _turn_on(entry, DutHost(link), folder, port)


def _turn_on(entry: model.Switch, host: Host, folder: Path, port: str) -> None:
    switch = open_switch(entry, host, TerminalPerson(), folder)
    try:
        switch.set(port, True)
        if switch.read(port) is False:
            raise RigError(f"port {port} was told on and reads back off")
    finally:
        switch.close()
