"""``plugpull switch``: the switches of a bench in a person's hands."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plugpull.commands.base import add_command
from plugpull.errors import EXIT_PASS, UsageError

if TYPE_CHECKING:
    from plugpull.commands.base import Commands
    from plugpull.dut.hands import Hands
    from plugpull.rig.model import Rig
    from plugpull.switches.base import Acknowledged, Switch

EPILOG = """\
examples:
  plugpull switch list                                what is attached that can switch something
  plugpull switch off disk1.cable --rig desk.toml     what cuts disk1's cable
  plugpull switch cycle relay.3 --rig shelf.toml      port 3 of the switch named relay, off and on again
  plugpull switch status 1 2 3 --driver ykush --option serial=YK12345 --ports 3
  plugpull switch qualify disk1.cable --rig desk.toml --ask

exit status:
  0  done, and read back
  1  qualify: the port does not do what it claims
  2  wrong usage: nothing was switched
  3  the switch did not do what it was told, or could not be reached; qualify: something was not measured"""
PORTS = "a port as SWITCH.PORT, a cut point such as disk1.cable, or with --driver just the port"


def add(commands: Commands) -> None:
    """Its parser, with one for each action."""
    parser = add_command(
        commands,
        "switch",
        help="find, use and qualify the switches of a real bench",
        description="Find, use and qualify the switches of a real bench.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_list(actions)
    for name, text in (
        ("on", "turn ports on"),
        ("off", "turn ports off"),
        ("cycle", "turn ports off, wait, and turn them on"),
        ("status", "ask ports for their state"),
    ):
        action = add_command(actions, name, help=text, description=f"{text.capitalize()}. Every edge is read back.")
        action.add_argument("port", nargs="+", metavar="PORT", help=PORTS)
        _add_where(action)
        if name == "cycle":
            action.add_argument(
                "--off", metavar="SECONDS", type=float, default=2.0, help="how long to stay off (default: 2)"
            )
        action.set_defaults(action=_act, do=name)
    _add_qualify(actions)


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rig", metavar="FILE", type=Path, help="the rig file that declares the switch")
    parser.add_argument("--driver", metavar="KIND", help="instead of a rig file: the kind of switch")
    parser.add_argument(
        "--option", metavar="KEY=VALUE", action="append", default=[], help="with --driver: a key of its own; repeatable"
    )
    parser.add_argument("--ports", metavar="N", type=int, default=8, help="with --driver: how many ports (default: 8)")


def _add_list(actions: Commands) -> None:
    parser = add_command(
        actions,
        "list",
        help="find the switches attached to this machine",
        description="Find the switches attached to this machine, and print a [[switch]] table for each, ready to paste "
        "into a rig file, and the udev rules that let you use them without root.",
    )
    parser.add_argument("--rig", metavar="FILE", type=Path, help="look on the DUT of this rig instead")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each")
    parser.set_defaults(action=_list)


def _add_qualify(actions: Commands) -> None:
    parser = add_command(
        actions,
        "qualify",
        help="find out whether a port cuts what it claims",
        description="Turn a port off and on and watch what happens: does the disk behind it go and come back, does "
        "anything else go with it, is the read-back true, does power come back by itself, how long does each edge "
        "take? "
        "The result is a file that a rig file can cite; a rig that cites a failed one is refused. What is behind the "
        "port is switched off under no load, but it is switched off: unmount it first.",
    )
    parser.add_argument("port", metavar="POINT", help="a cut point of the rig, such as disk1.cable")
    parser.add_argument("--rig", metavar="FILE", type=Path, required=True, help="the rig file")
    parser.add_argument("-n", metavar="CYCLES", dest="cycles", type=int, default=10, help="how often (default: 10)")
    parser.add_argument(
        "--hold", metavar="SECONDS", type=float, default=30.0, help="how long to leave it off at the end (default: 30)"
    )
    parser.add_argument("--ask", action="store_true", help="ask you whether the device still has power")
    parser.add_argument("--vbus-command", metavar="COMMAND", help="a shell command that prints the volts of VBUS")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="where the result goes (default: qualified-POINT.json)"
    )
    parser.set_defaults(action=_qualify)


# --- list -----------------------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> int:
    from plugpull.switches.find import find_all, tables
    from plugpull.switches.host_local import LocalHost

    if arguments.rig is None:
        listing = find_all(LocalHost())
    else:
        from plugpull.dut.dut_host import DutHost
        from plugpull.dut.hands import connected
        from plugpull.rig.load import load_rig

        with connected(load_rig(arguments.rig)) as link:
            listing = find_all(DutHost(link))
    for why in listing.failed:
        print(f"plugpull: cannot look for {why}", file=sys.stderr)
    if arguments.json:
        for found in listing.found:
            print(json.dumps({**vars(found), "mechanism": found.mechanism.value}))
        return EXIT_PASS
    if not listing.found:
        print(f"no switch found; looked for {', '.join(listing.looked)}")
        return EXIT_PASS
    for found, table in zip(listing.found, tables(listing.found), strict=True):
        note = f"; {found.note}" if found.note else ""
        print(f"# {found.model or found.kind} {found.serial} at {found.place}{note}\n{table}\n")
    rules = list(dict.fromkeys(found.udev for found in listing.found if found.udev))
    if rules:
        print("# /etc/udev/rules.d/70-plugpull.rules, to use them without root (then: udevadm control --reload)")
        print("\n".join(rules))
    return EXIT_PASS


# --- on, off, cycle, status -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Port:
    """A port that was asked for, by the name it was asked for."""

    asked: str
    switch: str
    port: str


def _act(arguments: argparse.Namespace) -> int:
    with _bench(arguments) as (rig, hands):
        wanted = [_port_of(rig, text, bare=arguments.rig is None) for text in arguments.port]
        by_switch: dict[str, list[_Port]] = {}
        for port in wanted:
            by_switch.setdefault(port.switch, []).append(port)
        if arguments.do in ("off", "cycle"):
            _edge(hands, by_switch, False)
        if arguments.do == "cycle":
            try:
                time.sleep(arguments.off)  # the length that was asked for: there is no event to wait for
            finally:
                _edge(hands, by_switch, True)
        if arguments.do == "on":
            _edge(hands, by_switch, True)
        if arguments.do == "status":
            for name, ports in by_switch.items():
                switch = hands.switch(name)
                for port in ports:
                    print(f"{port.asked}: {_state(switch, port.port)} ({switch.mechanism.value})")
    return EXIT_PASS


@contextmanager
def _bench(arguments: argparse.Namespace) -> Iterator[tuple[Rig, Hands]]:
    from plugpull.dut.hands import hands
    from plugpull.rig.lease import Lease
    from plugpull.rig.load import load_rig, parse_rig
    from plugpull.switches.person import TerminalPerson

    if (arguments.rig is None) == (arguments.driver is None):
        raise UsageError("say which switch: --rig FILE, or --driver KIND with its --option KEY=VALUE")
    if arguments.rig is not None:
        rig = load_rig(arguments.rig)
        if rig.dut.kind == "virtual":
            raise UsageError(
                f"the switches of {arguments.rig} are QEMU's: they are there only while a run has them",
                mend="use a rig file of a real bench",
            )
        with Lease(rig, arguments.rig), hands(rig, arguments.rig.parent, TerminalPerson()) as found:
            yield rig, found
        return
    rig = parse_rig(_text_of(arguments), Path("--driver"))
    with hands(rig, Path(), TerminalPerson()) as found:
        yield rig, found


def _text_of(arguments: argparse.Namespace) -> str:
    """A rig file with nothing but the switch, so that its keys are checked as in any."""
    from plugpull.switches.kinds import kind_named

    kind = kind_named(arguments.driver)
    lines = ["[[switch]]", 'name = "it"', f"driver = {json.dumps(kind.name)}", f"ports = {arguments.ports}"]
    lines.append(f'mechanism = "{sorted(kind.mechanisms)[0].value}"')
    for option in arguments.option:
        key, equals, value = option.partition("=")
        if not equals:
            raise UsageError(f"--option {option}: write KEY=VALUE")
        lines.append(f"{key} = {_literal(value)}")
    disk = (
        '[[controller]]\nname = "c"\npath = "0000:00:00.0"\n[[disk]]\nname = "d"\nat = "c.1"\nserial = "-"\nsize = 512'
    )
    return "\n".join(['[rig]\nname = "it-alone"\n[dut]\nkind = "local"', *lines, disk, ""])


def _literal(value: str) -> str:
    """A value of the command line as TOML: numbers and booleans as such, everything else as text."""
    if value in ("true", "false") or value.isdecimal():
        return value
    return json.dumps(value)


def _port_of(rig: Rig, text: str, *, bare: bool) -> _Port:
    from plugpull.rig.topology import Topology

    if bare:
        return _Port(text, "it", text)
    points = Topology(rig).cut_points()
    if text in points:
        return _Port(text, points[text].switch, points[text].port)
    switch, dot, port = text.partition(".")
    if dot and any(declared.name == switch for declared in rig.switch):
        return _Port(text, switch, port)
    known = ", ".join([*points, *(f"{declared.name}.PORT" for declared in rig.switch)])
    raise UsageError(f"rig {rig.rig.name} has no port or cut point {text!r}", mend=f"it has {known}")


def _edge(hands: Hands, by_switch: dict[str, list[_Port]], on: bool) -> None:
    for name, ports in by_switch.items():
        switch = hands.switch(name)
        edges = {edge.port: edge for edge in switch.set_many([port.port for port in ports], on)}
        for port in ports:
            print(_told(switch, port, on, edges[port.port]))


def _told(switch: Switch, port: _Port, on: bool, edge: Acknowledged) -> str:
    took = 1000 * (edge.acknowledged - edge.commanded)
    word = "on" if on else "off"
    read = _state(switch, port.port)
    said = f"reads {read}" if switch.capabilities.read_back else "no read-back"
    return f"{port.asked}: {word} ({switch.mechanism.value}), acknowledged after {took:.1f} ms, {said}"


def _state(switch: Switch, port: str) -> str:
    return {True: "on", False: "off", None: "not known: it has no read-back"}[switch.read(port)]


# --- qualify --------------------------------------------------------------------------------------------------


def _qualify(arguments: argparse.Namespace) -> int:
    from plugpull.dut.qualifying import Plan, qualify
    from plugpull.rig.load import load_rig
    from plugpull.switches.person import TerminalPerson

    if arguments.cycles < 1:
        raise UsageError("-n takes a number of cycles from 1 on")
    plan: Any = Plan(
        rig=load_rig(arguments.rig),
        file=arguments.rig,
        point=arguments.port,
        cycles=arguments.cycles,
        hold=arguments.hold,
        ask=arguments.ask,
        vbus_command=arguments.vbus_command,
    )
    out = arguments.out or Path(f"qualified-{arguments.port}.json")
    return qualify(plan, TerminalPerson(), out, lambda text: print(text, flush=True))
