"""Which disk or hub a scenario cuts: drawn with the run's seed, taken in turn night by night, or given by name."""

from __future__ import annotations

import ast
import inspect
import random
import textwrap
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from plugpull.dut.agent.checkers import too_small
from plugpull.errors import NotServed, UsageError
from plugpull.rig.model import Rig
from plugpull.rig.topology import CutPoint, Topology

CHOICES = ("choose_victim", "choose_hub")
"""The methods of ``rig`` that choose."""
DAY = 86400


class _Named(Protocol):
    @property
    def name(self) -> str: ...


P = TypeVar("P", bound=_Named)


class Draw:
    """Chooses for one scenario. ``wanted`` is the name of the first thing it chooses, if that is given. Of what is
    ``preferred`` something is chosen wherever there is any.

    With ``turn``, the number of a night, nothing is left to chance: each night it takes the next candidate, so that as
    many nights as there are candidates cover them all. Scenarios begin with different ones, as their names have it.
    """

    def __init__(
        self,
        generator: random.Random,
        scenario: str = "",
        *,
        wanted: str = "",
        turn: int | None = None,
        preferred: Collection[str] = (),
    ) -> None:
        self._random = generator
        self._wanted = wanted
        self._preferred = frozenset(preferred)
        self._next = None if turn is None else turn + zlib.crc32(scenario.encode())

    def choose(self, candidates: Sequence[P]) -> P:
        """One of these. Raises ``IndexError`` if there are none."""
        wanted, self._wanted = self._wanted, ""
        given = next((one for one in candidates if one.name == wanted), None)
        if given is not None:
            return given
        candidates = [one for one in candidates if one.name in self._preferred] or candidates
        if self._next is None:
            return self._random.choice(candidates)
        self._next += 1
        return candidates[(self._next - 1) % len(candidates)]


USB_DRIVERS = {"usb_storage": "usb-storage", "uas": "uas"}
"""The modules that drive the disks of a protocol, which has the name of its driver."""


def disks_driven_by(modules: Iterable[str], rig: Rig) -> tuple[str, ...]:
    """The scratch disks whose driver is among these modules: a run with another build of a driver is to cut what that
    drives."""
    drivers = {USB_DRIVERS[name] for name in modules if name in USB_DRIVERS}
    return tuple(disk.name for disk in rig.disk if disk.scratch and disk.protocol in drivers)


NO_METER = "no meter: this rig has no [[meter]] with scratch disks behind it"
"""Why a study of power is skipped."""


def disks_behind_meters(rig: Rig) -> tuple[str, ...]:
    """The scratch disks behind the rig's power meters, in the order of the rig file."""
    behind = {disk for meter in rig.meter for disk in meter.disks}
    return tuple(disk.name for disk in rig.disk if disk.scratch and disk.name in behind)


def disks_too_small(rig: Rig, fstype: str) -> str:
    """Why no scratch disk of this rig can have such a filesystem, if that is known from their sizes; empty if not."""
    largest = max((disk.size for disk in rig.disk if disk.scratch), default=0)
    why = too_small(fstype, largest)
    return f"no disk of this rig is large enough: {why}" if why and largest else ""


def victims_to_choose(topology: Topology, kind: str) -> tuple[str, ...]:
    """The scratch disks whose ``kind``, ``cable`` or ``power``, can be cut, in the order of the rig file."""
    points = topology.cut_points()
    return tuple(disk.name for disk in topology.rig.disk if disk.scratch and f"{disk.name}.{kind}" in points)


def hubs_to_choose(topology: Topology) -> tuple[str, ...]:
    """The hubs whose cable can be cut and that have disks below them."""
    points = topology.cut_points()
    named = ((hub.name, points.get(f"{hub.name}.cable")) for hub in topology.rig.hub)
    return tuple(name for name, point in named if point is not None and point.victims)


def pairs_to_swap(topology: Topology) -> dict[str, tuple[str, ...]]:
    """For each disk whose cable can be cut, the others of its controller that can be plugged in where it is: those of
    the same protocol, for an emulated hub does not carry UAS."""
    disks = {disk.name: disk for disk in topology.rig.disk}
    alone = [
        name for name in victims_to_choose(topology, "cable") if topology.cut_point(f"{name}.cable").victims == (name,)
    ]
    pairs = {
        name: tuple(
            other
            for other in alone
            if other != name
            and disks[other].protocol == disks[name].protocol
            and topology.path_of(other).controller == topology.path_of(name).controller
        )
        for name in alone
    }
    return {name: others for name, others in pairs.items() if others}


def tops_to_cut(topology: Topology) -> tuple[CutPoint, ...]:
    """The fewest cables that together take every scratch disk away: the top of each branch that can be cut.

    Raises NotServed if no cable can be cut.
    """
    known = topology.cut_points()
    names = [hub.name for hub in topology.rig.hub] + [disk.name for disk in topology.rig.disk if disk.scratch]
    points = [known[cable] for name in names if (cable := f"{name}.cable") in known]
    points.sort(key=lambda point: -len(point.victims))
    chosen: list[CutPoint] = []
    taken: set[str] = set()
    for point in points:
        if not set(point.victims) <= taken:
            chosen.append(point)
            taken |= set(point.victims)
    if not chosen:
        raise NotServed("no cable of this rig can be cut", hint="give a disk or a hub a cable in the rig file")
    return tuple(chosen)


def candidates_of(scenario: Callable[..., Any], rig: Rig) -> tuple[str, ...]:
    """The candidates of the first choice in a scenario's source on this rig; none if it does not choose."""
    call = next(_choices(scenario), None)
    if call is None:
        return ()
    topology = Topology(rig)
    if call.func.attr == "choose_hub":  # type: ignore[attr-defined]
        return hubs_to_choose(topology)
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "kind")]
    kind = given[0].value if given and isinstance(given[0], ast.Constant) else "cable"
    return victims_to_choose(topology, str(kind))


def _choices(scenario: Callable[..., Any]) -> Iterator[ast.Call]:
    """The calls in a scenario's source that choose, in their order."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(scenario)))
    except (OSError, TypeError, SyntaxError):
        return
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    yield from (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in CHOICES)


def night(text: str) -> int:
    """The number of a night: as it is given, or of ``today``, days since 1970 in UTC. Raises ``UsageError``."""
    if text == "today":
        return int(time.time() // DAY)
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a night", hint="--rotate takes a number, or the word today") from None
