"""``plugpull fleet``: the rigs of a lab."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.base import add_command
from plugpull.exit_status import EXIT_PASS

if TYPE_CHECKING:
    from plugpull.commands.base import Commands

RUNS = Path("runs")

EPILOG = """\
examples:
  plugpull fleet status rigs/desk.toml rigs/shelf.toml
  plugpull fleet status --archive /srv/plugpull --json

exit status:
  0  the state was shown, whatever it is
  2  wrong usage"""


def add(commands: Commands) -> None:
    """Add the parser of ``fleet``."""
    parser = add_command(commands, "fleet", help="show the state of all rigs", description="Show the state of rigs.")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    status = add_command(
        actions,
        "status",
        help="who uses each rig, how its last run ended, and whether it is in order",
        description="Show for each rig who uses it and since when (by this machine's lock files and by labgrid), the "
        "verdict of its last run, what the last check before a nightly run found, and ports that killed runs left off. "
        "Touches no hardware.",
        epilog=EPILOG,
    )
    status.add_argument(
        "rigs",
        metavar="RIG",
        nargs="*",
        type=Path,
        help="rig files (default: rigs that the archive or lock files name)",
    )
    status.add_argument(
        "--archive", metavar="DIR", type=Path, help="the directory of runs (default: runs, if it exists)"
    )
    status.add_argument("--json", action="store_true", help="print JSON instead of text")
    status.set_defaults(action=_status)


def _status(arguments: argparse.Namespace) -> int:
    from plugpull.fleet.show import as_json, as_text
    from plugpull.fleet.status import fleet_status

    archive = arguments.archive or (RUNS if RUNS.is_dir() else None)
    fleet = fleet_status(arguments.rigs, archive)
    if arguments.json:
        sys.stdout.write(as_json(fleet))
    else:
        for line in as_text(fleet):
            print(line)
    return EXIT_PASS
