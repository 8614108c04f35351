"""The switches of a rig outside a run, opened for a person at the bench."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from plugpull.coordination.journal import Journal
from plugpull.dut.agent.disks import all_disks
from plugpull.dut.agent.system import system_disks, used_disks
from plugpull.dut.conversation.hello import ANSWER
from plugpull.dut.conversation.link import AgentLink, Message
from plugpull.dut.real.connect import connect
from plugpull.dut.real.dut_host import DutHost
from plugpull.dut.real.journaled import Journaled
from plugpull.dut.real.reach import reach_of
from plugpull.dut.real.safety import refuse_own_control, refuse_system_disks
from plugpull.errors import UsageError
from plugpull.rig import model
from plugpull.rig.model import Rig
from plugpull.switches.base import Acknowledged, Switch
from plugpull.switches.host import Host, Person
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch


@contextmanager
def connected_agent(rig: Rig, receive: Callable[[Message], None] = lambda message: None) -> Iterator[AgentLink]:
    """An agent on a real rig's DUT; ``receive`` gets its messages.

    Raises UsageError for a virtual rig, and RigError if the DUT cannot be reached.
    """
    if rig.dut.kind == "virtual":
        raise UsageError(
            f"the DUT of rig {rig.rig.name} is virtual: it exists only during a run",
            hint="use a rig file of a real bench, or `plugpull run`",
        )
    with ExitStack() as held:
        link, _ = connect(reach_of(rig.dut), receive, held, {})
        yield link


class OpenedSwitches:
    """Opens each switch on first use, on the machine it is plugged into.

    With a ``journal``, a port that is turned off is recorded there until it is on again, so that the next start
    restores it after a SIGKILL.
    """

    def __init__(
        self,
        rig: Rig,
        folder: Path,
        person: Person,
        held: ExitStack,
        link: AgentLink | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._rig = rig
        self._folder = folder
        self._person = person
        self._held = held
        self._link = link
        self._journal = journal
        self._switches: dict[str, Switch] = {}

    def switch(self, name: str) -> Switch:
        """The opened switch. Raises UsageError and RigError as ``open_switch`` does."""
        if name not in self._switches:
            declared = self._declared(name)
            opened = open_switch(declared, self._host(declared.via), self._person, self._folder)
            self._held.callback(opened.close)
            noted = opened if self._journal is None else Journaled(opened, partial(self._note, self._journal, declared))
            self._switches[name] = noted
        return self._switches[name]

    def refuse_unsafe(self, *names: str) -> None:
        """Check these switches before anything is turned off.

        Raises UsageError if the rig could cut a disk that the DUT's system runs from, or if one of these switches
        could cut its own control cable.

        The disks of a DUT behind ssh are checked only if it is connected already. A switch that is plugged into the
        controller must work even if the DUT is dead.
        """
        for name in names:
            declared = self._declared(name)
            if self._rig.dut.kind == "local" or declared.via == "dut":
                refuse_own_control(self._rig, name, self._host(declared.via), self.switch(name).identity.place)
        if self._link is not None:
            disks, system = self._link.call("disks", ANSWER), self._link.call("system_disks", ANSWER)
            refuse_system_disks(self._rig, disks, system, self._link.call("used_disks", ANSWER))
        elif self._rig.dut.kind == "local":
            refuse_system_disks(self._rig, all_disks(), system_disks(), used_disks())

    def power(self, name: str, ports: Sequence[str]) -> tuple[Acknowledged, ...]:
        """Turn ports on, even if the switch has failed.

        A switch that fails is opened again, with the connection to its DUT, and then each port is switched by itself.
        Raises the error of the first port that stays off.
        """
        try:
            return self.switch(name).set_many(ports, True)
        except Exception:  # a driver may raise anything
            broken = self._switches.pop(name, None)
            if broken is not None:
                with suppress(Exception):
                    broken.close()
            if self._link is not None and self._link.lost:
                self._link = None
        done: list[Acknowledged] = []
        failed: list[Exception] = []
        for port in ports:
            try:
                done.append(self.switch(name).set(port, True))
            except Exception as error:
                failed.append(error)
        if failed:
            raise failed[0]
        return tuple(done)

    def _declared(self, name: str) -> model.DeclaredSwitch:
        return next(switch for switch in self._rig.switch if switch.name == name)

    def _note(self, journal: Journal, declared: model.DeclaredSwitch, port: str, on: bool) -> None:
        journal.outlet(declared.model_dump(mode="json"), self._rig.dut.model_dump(mode="json"), self._folder, port, on)

    def _host(self, via: str) -> Host:
        if via == "controller" or self._rig.dut.kind == "local":
            return LocalHost()
        if self._link is None:
            self._link = self._held.enter_context(connected_agent(self._rig))
        return DutHost(self._link)


@contextmanager
def opened_switches(
    rig: Rig, folder: Path, person: Person, link: AgentLink | None = None, journal: Journal | None = None
) -> Iterator[OpenedSwitches]:
    """The switches of a rig. At the end those that were opened are closed; their ports keep their state."""
    with ExitStack() as held:
        yield OpenedSwitches(rig, folder, person, held, link, journal)
