"""The switches of a rig outside a run, for a person at the bench."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from plugpull.dut.dut_host import DutHost
from plugpull.dut.link import AgentLink, Message
from plugpull.dut.reach import reach_of
from plugpull.dut.real import dial
from plugpull.errors import UsageError
from plugpull.rig.model import Rig
from plugpull.switches.base import Switch
from plugpull.switches.host import Host, Person
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch


@contextmanager
def connected(rig: Rig, tell: Callable[[Message], None] = lambda message: None) -> Iterator[AgentLink]:
    """An agent on a real rig's DUT. Raises UsageError for a virtual rig, RigError when the DUT cannot be reached."""
    if rig.dut.kind == "virtual":
        raise UsageError(
            f"the DUT of rig {rig.rig.name} is virtual: it is there only while a run has it",
            mend="use a rig file of a real bench, or `plugpull run`",
        )
    with ExitStack() as held:
        link, _ = dial(reach_of(rig.dut), tell, held, {})
        yield link


class Hands:
    """Opens each switch when it is first wanted, on the machine it is plugged into."""

    def __init__(self, rig: Rig, folder: Path, person: Person, held: ExitStack, link: AgentLink | None = None) -> None:
        self._rig = rig
        self._folder = folder
        self._person = person
        self._held = held
        self._link = link
        self._switches: dict[str, Switch] = {}

    def switch(self, name: str) -> Switch:
        """Raises UsageError and RigError as ``open_switch``."""
        if name not in self._switches:
            declared = next(switch for switch in self._rig.switch if switch.name == name)
            host = self._host(declared.via)
            self._switches[name] = opened = open_switch(declared, host, self._person, self._folder)
            self._held.callback(opened.close)
        return self._switches[name]

    def _host(self, via: str) -> Host:
        if via == "controller" or self._rig.dut.kind == "local":
            return LocalHost()
        if self._link is None:
            self._link = self._held.enter_context(connected(self._rig))
        return DutHost(self._link)


@contextmanager
def hands(rig: Rig, folder: Path, person: Person, link: AgentLink | None = None) -> Iterator[Hands]:
    """The switches of a rig; all that were opened are closed at the end, and left as they are."""
    with ExitStack() as held:
        yield Hands(rig, folder, person, held, link)
