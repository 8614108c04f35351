"""What must hold before a nightly run: the rig file is right, there is room, nothing is left off, the switches answer,
and the declared disks are there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plugpull.errors import PlugpullError

if TYPE_CHECKING:
    from plugpull.rig.model import Rig

Look = Callable[["Rig", Path], Iterable[str]]
"""Looks at a real bench, and returns what is wrong. Raises PlugpullError if it cannot be reached."""
_NOT_RESTORED = re.compile(r"power could not be restored: ([^.]+)\.")


@dataclass(frozen=True)
class Preflight:
    """A rig before its run. ``rig`` is ``None`` if its file is wrong; without ``troubles`` it can be run."""

    file: Path
    name: str
    rig: Rig | None
    troubles: tuple[str, ...] = ()


def preflight(file: Path, archive: Path, room: int, look: Look | None = None) -> Preflight:
    """Check one rig. ``room`` is the number of bytes that must be free in the archive."""
    from plugpull.rig.load import load_rig

    try:
        rig = load_rig(file)
    except PlugpullError as error:
        return Preflight(file, file.stem, None, (error.what,))
    # The ports of a place of labgrid are restored when it is held.
    troubles = [*_room(archive, room), *(_left_off(rig) if rig.labgrid is None else ())]
    if rig.dut.kind != "virtual":
        try:
            troubles += (look or seen_on_bench)(rig, file)
        except PlugpullError as error:
            troubles.append(error.what)
    return Preflight(file, rig.rig.name, rig, tuple(troubles))


def _room(archive: Path, room: int) -> Iterator[str]:
    free = shutil.disk_usage(archive).free
    if free < room:
        yield f"only {free / 1e9:.1f} GB are free in {archive}, and {room / 1e9:.1f} GB are wanted"


def _left_off(rig: Rig) -> Iterator[str]:
    """Restore what killed runs left off, and name the ports of this rig that stay off."""
    from plugpull.cache import Cache
    from plugpull.left_off import restore_what_was_left_off

    said: list[str] = []
    try:
        held = {"place": rig.labgrid.place} if rig.labgrid is not None else {}
        restore_what_was_left_off(Cache.default(), said.append, **held)
    except PlugpullError as error:
        said.append(error.what)
        yield error.what
    mine = {declared.name for declared in rig.switch}
    yield from (text for text in said if (found := _NOT_RESTORED.match(text)) and found[1] in mine)


def seen_on_bench(rig: Rig, file: Path) -> Iterator[str]:
    """What is wrong on a real bench: a port that is off, a disk that is missing or is another one."""
    from plugpull.coordination.place import place_and_lease
    from plugpull.dut.conversation.hello import ANSWER
    from plugpull.dut.real.bench import places_of
    from plugpull.dut.real.opened_switches import connected_agent, opened_switches
    from plugpull.rig.topology import Topology
    from plugpull.switches.person import TerminalPerson

    with ExitStack() as held:
        held.enter_context(place_and_lease(rig, file))
        if rig.labgrid is not None:
            yield from _left_off(rig)
        link = held.enter_context(connected_agent(rig))
        switches = held.enter_context(opened_switches(rig, file.parent, TerminalPerson(), link))
        for name, point in Topology(rig).cut_points().items():
            if switches.switch(point.switch).read(point.port) is False:
                yield f"{name} is off (port {point.port} of the switch {point.switch})"
        yield from wrong_disks(rig, places_of(rig), link.call("disks", ANSWER))


def wrong_disks(rig: Rig, places: Mapping[str, str], found: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The declared disks that are not where they should be, or are other ones."""
    by_place = {str(disk.get("place")): disk for disk in found}
    for declared in rig.disk:
        disk = by_place.get(places[declared.name])
        if disk is None:
            yield f"{declared.name} is not there: nothing at {places[declared.name]}"
        elif (disk.get("serial"), disk.get("size")) != (declared.serial, declared.size):
            yield (
                f"{declared.name} is another disk: serial number {disk.get('serial')!r} and {disk.get('size')} bytes, "
                f"and not {declared.serial!r} and {declared.size} bytes"
            )
