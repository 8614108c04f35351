"""Disks and hubs as scenarios name them, with their cut points."""

from __future__ import annotations

from dataclasses import dataclass

from plugpull.errors import NotServed
from plugpull.rig.model import Disk, Hub
from plugpull.rig.topology import CutPoint, Topology


@dataclass(frozen=True)
class Part:
    """A disk or a hub of the rig. ``str()`` gives its name in the rig file."""

    name: str
    _topology: Topology

    def __str__(self) -> str:
        return self.name

    def _point(self, kind: str) -> CutPoint:
        point = self._topology.cut_points().get(f"{self.name}.{kind}")
        if point is None:
            raise NotServed(
                f"{self.name} has no {kind} that can be cut",
                hint=f'give it a line {kind} = "SWITCH.PORT" in the rig file',
            )
        return point

    @property
    def cable(self) -> CutPoint:
        """Its cable as a cut point. Raises ``NotServed``, which skips the scenario, if the rig file has none for it."""
        return self._point("cable")

    @property
    def power(self) -> CutPoint:
        """Its power as a cut point. Raises ``NotServed``, which skips the scenario, if the rig file has none for it."""
        return self._point("power")

    @property
    def socket(self) -> str:
        """The socket that the rig file declares for it, such as ``hub1.3``."""
        device = self._topology.device(self.name)
        assert isinstance(device, Hub | Disk)
        return device.at

    def has(self, kind: str) -> bool:
        """Whether its ``"cable"`` or ``"power"`` can be cut on this rig."""
        return f"{self.name}.{kind}" in self._topology.cut_points()
