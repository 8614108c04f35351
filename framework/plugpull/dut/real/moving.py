"""Disks of a real bench that a person plugs into other sockets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.errors import RigError
from plugpull.rig.model import Rig
from plugpull.rig.topology import with_disks_at
from plugpull.switches.host import Person

HUMAN = "human"
"""The driver of a switch that is a person, who can also plug a disk in elsewhere."""
PATIENCE = 300.0
"""Seconds that the person gets for each disk."""


class Mover:
    """Asks the person at the bench to move disks, and to put them back at the end. ``places_of`` gives the places of
    a rig's disks as the agent writes them."""

    def __init__(self, rig: Rig, person: Person, table: DiskTable, places_of: Callable[[Rig], dict[str, str]]) -> None:
        self._rig = rig
        self._person = person
        self._table = table
        self._places_of = places_of
        self._own = {disk.name: disk.at for disk in rig.disk}
        self._moved: dict[str, str] = {}

    @property
    def able(self) -> bool:
        """Whether there is a person at this bench."""
        return any(switch.driver == HUMAN for switch in self._rig.switch)

    def move(self, sockets: Mapping[str, str]) -> dict[str, str]:
        """Have disks plugged into other sockets. Returns the place of each then. Raises RigError."""
        for disk, socket in sockets.items():
            self._person.do(f"{disk}: PLUG it into {socket}", PATIENCE)
            self._moved[disk] = socket
        every = self._places_of(with_disks_at(self._rig, self._moved))
        places = {disk: every[disk] for disk in sockets}
        self._table.move(places)
        self._moved = {disk: socket for disk, socket in self._moved.items() if socket != self._own[disk]}
        return places

    def put_back(self) -> None:
        """Have the disks that were left in other sockets plugged into their own. Never raises."""
        for disk in tuple(self._moved):
            with suppress(RigError):  # nobody is there: the next run reports a disk that is not at its place
                self.move({disk: self._own[disk]})
