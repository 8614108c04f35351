"""``plugpull check`` and ``plugpull report``: judge a recorded run again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.base import EXIT_STATUS, add_command
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN
from plugpull.plain import clean_line
from plugpull.uncollected import uncollected

if TYPE_CHECKING:
    from plugpull.commands.base import Commands
    from plugpull.history.reader import History
    from plugpull.judging.results import Results

EDITED = "the history was judged as edited: line numbers and digests were not compared"


def add(commands: Commands) -> None:
    """Add the parser of ``check``."""
    parser = add_command(
        commands,
        "check",
        help="judge a recorded run again, offline",
        description="Judge a recorded run again with the checks of this version, from its history alone: offline, on "
        "any machine, even while the run is going on. Writes nothing. A history with missing, doubled, misplaced or "
        "altered lines is UNKNOWN.",
        epilog=EXIT_STATUS,
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run directory or a history.jsonl, such as runs/latest")
    parser.add_argument("--json", action="store_true", help="print results.json instead of sentences")
    _add_edited(parser)
    parser.set_defaults(action=_check)


def add_report(commands: Commands) -> None:
    """Add the parser of ``report``."""
    parser = add_command(
        commands,
        "report",
        help="write a recorded run's report again",
        description="Judge a recorded run again and write its results.json, junit.xml, kernel.log and report.html "
        "again. Prints the path of the report.",
        epilog="exit status:\n  0  the report was written, whatever the verdict\n  2  there is no such run",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run directory, such as runs/latest")
    _add_edited(parser)
    parser.set_defaults(action=_report)


def _add_edited(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--edited",
        action="store_true",
        help="the history was edited on purpose: do not compare line numbers and digests, and say so in the results",
    )


def _check(arguments: argparse.Namespace) -> int:
    with uncollected():
        from plugpull.judging.outcome import judge_run
        from plugpull.judging.results_io import encode_results

    history, results = judge_run(arguments.run, edited=arguments.edited)
    if arguments.json:
        sys.stdout.write(encode_results(results).decode())
    else:
        _print(arguments.run, history, results)
    return {"PASS": EXIT_PASS, "FAIL": EXIT_FAIL}.get(results.verdict.value, EXIT_UNKNOWN)


def _print(run: Path, history: History, results: Results) -> None:
    """Print the results; the last line is the run's verdict. Text from the history is cleaned: it may hold escapes."""
    for line in lines_of(run, history, results):
        print(clean_line(line))


def lines_of(run: Path, history: History, results: Results) -> Iterator[str]:
    """The results of a run in a few lines; the last one is its verdict."""
    from plugpull.judging.coverage import sentences
    from plugpull.judging.lasting import listed

    for scenario in listed(results):
        yield f"{scenario.verdict.value:8}{scenario.id}"
        yield f"        {scenario.sentence}"
    if more := len(results.scenarios) - len(listed(results)):
        yield f"{'PASS':8}{more} scenarios, not listed here"
    for skipped in results.skipped:
        yield f"{'skipped':8}{skipped.id}"
        yield f"        {skipped.reason}"
    yield from sentences(results.coverage)
    yield from (f"unknown: {reason}" for reason in results.unknowns if reason not in results.sentence)
    yield from stored_otherwise(run, results)
    if history.edited:
        yield f"note: {EDITED}"
    elif history.flawed:
        yield f"hint: if it was edited on purpose: plugpull check --edited {run}"
    yield results.sentence


def stored_otherwise(run: Path, results: Results) -> Iterator[str]:
    """A note if the run's ``results.json`` has other verdicts: it was edited, or written by another version."""
    from plugpull.judging.results_io import RESULTS_FILE, read_results

    try:
        stored = read_results(run / RESULTS_FILE) if (run / RESULTS_FILE).is_file() else results
    except UsageError as error:
        yield f"note: {error}"
        return
    judged = {scenario.id: scenario.verdict for scenario in results.scenarios}
    others = [one.id for one in stored.scenarios if judged.get(one.id) is not one.verdict]
    if stored.verdict is not results.verdict or others or len(stored.scenarios) != len(judged):
        where = f", and another verdict of {others[0]}" if others else ""
        yield f"note: {RESULTS_FILE} says {stored.verdict.value}{where}; it was edited, or judged by another version"
        yield f"hint: plugpull report {run}"


def _report(arguments: argparse.Namespace) -> int:
    with uncollected():
        from plugpull.judging.outcome import write_outcome

    if not arguments.run.is_dir():
        raise UsageError(f"{arguments.run} is not a run directory", hint="name a run directory, such as runs/latest")
    print(write_outcome(arguments.run.resolve(), edited=arguments.edited)[1])
    return EXIT_PASS
