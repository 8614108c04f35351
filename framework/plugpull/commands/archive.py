"""``plugpull archive``: adds runs to an archive, and makes its index."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.base import add_command
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_PASS
from plugpull.plain import clean_line

if TYPE_CHECKING:
    from plugpull.archive.index import Updated
    from plugpull.commands.base import Commands

EPILOG = """\
exit status:
  0  done; a results.json that cannot be read is named, and does not stop the others
  2  there is no such directory or run
  3  the index cannot be written"""


def add(commands: Commands) -> None:
    """Add the parser of ``archive``."""
    parser = add_command(
        commands,
        "archive",
        help="add runs to an archive, or make its index again",
        description="An archive is a directory of run directories, with an index of them (index.db, SQLite). Runs from "
        "other machines may also be copied into it by hand: `plugpull trend` reads them.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    index = add_command(
        actions,
        "index",
        help="make the index again from the runs",
        description="Make the index of an archive again, from the results.json of its runs alone. The old index is "
        "replaced when the new one is complete.",
        epilog=EPILOG,
    )
    index.add_argument("directory", metavar="DIR", type=Path, help="the directory that holds the run directories")
    index.set_defaults(action=_index)
    adds = add_command(
        actions,
        "add",
        help="copy runs into an archive",
        description="Copy run directories into an archive and add them to its index, which believes their "
        "results.json. A run that has its history is judged again, and other verdicts there are noted.",
        epilog=EPILOG,
    )
    adds.add_argument("directory", metavar="DIR", type=Path, help="the archive")
    adds.add_argument(
        "run", nargs="+", metavar="RUN", type=Path, help="a run directory, such as runs/latest, or a results.json"
    )
    adds.set_defaults(action=_add)


def _index(arguments: argparse.Namespace) -> int:
    from plugpull.archive.trend import make_index

    _report(make_index(arguments.directory))
    return EXIT_PASS


def _add(arguments: argparse.Namespace) -> int:
    from plugpull.archive.adding import add_run
    from plugpull.archive.trend import trend_of

    for run in arguments.run:
        print(clean_line(str(add_run(arguments.directory, run))))
        for line in _doubts(run):
            print(clean_line(f"plugpull: {run}: {line}"), file=sys.stderr)
    _report(trend_of(arguments.directory).updated)
    return EXIT_PASS


def _doubts(run: Path) -> Iterator[str]:
    """Notes if a run's ``results.json`` does not say what its history says."""
    from plugpull.commands.check import stored_otherwise
    from plugpull.judging.outcome import HISTORY_FILE, judge_run

    if not (run / HISTORY_FILE).is_file():
        return
    try:
        _, results = judge_run(run)
    except UsageError as error:
        yield f"note: its results are not compared: {error}"
        return
    yield from stored_otherwise(run, results)


def _report(updated: Updated) -> None:
    for line in unreadable_lines(updated):
        print(clean_line(line), file=sys.stderr)
    print(f"{updated.runs} run{'s' * (updated.runs != 1)} in the index")


def unreadable_lines(updated: Updated) -> list[str]:
    """One line for each run that cannot be read."""
    return [clean_line(f"plugpull: left out {name}: {reason}") for name, reason in updated.unreadable]
