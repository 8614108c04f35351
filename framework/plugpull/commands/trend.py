"""``plugpull trend``: what changed in an archive of runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.archive import unreadable_lines
from plugpull.commands.base import add_command
from plugpull.exit_status import EXIT_PASS
from plugpull.plain import clean_line

if TYPE_CHECKING:
    from plugpull.commands.base import Commands

EPILOG = """\
examples:
  plugpull trend runs                       what is new, fixed, slower or flaky
  plugpull trend runs --markdown            the same for a chat
  plugpull trend runs --page runs/index.html

exit status:
  0  the archive was read, whatever it says
  2  there is no such directory"""


def add(commands: Commands) -> None:
    """Add the parser of ``trend``."""
    parser = add_command(
        commands,
        "trend",
        help="say what is new, fixed, slower or flaky in an archive of runs",
        description="Say what changed in a directory of runs: scenarios that are new failures, still failing, fixed or "
        "flaky; measured values that changed from one night on; and benches that decay. Runs that were copied there "
        "since the last time are added to the index first.",
        epilog=EPILOG,
    )
    parser.add_argument("directory", metavar="DIR", type=Path, help="the directory that holds the run directories")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print JSON instead of text")
    shown.add_argument("--markdown", action="store_true", help="print Markdown, for a chat")
    parser.add_argument(
        "--page",
        metavar="FILE",
        type=Path,
        help="also write a page for the browser, and beside it the text and the Markdown (as .txt and .md)",
    )
    parser.set_defaults(action=_run)


def _run(arguments: argparse.Namespace) -> int:
    from plugpull.archive.trend import trend_of
    from plugpull.archive.trend_show import as_json, as_markdown, as_text

    if arguments.page is None:
        trend = trend_of(arguments.directory)
    else:
        from plugpull.archive.page import write_page

        page, trend = write_page(arguments.directory, arguments.page)
        print(f"page: {page}", file=sys.stderr)
    for line in unreadable_lines(trend.updated):
        print(clean_line(line), file=sys.stderr)
    if arguments.json:
        sys.stdout.write(as_json(trend))
    else:
        for line in as_markdown(trend) if arguments.markdown else as_text(trend):
            print(clean_line(line))
    return EXIT_PASS
