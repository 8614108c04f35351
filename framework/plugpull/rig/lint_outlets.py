"""Rules about the switch ports that cables and power leads go through."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.rig.draft import Draft, DraftTable
from plugpull.rig.drivers import first_port
from plugpull.rig.lint_places import port_problem, units_of_one, where
from plugpull.rig.mistakes import Mistake, closest, quote

Lead = tuple[DraftTable, str]
"""A device and its ``cable`` or ``power`` key, which names an outlet."""


def outlets(draft: Draft) -> Iterator[Mistake]:
    """Cables and power leads go through switch ports that exist. Two of them use one port only if it is declared as
    shared."""
    taken: dict[str, Lead] = {}
    for entry, key, outlet in _leads(draft):
        problem = _outlet_problem(draft, entry, key, *outlet)
        if problem is not None:
            yield problem
            continue
        name, port = outlet
        switch = draft.named("switch").get(name)
        first = taken.setdefault(".".join(outlet), (entry, key))
        if (
            first == (entry, key)
            or switch is None
            or units_of_one(first[0], entry)
            or "shared" in switch.broken
            or port in switch.get("shared")
        ):
            continue
        used = f"already used by {where(draft, *first, first[1])}"
        meant = f'if it feeds both, write shared = ["{port}"] in that [[switch]]'
        yield draft.mistake(entry, key, f"port {port} of switch {quote(name)} is {used}: {meant}")


def _leads(draft: Draft) -> Iterator[tuple[DraftTable, str, tuple[str, str]]]:
    """Every cable and power lead that goes through a switch, in the order of the file: device, key and outlet."""
    for entry in draft.of("dut", "hub", "disk"):
        for key in ("cable", "power"):
            outlet = entry.split(key) if key in entry.values else None
            if outlet is not None:
                yield entry, key, outlet


def _outlet_problem(draft: Draft, entry: DraftTable, key: str, name: str, port: str) -> Mistake | None:
    switches = draft.named("switch")
    if name not in switches:
        if "switch" not in draft.whole:
            return None
        near = closest(name, switches)
        return draft.mistake(entry, key, f"there is no switch named {quote(name)}", f"{near}.{port}" if near else "")
    mechanism = switches[name].get("mechanism")
    if (key, mechanism) in (("cable", "mains"), ("power", "data")):
        lead = "a data cable" if key == "cable" else "a power lead"
        return draft.mistake(entry, key, f"the switch {quote(name)} interrupts {mechanism}, which cannot cut {lead}")
    problem = _no_such_port(draft, switches[name], port)
    return problem and draft.mistake(entry, key, problem[0], f"{name}.{problem[1]}" if problem[1] else "")


def _no_such_port(draft: Draft, switch: DraftTable, port: str) -> tuple[str, str] | None:
    driver = draft.driver(switch)
    first = None if driver is None else first_port(driver.port_names)
    return None if first is None else port_problem(switch, port, switch.get("ports"), first)


def shared(draft: Draft) -> Iterator[Mistake]:
    """A port that is declared as shared exists and feeds more than one device."""
    users: dict[tuple[str, str], list[Lead]] = {}
    for entry, key, outlet in _leads(draft):
        users.setdefault(outlet, []).append((entry, key))
    for switch in draft.of("switch"):
        ports = switch.get("shared") or ()
        for number, port in enumerate(ports):
            problem = _no_such_port(draft, switch, port)
            if problem is not None:
                yield draft.mistake(switch, "shared", *problem, element=number)
            elif port in ports[:number]:
                yield draft.mistake(switch, "shared", f"port {port} is given twice", element=number)
            elif _complete(draft):
                using = users.get((str(switch.name), port), [])
                if len(using) < 2:
                    only = f"only {where(draft, *using[0], using[0][1])} uses it" if using else "nothing uses it"
                    what = f"port {port} of switch {quote(str(switch.name))} is not shared: {only}"
                    yield draft.mistake(switch, "shared", what, element=number)


def _complete(draft: Draft) -> bool:
    """Whether every lead of the rig is known."""
    known = any(draft.of("dut")) and {"hub", "disk"} <= draft.whole
    return known and not any(entry.broken & {"cable", "power"} for entry in draft.of("dut", "hub", "disk"))


def named_ports(draft: Draft) -> Iterator[Mistake]:
    """No more ports of a switch are used than it has, even if they have names."""
    for switch in draft.of("switch"):
        driver, count = draft.driver(switch), switch.get("ports")
        if driver is None or first_port(driver.port_names) is not None or count is None:
            continue
        used = dict.fromkeys(outlet[1] for _, _, outlet in _leads(draft) if outlet[0] == switch.name)
        if len(used) > count:
            what = f"{len(used)} ports of {quote(str(switch.name))} are used ({', '.join(used)}): it has {count}"
            yield draft.mistake(switch, "ports", what)


def cuts_itself_off(draft: Draft) -> Iterator[Mistake]:
    """A switch does not cut its own control path: it could never turn anything on again."""
    for switch in draft.of("switch"):
        for entry, key, (name, port) in _leads(draft):
            if name != switch.name or (way := _on_the_way(draft, switch, entry)) is None:
                continue
            cut = where(draft, entry, key, key)
            what = f"{way}, and its own port {port} cuts {cut}: it could never turn it on again"
            yield draft.mistake(switch, "control" if switch.get("control") else "via", what)


def _on_the_way(draft: Draft, switch: DraftTable, cut: DraftTable) -> str | None:
    """How a switch is reached through ``cut``, as the beginning of a sentence. None if it is not."""
    socket = switch.get("control")
    if socket is None or socket == "dut":
        through_dut = socket == "dut" or switch.get("via") == "dut"
        return f"the switch {quote(str(switch.name))} is reached through the DUT" if through_dut and _dut(cut) else None
    name = socket.partition(".")[0]
    above = _upwards(draft, name)
    if _dut(cut) or (cut.kind == "hub" and cut.name in above):
        return f"the control cable of {quote(str(switch.name))} is plugged into {quote(name)}"
    return None


def _dut(entry: DraftTable) -> bool:
    return entry.kind == "dut"


def _upwards(draft: Draft, name: str) -> tuple[str, ...]:
    """This hub and those above it, up to the controller or to the first mistake."""
    hubs = draft.named("hub")
    chain: list[str] = []
    while name in hubs and name not in chain:
        chain.append(name)
        above = hubs[name].split("at")
        name = above[0] if above else ""
    return tuple(chain)
