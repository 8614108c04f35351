"""The bench of a real DUT: a new agent for each scenario, and switches that stay open for the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from plugpull.coordination.journal import Journal
from plugpull.dut.bench import PostMortem
from plugpull.dut.console import DutConsole
from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.hello import ANSWER, hello
from plugpull.dut.conversation.link import AgentGone, AgentLink, Message
from plugpull.dut.listener import Listener
from plugpull.dut.post_mortem import HUNG, examine_console, unresponsive
from plugpull.dut.real.connect import connect, ignore
from plugpull.dut.real.console_wires import wire_of
from plugpull.dut.real.dut_host import DutHost
from plugpull.dut.real.journaled import Journaled
from plugpull.dut.real.moving import Mover
from plugpull.dut.real.outlet import Outlet
from plugpull.dut.real.reach import Unreachable, reach_of
from plugpull.dut.real.safety import refuse_system_disks
from plugpull.dut.real.setting import RealSetting, close_all
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder
from plugpull.rig.model import Rig
from plugpull.rig.topology import CutPoint, Topology
from plugpull.switches.host import Person
from plugpull.switches.person import TerminalPerson

Open = Callable[[Recorder, Path, Listener, str], "RealBench"]
BACK_WITHIN = 120.0
"""Seconds to wait for a DUT after its connection broke, or its power was turned on: it may have to boot."""
PROOF = 5.0
"""Seconds in which a console has to answer sysrq to count as one that can be asked."""
FORGOTTEN = 30.0
"""Seconds without a request after which an agent ends by itself. The listener sends one every second."""


class RealBench:
    """A real DUT, ready: its agent answers, its switches are open. One is made for each scenario."""

    def __init__(self, setting: RealSetting, listener: Listener, artefacts: Path) -> None:
        self._setting = setting
        self._lock = threading.RLock()
        self._held = ExitStack()
        self._on_dut: dict[str, Journaled] = {}
        self._died: ev.DutDied | None = None
        self._hung = False
        setting.cut.clear()
        serials = {disk.name: disk.serial for disk in setting.rig.disk}
        self.disk_table = DiskTable(serials, places_of(setting.rig), setting.sockets)
        self._mover = Mover(setting.rig, setting.person, self.disk_table, places_of)
        begun = time.monotonic()
        self._console = self._open_console(artefacts / "console.log")
        try:
            self._power_dut()
            logged = setting.logged
            self._hear = listener.hear
            self.link, said = self._connect(self._listen)
            self._took = time.monotonic() - begun
            self._boot_id = said["boot_id"]
            self._missed = logged[1] if logged[0] == self._boot_id else None
            setting.logged = (self._boot_id, -1 if self._missed is None else self._missed)
            self._meet(said, listener)
        except BaseException:
            self.close()
            raise

    def _listen(self, message: Message) -> None:
        """Note how far the kernel log was read: the next scenario continues there."""
        if message.get("ev") == "kmsg":
            boot, last = self._setting.logged
            self._setting.logged = (boot, max(last, int(message["seq"])))
        self._hear(message)

    def _catch_up(self) -> None:
        """Record what the kernel logged since the scenario before this one, on the same boot."""
        if self._missed is None or self._missed < 0:
            return
        said = self.link.call("log.since", ANSWER, last=self._missed)
        if said["lost"]:
            self._hear({"ev": "kmsg.lost", "at": None, "count": said["lost"]})
        for record in said["records"]:
            self._hear({"ev": "kmsg.earlier", **record})

    def _power_dut(self) -> None:
        """Turn the DUT on if its outlet is off."""
        outlet = self._setting.rig.dut.power
        if outlet is not None:
            switch, _, port = outlet.partition(".")
            if self._setting.switch(switch).read(port) is False:
                self._setting.switch(switch).set(port, True)
                self._setting.patient = True

    def _open_console(self, path: Path) -> DutConsole | None:
        wire = wire_of(self._setting.rig.dut)
        if wire is None:
            return None
        console = DutConsole(wire, path)
        # That a console does not answer means something only if it has answered before.
        self._setting.answers = self._setting.answers or console.sysrq("h", PROOF) is not None
        return console

    def _connect(self, receive: Callable[[Message], None]) -> tuple[AgentLink, Message]:
        """A link to a new agent, and its answer to hello.

        Raises RigError if the DUT cannot be reached. A DUT that was lost gets time to come back."""
        setting = self._setting
        deadline = time.monotonic() + (BACK_WITHIN if setting.patient else 0.0)
        while True:
            try:
                link, said = connect(setting.reach, receive, self._held, setting.last)
                setting.patient, setting.last = False, said
                return link, said
            except RigError as error:
                if not isinstance(error, Unreachable) or time.monotonic() > deadline:
                    # Wait once, and not again before each later scenario.
                    setting.patient = False
                    raise
                time.sleep(0.5)  # another machine: there is no event to wait for

    def _meet(self, said: Message, listener: Listener) -> None:
        """Check the machine before anything is done to it.

        Raises UsageError for a rig that would cut the disks of the DUT's own system, RigError if the agent is not root.
        """
        setting = self._setting
        if said["uid"] != 0:
            who = "run plugpull as root" if setting.reach.kind == "local" else "log in as root"
            raise RigError(
                f"{setting.reach.name}: the agent runs as user {said['uid']}, and only root may read the kernel log "
                "and open disks",
                hint=f"{who}, or write sudo = true in [dut]",
            )
        self.link.call("expect", ANSWER, every=FORGOTTEN)
        disks = self.link.call("disks", ANSWER)
        system, used = self.link.call("system_disks", ANSWER), self.link.call("used_disks", ANSWER)
        refuse_system_disks(setting.rig, disks, system, used)
        for disk in disks:
            listener.hear({"ev": "disk.add", "at": said["at"], "disk": disk})

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
        """Connect to the DUT again, to restore the ports of its switches. What it did meanwhile is not recorded."""
        close_all(self._on_dut)
        self._held.close()
        self._setting.patient = True
        clock = self.link.clock
        self.link, said = self._connect(ignore)
        # It may have booted since, with a clock that starts at zero. The scenario keeps the clock it began with.
        self.link.clock = clock
        self._judge_boot(said)

    @property
    def can_move(self) -> bool:
        return self._mover.able

    def move(self, sockets: Mapping[str, str]) -> dict[str, str]:
        return self._mover.move(sockets)

    @property
    def can_stall(self) -> bool:
        return False

    def stall(self, disk: str, on: bool) -> None:
        raise RigError(f"nobody can make {disk} stand still: it is not emulated")

    def lift_rates(self, to: int | None) -> None:
        """Nothing: a real disk is as fast as it is."""

    def harmed_by_sleep(self, kernel: str) -> str:
        return ""

    def power_everything(self) -> None:
        outlets = {point.outlet: point for point in Topology(self._setting.rig).cut_points().values()}
        for point in outlets.values():
            try:
                self._power(point)
            except RigError as error:
                if isinstance(error, AgentGone):
                    raise
                self._power(point)  # a switch that was unplugged and plugged in again has to be opened again

    def _power(self, point: CutPoint) -> None:
        switch = self.switch(point.switch)
        if switch.read(point.port) is True:
            return
        switch.set(point.port, True)
        if switch.read(point.port) is False:
            raise RigError(
                f"{point.name}: switch {point.switch} acknowledged that port {point.port} is on, and reads it back off",
                hint="check that the switch has power, and that its load is within its rating",
            )

    def post_mortem(self, timeout: float) -> PostMortem:
        """A broken connection alone is not a death: a DUT died if it has another boot id, or if its console says so."""
        with ExitStack() as held:
            try:
                _, said = connect(self._setting.reach, ignore, held, {}, timeout)
            except RigError:
                return self._ask_console()
        return PostMortem(self._judge_boot(said))

    def _ask_console(self) -> PostMortem:
        if self._console is None:
            return PostMortem()
        at = self.link.clock.at(self.link.heard)[0] if self.link.clock.mapped else None
        found = examine_console(self._console, at, proven=self._setting.answers) or unresponsive(self._console, at, ())
        self._died = found.death
        self._hung = found.death is not None and found.death.headline.startswith(HUNG)
        return found

    def bring_back(self) -> PostMortem:
        with self._lock:
            if not self.link.lost:
                return PostMortem(self._died)
            # One that panicked or restarted may come back by itself; one that hangs does not.
            done = self._cycle() if self._hung else ""
            came = self._came_back()
            if not came and not done:
                done = self._cycle()
                came = self._came_back() if self._setting.rig.dut.power is not None else ""
            if done and came:
                done += f", and it {came}"
            return PostMortem(self._died, done)

    def _came_back(self) -> str:
        """Try to reach the DUT while a machine may boot. Returns how it came back, empty if it did not."""
        before = self._boot_id
        try:
            self._reconnect()
        except RigError:
            return ""
        if self._boot_id == before:
            return "answered again without having restarted: does the outlet feed it?"
        return "answered again"

    def _cycle(self) -> str:
        """Power-cycle the DUT. Returns what was done, as a sentence."""
        outlet = self._setting.rig.dut.power
        if outlet is None:
            return self._no_outlet()
        try:
            Outlet(outlet, self._setting.switch).cycle()
        except RigError as error:
            return f"the DUT's power could not be cycled: {error.what}"
        return f"the DUT's power was cycled through {outlet}"

    def _no_outlet(self) -> str:
        return f'{self._setting.reach.name} has no "power" outlet in [dut], so a person has to restart it'

    def _judge_boot(self, said: Message) -> ev.DutDied | None:
        setting = self._setting
        if said["boot_id"] != self._boot_id and setting.rig.dut.power not in setting.cut:
            at = self.link.clock.now()[0] if self.link.clock.mapped else None
            evidence = (f"boot id {self._boot_id} -> {said['boot_id']}",)
            self._died = self._died or ev.DutDied(at=at, headline="the DUT restarted", evidence=evidence)
        self._boot_id = said["boot_id"]
        return self._died

    def flushes(self) -> dict[str, int]:
        return {}  # no disk says how often it was flushed

    def cpu_seconds(self) -> None:
        """None: a real DUT has its processors to itself."""

    def seen_from_outside(self) -> Iterable[ev.SeenFromOutside | ev.CountedOutside]:
        return ()

    def close(self) -> None:
        self._mover.put_back()
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
    units = {disk.name: disk.lun for disk in rig.disk}
    return {
        name: f"{paths[way.controller]}/{'.'.join(map(str, way.ports))}:{units[name]}" for name, way in ways.items()
    }


def prepare_real(rig: Rig, file: Path, journal: Journal, held: ExitStack, person: Person | None = None) -> Open:
    """What opens the bench of each scenario of this run. Switches are open until ``held`` is closed."""
    setting = RealSetting(rig, file.parent, journal, reach_of(rig.dut), person or TerminalPerson())
    held.callback(setting.close)

    def open_bench(recorder: Recorder, artefacts: Path, listener: Listener, scenario: str) -> RealBench:
        return RealBench(setting, listener, artefacts)

    return open_bench
