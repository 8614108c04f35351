"""Mistakes in a rig file that take two tables to see.

Each rule is a function from the draft of a rig file to mistakes; ``RULES`` lists them. A rule stays silent about what
it cannot know because another table is broken: that table has its own mistake already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plugpull.rig import lint_virtual
from plugpull.rig.draft import Draft, Entry
from plugpull.rig.lint_virtual import VIRTUAL_DRIVER, controller_ports
from plugpull.rig.mistakes import Mistake, closest, quote
from plugpull.rig.quantities import QuantityError, parse_size
from plugpull.rig.wording import header

DEEPEST_HUBS = 5
"""Hubs in a row between the root hub and a device (USB 2.0, 4.1.1: seven tiers with host and device)."""
SECTOR = 512
"""Bytes; the kernel counts every disk's size in these, whatever the disk's own sector size is."""

_RESERVED = {"dut": "it is the device under test itself"}


def lint(draft: Draft) -> Iterator[Mistake]:
    """All mistakes that the rules see."""
    for rule in RULES:
        yield from rule(draft)


def unique_names(draft: Draft) -> Iterator[Mistake]:
    """Switches, controllers, hubs and disks share one space of names, because cut points and sockets do."""
    seen: dict[str, Entry] = {}
    for entry in draft.of("switch", "controller", "hub", "disk"):
        if entry.name is None:
            continue
        if entry.name in _RESERVED:
            yield draft.mistake(entry, "name", f"{quote(entry.name)} cannot be a name: {_RESERVED[entry.name]}")
        elif entry.name in seen:
            first = seen[entry.name]
            already = f"already used by {header(first.kind)} at line {draft.line(first, 'name')}"
            yield draft.mistake(entry, "name", f"the name {quote(entry.name)} is {already}")
        seen.setdefault(entry.name, entry)


def unique_serials(draft: Draft) -> Iterator[Mistake]:
    seen: dict[str, Entry] = {}
    for disk in draft.of("disk"):
        serial = disk.get("serial")
        if serial is None:
            continue
        if not serial.isprintable():
            yield draft.mistake(disk, "serial", "a serial number has printable characters only")
        if serial in seen:
            where = _where(draft, seen[serial], "serial")
            yield draft.mistake(disk, "serial", f"the serial number {quote(serial)} is already used by {where}")
        seen.setdefault(serial, disk)


def has_disks(draft: Draft) -> Iterator[Mistake]:
    if "disk" in draft.whole and not any(draft.of("disk")):
        place = draft.source.key(("rig",))
        yield Mistake(
            draft.source.path, place.line, place.column, "this rig has no disks: declare at least one [[disk]]"
        )


def whole_sectors(draft: Draft) -> Iterator[Mistake]:
    for disk in draft.of("disk"):
        try:
            size = parse_size(disk.get("size"))
        except QuantityError:  # has its own mistake
            continue
        if size % SECTOR:
            yield draft.mistake(disk, "size", f"a disk's size is a multiple of {SECTOR} bytes, and {size} is not")


def sockets(draft: Draft) -> Iterator[Mistake]:
    """Hubs and disks are plugged into ports that exist, and each into its own."""
    taken: dict[tuple[str, int], Entry] = {}
    for entry in draft.of("hub", "disk"):
        socket = entry.split("at")
        if socket is None:
            continue
        holder, port = socket[0], int(socket[1])
        problem = _socket_problem(draft, entry, holder, socket[1])
        if problem is not None:
            yield problem
        elif (holder, port) in taken:
            where = _where(draft, taken[holder, port], "at")
            yield draft.mistake(entry, "at", f"port {port} of {quote(holder)} is already used by {where}")
        taken.setdefault((holder, port), entry)


def _socket_problem(draft: Draft, entry: Entry, holder: str, port: str) -> Mistake | None:
    known = draft.named("controller", "hub")
    if holder not in known:
        other = draft.named("disk", "switch").get(holder)
        if other is not None:
            what = f"{quote(holder)} is a {other.kind}: what is plugged in hangs at a hub or a controller"
            return draft.mistake(entry, "at", what)
        if not {"controller", "hub"} <= draft.whole:
            return None  # it may be the one whose name could not be read
        near = closest(holder, known)
        what = f"there is no hub or controller named {quote(holder)}"
        return draft.mistake(entry, "at", what, f"{near}.{port}" if near else "")
    return _port_problem(draft, entry, "at", known[holder], port)


def _port_problem(draft: Draft, entry: Entry, key: str, owner: Entry, port: str) -> Mistake | None:
    """Ports of everything on the bench count from 1 to ``ports``."""
    if not port.isdecimal():
        return draft.mistake(entry, key, f"the ports of {quote(str(owner.name))} are numbers, not {quote(port)}")
    if port != str(int(port)):
        hint = f"{owner.name}.{int(port)}"
        return draft.mistake(entry, key, f"port numbers are written without leading zeros, not as {quote(port)}", hint)
    count = controller_ports(draft, owner) if owner.kind == "controller" else owner.get("ports")
    if count is not None and not 1 <= int(port) <= count:
        ports = f"ports 1 to {count}" if count > 1 else "only port 1"
        return draft.mistake(entry, key, f"there is no port {port} at {quote(str(owner.name))}: it has {ports}")
    return None


def hub_chains(draft: Draft) -> Iterator[Mistake]:
    """Hubs hang off controllers in the end, and not too many of them in a row."""
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
                yield draft.mistake(hub, "at", f"these hubs hang off each other in a loop: {loop}")
            in_known_loop.update(chain)
        elif len(chain) == DEEPEST_HUBS + 1 and not (above is not None and above[0] in chain):
            row = " -> ".join(reversed(chain))
            what = f"this is the {len(chain)}th hub in a row ({row}): USB allows {DEEPEST_HUBS}"
            yield draft.mistake(hub, "at", what)


def outlets(draft: Draft) -> Iterator[Mistake]:
    """Cables and power leads go through switch ports that exist, each through its own."""
    taken: dict[tuple[str, str], tuple[Entry, str]] = {}
    for entry in draft.of("dut", "hub", "disk"):
        for key in ("cable", "power"):
            outlet = entry.split(key) if key in entry.values else None
            if outlet is None:
                continue
            problem = _outlet_problem(draft, entry, key, outlet)
            if problem is not None:
                yield problem
            elif outlet in taken:
                first, first_key = taken[outlet]
                used = f"already used by {_where(draft, first, first_key, first_key)}"
                yield draft.mistake(entry, key, f"port {outlet[1]} of switch {quote(outlet[0])} is {used}")
            taken.setdefault(outlet, (entry, key))


def _outlet_problem(draft: Draft, entry: Entry, key: str, outlet: tuple[str, str]) -> Mistake | None:
    switches = draft.named("switch")
    name, port = outlet
    if name not in switches:
        if "switch" not in draft.whole:
            return None
        near = closest(name, switches)
        return draft.mistake(entry, key, f"there is no switch named {quote(name)}", f"{near}.{port}" if near else "")
    mechanism = switches[name].get("mechanism")
    if (key, mechanism) in (("cable", "mains"), ("power", "data")):
        lead = "a data cable" if key == "cable" else "a power lead"
        return draft.mistake(entry, key, f"the switch {quote(name)} interrupts {mechanism}, which cannot cut {lead}")
    return _port_problem(draft, entry, key, switches[name], port)


def dut_fits(draft: Draft) -> Iterator[Mistake]:
    """What a rig needs depends on whether its DUT is virtual or real."""
    kind = draft.dut_kind
    if kind is None:
        return
    if kind == "virtual":
        yield from lint_virtual.lint(draft)
        return
    for controller in draft.of("controller"):
        if "path" not in controller.values and "path" not in controller.broken:
            what = f'{controller.label} has no "path": its PCI address, such as "0000:00:14.0"'
            yield draft.mistake(controller, "path", what)
    for switch in draft.of("switch"):
        if switch.get("driver") == VIRTUAL_DRIVER:
            what = f'the driver "{VIRTUAL_DRIVER}" only works when the DUT is virtual, and this one is {kind}'
            yield draft.mistake(switch, "driver", what)
    for defect in draft.of("defect"):
        place = draft.source.key(defect.path)
        what = f"only a virtual bench can have defects on purpose, and this DUT is {kind}"
        yield Mistake(draft.source.path, place.line, place.column, what)


def defect_disks(draft: Draft) -> Iterator[Mistake]:
    known = draft.named("disk")
    for defect in draft.of("defect"):
        disk = defect.get("disk")
        if disk is not None and disk not in known and "disk" in draft.whole:
            what = f"there is no disk named {quote(disk)}"
            yield draft.mistake(defect, "disk", what, closest(disk, known))


def _where(draft: Draft, entry: Entry, key: str, role: str = "") -> str:
    """The other place of two: "disk1 at line 12", "the cable of disk1 at line 12"."""
    name = entry.name or header(entry.kind)
    return f"{f'the {role} of ' if role else ''}{name} at line {draft.line(entry, key)}"


RULES: tuple[Callable[[Draft], Iterator[Mistake]], ...] = (
    unique_names,
    unique_serials,
    has_disks,
    whole_sectors,
    sockets,
    hub_chains,
    outlets,
    dut_fits,
    defect_disks,
)
