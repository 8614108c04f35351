"""``plugpull compare``: compares recorded runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.base import add_command
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS

if TYPE_CHECKING:
    from plugpull.commands.base import Commands

EPILOG = """\
examples:
  plugpull compare runs/20300101T000000Z-quick runs/latest
  plugpull compare old new --out /tmp/difference

exit status:
  0  the same verdicts and findings
  1  verdicts or findings differ
  2  there is no such run"""


def add(commands: Commands) -> None:
    """Add the parser of ``compare``."""
    parser = add_command(
        commands,
        "compare",
        help="compare the findings, events and recovery times of recorded runs",
        description="Judge recorded runs of the same scenarios again and show how they differ: verdicts, findings that "
        "not all of them have, sequences of kernel events per disk, and recovery times with their ratio to the first "
        "run's. Writes files only with --out.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "run", nargs="+", metavar="RUN", type=Path, help="a run directory, such as runs/latest; two or more"
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="write compare.json and compare.html there")
    parser.add_argument("--json", action="store_true", help="print compare.json instead of a table")
    parser.set_defaults(action=_run)


def _run(arguments: argparse.Namespace) -> int:
    from plugpull.archive.compare import compare
    from plugpull.archive.compare_show import as_json, as_text, write
    from plugpull.errors import UsageError

    if len(arguments.run) < 2:
        raise UsageError("a comparison needs at least two runs", hint="name two run directories, or more")
    comparison = compare(arguments.run)
    if arguments.json:
        sys.stdout.write(as_json(comparison).decode())
    else:
        for line in as_text(comparison):
            print(line)
    if arguments.out is not None:
        page = write(comparison, arguments.out)
        print(f"comparison: {page}", file=sys.stderr if arguments.json else sys.stdout)
    return EXIT_FAIL if comparison.differs else EXIT_PASS
