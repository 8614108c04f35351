"""Rules about where devices are plugged in: ports that exist, one plug in each, and hubs below a controller."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.rig.draft import Draft, DraftTable
from plugpull.rig.lint_virtual import controller_ports
from plugpull.rig.mistakes import Mistake, closest, quote
from plugpull.rig.validation_messages import header

DEEPEST_HUBS = 5
"""Hubs in a row between the root hub and a device (USB 2.0, 4.1.1: seven tiers with host and device)."""


def sockets(draft: Draft) -> Iterator[Mistake]:
    """Hubs, disks and the control cables of switches are plugged into ports that exist, and each into its own."""
    taken: dict[tuple[str, int, int], tuple[DraftTable, str]] = {}
    for entry in (*draft.of("hub", "disk"), *draft.of("switch")):
        key = "control" if entry.kind == "switch" else "at"
        socket = entry.split(key)
        if socket is None or socket[0] == "dut":
            continue
        holder, port = socket[0], int(socket[1])
        problem = _socket_problem(draft, entry, key, holder, socket[1])
        if problem is not None:
            yield problem
        # Only disks are logical units of one device; whatever else is in the socket takes all of it.
        unit = int(entry.get("lun") or 0) if entry.kind == "disk" else -1
        used = [one for one in taken if one[:2] == (holder, port) and (unit == one[2] or -1 in (unit, one[2]))]
        if problem is None and used:
            first = where(draft, *taken[used[0]])
            yield draft.mistake(entry, key, f"port {port} of {quote(holder)} is already used by {first}")
        taken.setdefault((holder, port, unit), (entry, key))


def _socket_problem(draft: Draft, entry: DraftTable, key: str, holder: str, port: str) -> Mistake | None:
    known = draft.named("controller", "hub")
    if holder not in known:
        other = draft.named("disk", "switch").get(holder)
        if other is not None:
            what = f"{quote(holder)} is a {other.kind}: devices are plugged into a hub or a controller"
            return draft.mistake(entry, key, what)
        if not {"controller", "hub"} <= draft.whole:
            return None  # it may be the table whose name is invalid
        near = closest(holder, known)
        what = f"there is no hub or controller named {quote(holder)}"
        return draft.mistake(entry, key, what, f"{near}.{port}" if near else "")
    owner = known[holder]
    count = controller_ports(draft, owner) if owner.kind == "controller" else owner.get("ports")
    problem = port_problem(owner, port, count)
    return problem and draft.mistake(entry, key, problem[0], f"{holder}.{problem[1]}" if problem[1] else "")


def port_problem(owner: DraftTable, port: str, count: int | None, first: int = 1) -> tuple[str, str] | None:
    """The mistake in a port's number, and the number that was probably meant. None if there is no mistake.

    Ports count from ``first``; ``count`` is their number, if known.
    """
    name = quote(str(owner.name))
    if not port.isdecimal():
        return f"the ports of {name} are numbers, not {quote(port)}", ""
    if port != str(int(port)):
        return f"port numbers are written without leading zeros, not as {quote(port)}", str(int(port))
    if count is not None and not first <= int(port) < first + count:
        ports = f"ports {first} to {first + count - 1}" if count > 1 else f"only port {first}"
        return f"there is no port {port} at {name}: it has {ports}", ""
    return None


def hub_chains(draft: Draft) -> Iterator[Mistake]:
    """Every chain of hubs ends at a controller and is not too long."""
    hubs = draft.named("hub")
    in_known_loop: set[str] = set()
    for name, hub in hubs.items():
        chain = [name]
        above = hub.split("at")
        while above is not None and above[0] in hubs and above[0] not in chain:
            chain.append(above[0])
            above = hubs[above[0]].split("at")
        if above is not None and above[0] == name:
            if name not in in_known_loop:
                loop = " -> ".join((*chain, name))
                yield draft.mistake(hub, "at", f"these hubs are plugged into each other in a loop: {loop}")
            in_known_loop.update(chain)
        elif len(chain) == DEEPEST_HUBS + 1 and not (above is not None and above[0] in chain):
            row = " -> ".join(reversed(chain))
            what = f"this is the {len(chain)}th hub in a row ({row}): USB allows {DEEPEST_HUBS}"
            yield draft.mistake(hub, "at", what)


def units_of_one(one: DraftTable, two: DraftTable) -> bool:
    """Whether two tables are disks that are logical units of one device: in one socket, with different numbers."""
    same = one.kind == two.kind == "disk" and one.split("at") == two.split("at") is not None
    return same and one.get("lun") != two.get("lun")


def units(draft: Draft) -> Iterator[Mistake]:
    """Logical units of one device have its serial number and its protocol, and numbers of their own; those of an
    emulated one are numbered from 0 without a gap."""
    devices: dict[tuple[str, str], list[DraftTable]] = {}
    for disk in draft.of("disk"):
        if (socket := disk.split("at")) is not None:
            devices.setdefault(socket, []).append(disk)
    for first, *others in devices.values():
        for disk in others:
            yield from _unlike(draft, first, disk)
        numbers = {disk.get("lun"): disk for disk in (first, *others) if "lun" not in disk.broken}
        for number, disk in numbers.items():
            if draft.dut_kind == "virtual" and number is not None and number >= len(numbers):
                what = f"the logical units of an emulated device are numbered from 0 without a gap, not {number}"
                yield draft.mistake(disk, "lun", what)


def _unlike(draft: Draft, one: DraftTable, two: DraftTable) -> Iterator[Mistake]:
    for key in ("serial", "protocol"):
        if units_of_one(one, two) and one.get(key) != two.get(key) and key not in one.broken | two.broken:
            what = f"it is a logical unit of the device of {one.name}, which has the {key} {quote(str(one.get(key)))}"
            yield draft.mistake(two, key, what)


def where(draft: Draft, entry: DraftTable, key: str, role: str = "") -> str:
    """The other place of two: "disk1 at line 12", "the cable of disk1 at line 12"."""
    name = entry.name or header(entry.kind)
    return f"{f'the {role} of ' if role else ''}{name} at line {draft.line(entry, key)}"
