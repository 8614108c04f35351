"""``plugpull export``: a run in the formats of other tools."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.base import add_command
from plugpull.exit_status import EXIT_PASS

if TYPE_CHECKING:
    from plugpull.commands.base import Commands
    from plugpull.judging.results import Results

FORMATS = ("junit", "kcidb", "ktap", "markdown")

EPILOG = """\
examples:
  plugpull export runs/latest --format ktap | ~/linux/tools/testing/kunit/kunit.py parse
  plugpull export runs/latest --format kcidb --origin my_lab --out run.json
  curl -X POST -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
       --data @run.json https://kcidb.example/submit

exit status:
  0  the run was exported, whatever its verdict
  2  there is no such run, or wrong usage"""


def add(commands: Commands) -> None:
    """Add the parser of ``export``."""
    parser = add_command(
        commands,
        "export",
        help="print a run as JUnit, KTAP, KCIDB or Markdown",
        description="Print a run in a format that other tools read: JUnit XML for CI servers, KTAP version 1 for the "
        "kernel's test tools, KCIDB 5.3 for KernelCI, Markdown for an issue or a chat. Reads results.json, or judges "
        "the history if there is none.",
        epilog=EPILOG,
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run directory, such as runs/latest")
    parser.add_argument("--format", required=True, choices=FORMATS, help="the format to print")
    parser.add_argument(
        "--origin", default="plugpull", help="with kcidb: the name of the submitting system (default: plugpull)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a file instead of printing")
    parser.set_defaults(action=_export)


def _export(arguments: argparse.Namespace) -> int:
    text = _renderer(arguments)(_results(arguments.run))
    data = text.encode("utf-8", "replace")
    if arguments.out is None:
        sys.stdout.write(data.decode())
    else:
        _write(arguments.out, data)
    return EXIT_PASS


def _results(run: Path) -> Results:
    from plugpull.judging.outcome import judge_run
    from plugpull.judging.results_io import RESULTS_FILE, read_results

    stored = run / RESULTS_FILE if run.is_dir() else run
    return read_results(stored) if stored.suffix == ".json" and stored.is_file() else judge_run(run)[1]


def _renderer(arguments: argparse.Namespace) -> Callable[[Results], str]:
    from functools import partial

    from plugpull.report.junit import render_junit
    from plugpull.report.kcidb import render_kcidb
    from plugpull.report.ktap import render_ktap
    from plugpull.report.markdown import render_markdown

    renderers: dict[str, Callable[[Results], str]] = {
        "junit": render_junit,
        "kcidb": partial(render_kcidb, origin=arguments.origin),
        "ktap": render_ktap,
        "markdown": render_markdown,
    }
    return renderers[arguments.format]


def _write(file: Path, data: bytes) -> None:
    from plugpull.errors import UsageError
    from plugpull.files import write_whole

    try:
        write_whole(file, data)
    except OSError as error:
        raise UsageError(
            f"cannot write {file}: {error.strerror or error}", hint="choose another file with --out"
        ) from error
