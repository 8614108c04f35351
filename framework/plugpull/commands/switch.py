"""``plugpull switch``: find, use and qualify the switches of a bench."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands import switch_ports
from plugpull.commands.base import add_command
from plugpull.commands.switch_ports import seconds
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN
from plugpull.plain import clean, clean_line

if TYPE_CHECKING:
    from plugpull.commands.base import Commands

EPILOG = """\
examples:
  plugpull switch list                                the switches that are attached
  plugpull switch off disk1.cable --rig desk.toml     what cuts disk1's cable
  plugpull switch cycle relay.3 --rig shelf.toml      port 3 of the switch named relay, off and on again
  plugpull switch status 1 2 3 --driver ykush --option serial=YK12345 --ports 3
  plugpull switch qualify disk1.cable --rig desk.toml --ask

exit status:
  0  done, and read back
  1  qualify: the port does not do what it claims
  2  wrong usage: nothing was switched
  3  the switch failed, or could not be reached; qualify: something was not measured"""
LIST_EPILOG = """\
examples:
  plugpull switch list                     this machine
  plugpull switch list --rig shelf.toml    the DUT of that rig, for switches with via = "dut"
  plugpull switch list --json              one object per switch: kind, model, serial, place, ports, options, udev

exit status:
  0  the search completed
  2  wrong usage
  3  the DUT could not be reached"""
QUALIFY_EPILOG = """\
examples:
  plugpull switch qualify disk1.power --rig shelf.toml                mains: it is enough that the disk goes
  plugpull switch qualify disk1.cable --rig desk.toml --ask           vbus: you are asked whether there is still power
  plugpull switch qualify disk1.cable --rig desk.toml -n 100 --vbus-command ./meter.sh

The file goes into the rig file: qualification = "qualified-disk1.cable.json" in its [[switch]] table.

exit status:
  0  PASS: it cuts what it claims, nothing else, and stays off
  1  FAIL: it does not; the findings say why
  2  wrong usage: nothing was switched
  3  UNKNOWN: something was not measured; or the bench failed, and then no file is written"""


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
    switch_ports.add(actions)
    _add_qualify(actions)


def _add_list(actions: Commands) -> None:
    parser = add_command(
        actions,
        "list",
        help="find the switches attached to this machine",
        description="Find the switches attached to this machine, and print a [[switch]] table for each, ready to paste "
        "into a rig file, and the udev rules that let you use them without root. Reads only: nothing is switched, and "
        "nothing is sent to a serial port.",
        epilog=LIST_EPILOG,
    )
    parser.add_argument("--rig", metavar="FILE", type=Path, help="look on the DUT of this rig instead")
    parser.add_argument("--json", action="store_true", help="one line of JSON per switch")
    parser.set_defaults(action=_list)


def _add_qualify(actions: Commands) -> None:
    parser = add_command(
        actions,
        "qualify",
        help="find out whether a port cuts what it claims",
        description="Turn a port off and on and watch what happens: does the disk behind it go and come back, does "
        "anything else go with it or complain, is the read-back true, does power come back by itself, how long does "
        "each edge take? The result is a file that a rig file can cite; a rig that cites a failed one is refused. The "
        "devices behind the port are unplugged: unmount them first. However it ends, power comes back.",
        epilog=QUALIFY_EPILOG,
    )
    parser.add_argument("port", metavar="POINT", help="a cut point of the rig, such as disk1.cable")
    parser.add_argument("--rig", metavar="FILE", type=Path, required=True, help="the rig file")
    parser.add_argument(
        "-n", metavar="CYCLES", dest="cycles", type=int, default=10, help="the number of cycles (default: 10)"
    )
    parser.add_argument(
        "--hold",
        metavar="SECONDS",
        type=seconds,
        default=30.0,
        help="how long to leave it off at the end (default: 30)",
    )
    vbus = parser.add_mutually_exclusive_group()
    vbus.add_argument("--ask", action="store_true", help="ask you whether there is still power on the USB port")
    vbus.add_argument(
        "--vbus-command", metavar="COMMAND", help="a shell command whose last word is the volts of VBUS, from a meter"
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="where the result goes (default: qualified-POINT.json)"
    )
    parser.set_defaults(action=_qualify)


# --- list -----------------------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> int:
    from plugpull.discover.switches import find_all, tables
    from plugpull.switches.host_local import LocalHost

    if arguments.rig is None:
        listing = find_all(LocalHost())
    else:
        from plugpull.dut.real.dut_host import DutHost
        from plugpull.dut.real.opened_switches import connected_agent
        from plugpull.rig.load import load_rig

        with connected_agent(load_rig(arguments.rig)) as link:
            listing = find_all(DutHost(link))
    for why in listing.failed:
        print(f"plugpull: cannot look for {clean(why)}", file=sys.stderr)
    if arguments.json:
        for found in listing.found:
            print(json.dumps({**vars(found), "mechanism": found.mechanism.value}))
        return EXIT_PASS
    if not listing.found:
        print(f"no switch found; looked for {', '.join(listing.looked)}")
        return EXIT_PASS
    via = "dut" if arguments.rig is not None else "controller"
    for found, table in zip(listing.found, tables(listing.found, via=via), strict=True):
        note = f"; {found.note}" if found.note else ""
        words = f"{found.model or found.kind} {found.serial} at {found.place}{note}"
        # Devices choose these names: nothing in them may end the comment or move the cursor.
        print(f"# {clean_line(words)}\n{table}\n")
    rules = list(dict.fromkeys(found.udev for found in listing.found if found.udev))
    if rules:
        print("# /etc/udev/rules.d/70-plugpull.rules, to use them without root (then: udevadm control --reload)")
        print("\n".join(rules))
    return EXIT_PASS


# --- qualify --------------------------------------------------------------------------------------------------


def _qualify(arguments: argparse.Namespace) -> int:
    from plugpull.coordination.place import place_name
    from plugpull.qualify.measuring import Plan
    from plugpull.qualify.procedure import qualify
    from plugpull.rig.load import load_rig
    from plugpull.switches.person import TerminalPerson

    if arguments.cycles < 1:
        raise UsageError("-n takes a number of cycles from 1 on")
    plan = Plan(
        rig=load_rig(arguments.rig),
        file=arguments.rig,
        point=arguments.port,
        cycles=arguments.cycles,
        hold=arguments.hold,
        ask=arguments.ask,
        vbus_command=arguments.vbus_command,
    )
    out = arguments.out or Path(f"qualified-{arguments.port}.json")
    switch_ports.tidy_up()
    with switch_ports.journal_of("plugpull switch qualify", place_name(plan.rig)) as journal:
        result = qualify(plan, TerminalPerson(), out, lambda text: print(clean(text), flush=True), journal)
    return {"PASS": EXIT_PASS, "FAIL": EXIT_FAIL, "UNKNOWN": EXIT_UNKNOWN}[result.verdict]
