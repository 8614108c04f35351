"""``plugpull switch on|off|cycle|status``: switching ports by hand."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.base import add_command
from plugpull.commands.options import option_lines
from plugpull.errors import PlugpullError, RigError, UsageError
from plugpull.exit_status import EXIT_PASS
from plugpull.plain import clean

if TYPE_CHECKING:
    from plugpull.commands.base import Commands
    from plugpull.coordination.journal import Journal
    from plugpull.dut.real.opened_switches import OpenedSwitches
    from plugpull.rig.model import DeclaredSwitch, Rig
    from plugpull.switches.base import Acknowledged
    from plugpull.switches.kinds import Kind

PORTS = "a port as SWITCH.PORT, a cut point such as disk1.cable, or with --driver just the port"
ALONE = "it"
"""The name of a switch that no rig file declares."""

_EXAMPLES = {
    "on": """\
  plugpull switch on disk1.cable disk2.cable --rig desk.toml
  plugpull switch on 1 2 3 --driver ykush --option serial=YK12345""",
    "off": """\
  plugpull switch off disk1.cable --rig desk.toml     what cuts disk1's cable
  plugpull switch off relay.3 --rig shelf.toml        port 3 of the switch named relay
  plugpull switch off 0 --driver numato --option device=/dev/serial/by-id/usb-Numato_... --ports 4""",
    "cycle": """\
  plugpull switch cycle disk1.power --rig shelf.toml
  plugpull switch cycle relay.1 relay.2 --off 30 --rig shelf.toml""",
    "status": """\
  plugpull switch status relay.1 relay.2 --rig shelf.toml
  plugpull switch status 1 --driver uhubctl --option location=1-1 --mechanism vbus""",
}
_EXIT = """
exit status:
  0  done{read}
  2  wrong usage: nothing was switched
  3  the switch failed, could not be reached, or is in use by a run"""
_TEXTS = {
    "on": ("turn ports on", "Turn ports on. Each is read back, if the switch can be asked."),
    "off": (
        "turn ports off",
        (
            "Turn ports off, and leave them off. Each is read back, if the switch can be asked. The devices "
            "behind them are unplugged: unmount them first."
        ),
    ),
    "cycle": (
        "turn ports off, wait, and turn them on",
        (
            "Turn ports off, wait, and turn them on. However it ends, Ctrl-C included, power comes back; after a "
            "SIGKILL the next start of plugpull restores it."
        ),
    ),
    "status": ("ask ports for their state", "Ask ports for their state. Changes nothing."),
}


def add(actions: Commands) -> None:
    """Their parsers, among those of ``plugpull switch``."""
    for name, (text, description) in _TEXTS.items():
        status = _EXIT.format(read=", and read back where that can be" if name != "status" else "")
        epilog = f"examples:\n{_EXAMPLES[name]}\n{status}"
        action = add_command(actions, name, help=text, description=description, epilog=epilog)
        action.add_argument("port", nargs="+", metavar="PORT", help=PORTS)
        _add_where(action)
        if name == "cycle":
            action.add_argument(
                "--off", metavar="SECONDS", type=seconds, default=2.0, help="how long to stay off (default: 2)"
            )
        action.set_defaults(action=_act, do=name)


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rig", metavar="FILE", type=Path, help="the rig file that declares the switch")
    parser.add_argument("--driver", metavar="KIND", help="instead of a rig file: the kind of switch")
    parser.add_argument(
        "--option", metavar="KEY=VALUE", action="append", default=[], help="with --driver: a key of its own; repeatable"
    )
    parser.add_argument(
        "--ports", metavar="N", type=int, help="with --driver: how many ports it has (default: enough for those named)"
    )
    parser.add_argument(
        "--mechanism",
        metavar="WHAT",
        help="with --driver: what a port interrupts (data, vbus, data+vbus, mains, logical), if it can be several",
    )


def seconds(text: str) -> float:
    """A number of seconds on the command line, at least 0."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(text)
    return value


@dataclass(frozen=True)
class Port:
    """A port that was asked for, by the name it was asked for."""

    asked: str
    switch: str
    port: str


Wanted = Mapping[str, Sequence[Port]]
"""By the switch's name."""


@dataclass(frozen=True)
class Selection:
    """The ports to switch. ``said``: is it known what they interrupt?"""

    switches: OpenedSwitches
    wanted: Wanted
    said: bool = True


def _act(arguments: argparse.Namespace) -> int:
    if (arguments.rig is None) == (arguments.driver is None):
        raise UsageError("say which switch: --rig FILE, or --driver KIND with its --option KEY=VALUE")
    opening = _of_rig if arguments.rig is not None else _alone
    with opening(arguments) as selection:
        if arguments.do == "status":
            _status(selection)
        elif arguments.do == "on":
            _power(selection)
        elif arguments.do == "off":
            selection.switches.refuse_unsafe(*selection.wanted)
            _off(selection)
        else:
            _cycle(selection, arguments.off)
    return EXIT_PASS


def _cycle(selection: Selection, off: float) -> None:
    from plugpull.interrupts import signals_held

    selection.switches.refuse_unsafe(*selection.wanted)
    with signals_held() as signals:
        try:
            with signals.interruptible():
                _off(selection)
                time.sleep(off)  # the length that the user asked for: there is no event to wait for
        finally:
            _power(selection)


def _off(selection: Selection) -> None:
    """Switch all ports first, then report."""
    done = []
    try:
        for name, ports in selection.wanted.items():
            done.append((ports, selection.switches.switch(name).set_many([port.port for port in ports], False)))
    finally:
        for ports, edges in done:
            _report(selection, ports, False, edges)


def _power(selection: Selection) -> None:
    """Turn all ports on first, then report. If one switch fails, the others are still switched."""
    done = []
    failed: list[PlugpullError] = []
    for name, ports in selection.wanted.items():
        try:
            done.append((ports, selection.switches.power(name, [port.port for port in ports])))
        except PlugpullError as error:
            failed.append(error)
        except Exception as error:  # a driver may raise anything
            failed.append(RigError(f"switch {name}: {error!r}"))
    for ports, edges in done:
        try:
            _report(selection, ports, True, edges)
        except RigError as error:
            failed.append(error)
    for other in failed[1:]:
        _say(str(other))
    if failed:
        raise failed[0]


def _status(selection: Selection) -> None:
    for name, ports in selection.wanted.items():
        for port in ports:
            print(f"{port.asked}: {_state(selection, name, port)} ({_mechanism(selection, name)})")


def _report(selection: Selection, ports: Sequence[Port], on: bool, edges: Sequence[Acknowledged]) -> None:
    """Print the new state of these ports. Raises RigError if one cannot be read back."""
    by_port = {edge.port: edge for edge in edges}
    for port in ports:
        edge = by_port[port.port]
        took = 1000 * (edge.acknowledged - edge.commanded)
        reads = selection.switches.switch(port.switch).capabilities.read_back
        said = f"reads {_state(selection, port.switch, port)}" if reads else "no read-back"
        print(
            f"{port.asked}: {'on' if on else 'off'} ({_mechanism(selection, port.switch)}), "
            f"commanded {_clock(edge.commanded)}, acknowledged after {took:.1f} ms, {said}",
            flush=True,
        )


def _clock(monotonic: float) -> str:
    """A time of the monotonic clock as time of day, in milliseconds."""
    at = time.time() - time.monotonic() + monotonic
    return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{int(at * 1000) % 1000:03d}"


def _state(selection: Selection, switch: str, port: Port) -> str:
    state = selection.switches.switch(switch).read(port.port)
    return {True: "on", False: "off", None: "not known: it has no read-back"}[state]


def _mechanism(selection: Selection, switch: str) -> str:
    return selection.switches.switch(switch).mechanism.value if selection.said else "its mechanism was not given"


# --- the switches of a rig file -------------------------------------------------------------------------------


@contextmanager
def _of_rig(arguments: argparse.Namespace) -> Iterator[Selection]:
    from plugpull.rig.load import load_rig
    from plugpull.rig.topology import Topology

    if arguments.option or arguments.ports is not None or arguments.mechanism is not None:
        raise UsageError("--option, --ports and --mechanism go with --driver: a rig file already says all that")
    rig = load_rig(arguments.rig)
    if rig.dut.kind == "virtual":
        raise UsageError(
            f"the switches of {arguments.rig} are QEMU's: they exist only during a run",
            hint="use a rig file of a real bench",
        )
    points = Topology(rig).cut_points()
    ports = []
    for text in arguments.port:
        switch, dot, port = text.partition(".")
        if text in points:
            ports.append(Port(text, points[text].switch, points[text].port))
        elif dot and (declared := next((one for one in rig.switch if one.name == switch), None)):
            _has_port(declared, port)
            ports.append(Port(text, switch, port))
        else:
            known = ", ".join([*points, *(f"{declared.name}.PORT" for declared in rig.switch)])
            raise UsageError(f"rig {rig.rig.name} has no port or cut point {text!r}", hint=f"it has {known}")
    with _held(rig, arguments.rig, arguments.do) as switches:
        yield Selection(switches, _by_switch(ports))


def _by_switch(ports: Sequence[Port]) -> Wanted:
    """The ports by switch. A port that was given by two names is switched once."""
    found: dict[str, dict[str, Port]] = {}
    for port in ports:
        found.setdefault(port.switch, {}).setdefault(port.port, port)
    return {switch: tuple(each.values()) for switch, each in found.items()}


def _has_port(declared: DeclaredSwitch, port: str) -> None:
    from plugpull.rig.drivers import first_port
    from plugpull.switches.kinds import kind_named

    first = first_port(kind_named(declared.driver).port_names)
    if first is not None and not (port.isdecimal() and first <= int(port) < first + declared.ports):
        raise UsageError(
            f"switch {declared.name} has no port {port!r}",
            hint=f"its ports are {first} to {first + declared.ports - 1}",
        )


@contextmanager
def _held(rig: Rig, file: Path, do: str) -> Iterator[OpenedSwitches]:
    """Lease the rig and open its switches. All but ``status`` first restore what a killed run left off."""
    from plugpull.coordination.place import place_and_lease, place_name
    from plugpull.dut.real.opened_switches import opened_switches
    from plugpull.switches.person import TerminalPerson

    with ExitStack() as held:
        if do != "status" and rig.labgrid is None:
            tidy_up()
        held.enter_context(place_and_lease(rig, file))
        if do != "status" and rig.labgrid is not None:  # somebody else had it until now
            tidy_up(place_name(rig))
        # A port that a person turns off stays off: only a cycle needs a journal.
        journal = held.enter_context(journal_of("plugpull switch cycle", place_name(rig))) if do == "cycle" else None
        yield held.enter_context(opened_switches(rig, file.parent, TerminalPerson(), journal=journal))


def tidy_up(place: str = "") -> None:
    """Restore the ports that killed runs left off. ``place`` is the place of labgrid that is held."""
    from plugpull.cache import Cache
    from plugpull.left_off import restore_what_was_left_off

    restore_what_was_left_off(Cache.default(notify=_say), _say, place)


@contextmanager
def journal_of(what: str, place: str = "") -> Iterator[Journal]:
    """A journal for a command that turns ports off and on again. ``place``: the rig's place of labgrid."""
    from plugpull.cache import Cache
    from plugpull.coordination.journal import Journal

    journal = Journal(Cache.default(notify=_say).journals(), Path(what), place)
    try:
        yield journal
    finally:
        journal.close()


def _say(text: str) -> None:
    print(f"plugpull: {clean(text)}", file=sys.stderr)


# --- a switch that no rig file declares -----------------------------------------------------------------------


@contextmanager
def _alone(arguments: argparse.Namespace) -> Iterator[Selection]:
    from plugpull.rig.load import parse_rig
    from plugpull.switches.kinds import kind_named

    kind = kind_named(arguments.driver)
    rig = parse_rig(_text_of(arguments, kind), Path("--driver"))
    for port in arguments.port:
        _has_port(rig.switch[0], port)
    said = arguments.mechanism is not None or len(kind.mechanisms) == 1
    ports = [Port(text, ALONE, text) for text in arguments.port]
    # The lease is on the device, so that it is not switched while a rig that has it is in use.
    with _held(rig.model_copy(update={"disk": ()}), Path("--driver"), arguments.do) as switches:
        yield Selection(switches, _by_switch(ports), said)


def _text_of(arguments: argparse.Namespace, kind: Kind) -> str:
    """A rig file with only this switch, so that its keys are checked as in any rig file."""
    mechanism = arguments.mechanism or _usual(kind)
    count = arguments.ports if arguments.ports is not None else _enough(kind, arguments.port)
    lines = ["[[switch]]", f'name = "{ALONE}"', f"driver = {json.dumps(kind.name)}", f"ports = {count}"]
    lines.append(f"mechanism = {json.dumps(mechanism)}")
    lines += option_lines(kind.options, arguments.option)
    disk = (
        '[[controller]]\nname = "c"\npath = "0000:00:00.0"\n[[disk]]\nname = "d"\nat = "c.1"\nserial = "-"\nsize = 512'
    )
    return "\n".join(['[rig]\nname = "it-alone"\n[dut]\nkind = "local"', *lines, disk, ""])


def _usual(kind: Kind) -> str:
    """The usual mechanism of a kind."""
    from plugpull.rig.model import Mechanism

    usual = (Mechanism.VBUS, Mechanism.MAINS, *sorted(kind.mechanisms))
    return next(one.value for one in usual if one in kind.mechanisms)


def _enough(kind: Kind, ports: Sequence[str]) -> int:
    from plugpull.rig.drivers import first_port

    first = first_port(kind.port_names)
    if first is None:
        return len(set(ports))
    return max([1, *(int(port) - first + 1 for port in ports if port.isdecimal())])
