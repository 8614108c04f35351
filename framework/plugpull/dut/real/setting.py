"""What all scenarios of a run on a real DUT share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from plugpull.coordination.journal import Journal
from plugpull.dut.conversation.link import Message
from plugpull.dut.real.journaled import Journaled
from plugpull.dut.real.reach import Reach
from plugpull.dut.real.safety import refuse_own_control
from plugpull.errors import RigError
from plugpull.rig import model
from plugpull.rig.model import Rig
from plugpull.switches.host import Host, Person
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch


@dataclass
class RealSetting:
    """What all scenarios of a run share: the way to the DUT, and the switches of the controller."""

    rig: Rig
    folder: Path
    journal: Journal
    reach: Reach
    person: Person
    last: Message = field(default_factory=dict)
    """The last agent's answer to hello."""
    logged: tuple[str, int] = ("", -1)
    """Boot id, and number of the last record of the kernel log that was read."""
    patient: bool = False
    """Whether the DUT was lost, so that it gets time to come back."""
    cut: set[str] = field(default_factory=set)
    """Outlets that were turned off in this scenario."""
    sockets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Where each disk was plugged in when this run first saw it."""
    answers: bool = False
    """Whether the DUT's console has answered sysrq in this run."""
    _switches: dict[str, Journaled] = field(default_factory=dict)

    def declared(self, name: str) -> model.DeclaredSwitch:
        return next(switch for switch in self.rig.switch if switch.name == name)

    def switch(self, name: str) -> Journaled:
        """A switch of the controller. It is opened once, and again after it failed."""
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

    def _note(self, declared: model.DeclaredSwitch, port: str, on: bool) -> None:
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
