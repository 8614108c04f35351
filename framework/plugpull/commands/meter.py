"""``plugpull meter``: find and read the power meters of a bench."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.base import add_command
from plugpull.commands.options import option_lines
from plugpull.commands.switch_ports import seconds
from plugpull.errors import RigError, UsageError
from plugpull.exit_status import EXIT_PASS, EXIT_UNKNOWN
from plugpull.plain import clean, clean_line

if TYPE_CHECKING:
    from plugpull.commands.base import Commands
    from plugpull.meters.base import Meter, PowerReading
    from plugpull.rig.model import DeclaredMeter, Rig
    from plugpull.switches.host import Host

EPILOG = """\
examples:
  plugpull meter list                        the meters that are attached
  plugpull meter read --rig shelf.toml       one reading of each meter of that rig
  plugpull meter read plug --count 10 --rig shelf.toml
  plugpull meter read --driver shelly --option url=http://192.168.33.1

exit status:
  0  done
  2  wrong usage
  3  a meter could not be reached, or gave no usable value"""
LIST_EPILOG = """\
examples:
  plugpull meter list                     this machine
  plugpull meter list --rig shelf.toml    the DUT of that rig, for meters with via = "dut"

exit status:
  0  the search completed
  2  wrong usage
  3  the DUT could not be reached"""
READ_EPILOG = """\
examples:
  plugpull meter read --rig shelf.toml
  plugpull meter read plug --count 60 --interval 1 --json --rig shelf.toml
  plugpull meter read --driver tasmota --option url=http://plug.local --option password=secret
  plugpull meter read --driver hwmon --option chip=ina226

exit status:
  0  every reading has a value
  2  wrong usage
  3  a meter could not be reached, or gave no usable value at least once"""
ALONE = "meter"
"""The name of a meter that no rig file declares."""
MOST = 100_000


def add(commands: Commands) -> None:
    """Its parser, with one for each action."""
    parser = add_command(
        commands,
        "meter",
        help="find and read the power meters of a real bench",
        description="Find and read the power meters of a real bench. Nothing is switched.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    listing = add_command(
        actions,
        "list",
        help="find the meters attached to this machine",
        description="Find the meters attached to this machine, and print a [[meter]] table for each, ready to paste "
        "into a rig file. Meters on the network and on serial ports cannot be found: write their tables by hand.",
        epilog=LIST_EPILOG,
    )
    listing.add_argument("--rig", metavar="FILE", type=Path, help="look on the DUT of this rig instead")
    listing.add_argument("--json", action="store_true", help="one line of JSON per meter")
    listing.set_defaults(action=_list)
    _add_read(actions)


def _add_read(actions: Commands) -> None:
    parser = add_command(
        actions,
        "read",
        help="read meters",
        description="Read meters. Each line says what was read, when, and how sure the time is. A meter without a "
        "usable value has no reading, and the line says why; that is never 0 W.",
        epilog=READ_EPILOG,
    )
    parser.add_argument("meter", nargs="*", metavar="METER", help="meters of the rig file (default: all)")
    parser.add_argument("--rig", metavar="FILE", type=Path, help="the rig file that declares the meters")
    parser.add_argument("--driver", metavar="KIND", help="instead of a rig file: the kind of meter")
    parser.add_argument(
        "--option", metavar="KEY=VALUE", action="append", default=[], help="with --driver: a key of its own; repeatable"
    )
    parser.add_argument("--count", metavar="N", type=_count, default=1, help="how many readings (default: 1)")
    parser.add_argument(
        "--interval", metavar="SECONDS", type=seconds, default=1.0, help="from one reading to the next (default: 1)"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON per reading")
    parser.set_defaults(action=_read)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of readings from 1 to {MOST}")
    return int(text)


# --- list -----------------------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> int:
    from plugpull.meters.listing import find_meters, meter_tables
    from plugpull.switches.host_local import LocalHost

    if arguments.rig is None:
        listing = find_meters(LocalHost())
    else:
        with _dut(arguments.rig) as host:
            listing = find_meters(host)
    for why in listing.failed:
        print(f"plugpull: cannot look for {clean(why)}", file=sys.stderr)
    if arguments.json:
        for found in listing.found:
            print(json.dumps(vars(found)))
        return EXIT_PASS
    via = "dut" if arguments.rig is not None else "controller"
    for found, table in zip(listing.found, meter_tables(listing.found, via=via), strict=True):
        note = f"; {found.note}" if found.note else ""
        print(f"# {clean_line(f'{found.model} at {found.place}{note}')}\n{table}\n")
    if not listing.found:
        print(f"no meter found; looked for {', '.join(listing.looked)}")
    print(f"# cannot be found, only declared: {', '.join(listing.unseen)}")
    return EXIT_PASS


@contextmanager
def _dut(file: Path) -> Iterator[Host]:
    from plugpull.dut.real.dut_host import DutHost
    from plugpull.dut.real.opened_switches import connected_agent
    from plugpull.rig.load import load_rig

    with connected_agent(load_rig(file)) as link:
        yield DutHost(link)


# --- read -----------------------------------------------------------------------------------------------------


def _read(arguments: argparse.Namespace) -> int:
    if (arguments.rig is None) == (arguments.driver is None):
        raise UsageError("say which meter: --rig FILE, or --driver KIND with its --option KEY=VALUE")
    rig, file = _rig_of(arguments)
    wanted = _wanted(arguments, rig)
    with ExitStack() as held:
        opened = [_open(held, one, rig, file) for one in wanted]
        good = all(meter is not None for meter in opened)
        meters = [(one, meter) for one, meter in zip(wanted, opened, strict=True) if meter is not None]
        for number in range(arguments.count if meters else 0):
            begun = time.monotonic()
            for declared, meter in meters:
                reading = meter.read()
                good = good and reading.power is not None
                print(_line(declared, meter, reading, as_json=arguments.json), flush=True)
            if number + 1 < arguments.count:
                # The interval that the user asked for: there is no event to wait for.
                time.sleep(max(0.0, arguments.interval - (time.monotonic() - begun)))
    return EXIT_PASS if good else EXIT_UNKNOWN


def _wanted(arguments: argparse.Namespace, rig: Rig) -> list[DeclaredMeter]:
    known = {one.name: one for one in rig.meter}
    if not known:
        raise UsageError(f"{arguments.rig} has no [[meter]]", hint="`plugpull meter list` prints tables to paste")
    for name in arguments.meter:
        if name not in known:
            raise UsageError(f"there is no meter named {name!r}", hint=f"there is {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(arguments.meter or known)]


def _rig_of(arguments: argparse.Namespace) -> tuple[Rig, Path]:
    from plugpull.rig.load import load_rig, parse_rig

    if arguments.driver is not None:
        if arguments.meter:
            raise UsageError("names of meters go with --rig")
        return parse_rig(_text_of(arguments), Path("--driver")), Path("--driver")
    if arguments.option:
        raise UsageError("--option goes with --driver: a rig file already says all that")
    rig = load_rig(arguments.rig)
    if rig.dut.kind == "virtual":
        raise UsageError(
            f"the meters of {arguments.rig} are computed: they exist only during a run",
            hint="use a rig file of a real bench, or `plugpull measure`",
        )
    return rig, arguments.rig


def _text_of(arguments: argparse.Namespace) -> str:
    """A rig file with only this meter, so that its keys are checked as in any rig file."""
    from plugpull.meters.kinds import kind_named

    kind = kind_named(arguments.driver)
    lines = ["[[meter]]", f'name = "{ALONE}"', f"driver = {json.dumps(kind.name)}", f'side = "{kind.side}"']
    lines += ['disks = ["d"]', *option_lines(kind.options, arguments.option)]
    disk = (
        '[[controller]]\nname = "c"\npath = "0000:00:00.0"\n[[disk]]\nname = "d"\nat = "c.1"\nserial = "-"\nsize = 512'
    )
    return "\n".join(['[rig]\nname = "it-alone"\n[dut]\nkind = "local"', *lines, disk, ""])


def _open(held: ExitStack, declared: DeclaredMeter, rig: Rig, file: Path) -> Meter | None:
    """The meter. ``None`` if it cannot be reached, which is printed."""
    from plugpull.meters.kinds import open_meter
    from plugpull.switches.host_local import LocalHost

    on_dut = declared.via == "dut" and rig.dut.kind != "local"
    try:
        meter = open_meter(declared, held.enter_context(_dut(file)) if on_dut else LocalHost())
    except RigError as error:
        print(f"plugpull: {clean(str(error))}", file=sys.stderr)
        return None
    held.callback(meter.close)
    return meter


def _line(declared: DeclaredMeter, meter: Meter, reading: PowerReading, *, as_json: bool) -> str:
    wall = time.time() - time.monotonic() + reading.at
    power = reading.power
    if as_json:
        said = {"meter": declared.name, "wall": round(wall, 6), "uncertainty": round(reading.uncertainty, 6)}
        values = {"watts": None} if power is None else vars(power)
        return json.dumps({**said, **values, "why": reading.why})
    if power is None:
        return clean_line(f"{declared.name}: no reading: {reading.why}")
    others = [f"{value:.4g} {unit}" for value, unit in ((power.volts, "V"), (power.amps, "A")) if value is not None]
    at = f"{time.strftime('%H:%M:%S', time.localtime(wall))}.{int(wall * 1000) % 1000:03d}"
    about = ", ".join([*others, f"{declared.side} side", str(meter.identity)])
    return clean_line(f"{declared.name}: {power.watts:.4g} W at {at}, within {reading.uncertainty:.3f} s ({about})")
