"""``plugpull merge``: puts the shards of a run together."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.base import EXIT_STATUS, add_command
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN

if TYPE_CHECKING:
    from plugpull.commands.base import Commands

EPILOG = f"""\
examples:
  plugpull run scenarios --seed 7 --shard 1/2 --out shard1    on one machine
  plugpull run scenarios --seed 7 --shard 2/2 --out shard2    on another one
  plugpull merge nightly shard1/latest shard2/latest          one run, one report

{EXIT_STATUS}"""


def add(commands: Commands) -> None:
    """Add the parser of ``merge``."""
    parser = add_command(
        commands,
        "merge",
        help="put the shards of a run together, into one run with one report",
        description="Copy the runs of several shards into one run directory and judge them as one run. The histories "
        "are kept as they are. A planned scenario that no shard ran makes the verdict UNKNOWN. The given runs are not "
        "changed; if this is killed, the same command goes on. More runs can be merged into the same directory later.",
        epilog=EPILOG,
    )
    parser.add_argument("out", metavar="OUT", type=Path, help="the run directory to make, or one that merge made")
    parser.add_argument("run", metavar="RUN", type=Path, nargs="+", help="the run directory of a shard")
    parser.set_defaults(action=_merge)


def _merge(arguments: argparse.Namespace) -> int:
    from plugpull.commands.check import lines_of
    from plugpull.judging.outcome import judge_run, write_results_and_report
    from plugpull.merging.gather import gather
    from plugpull.plain import clean_line

    out = arguments.out.resolve()
    gather(out, arguments.run)
    history, results = judge_run(out)
    report = write_results_and_report(out, history, results)
    for line in lines_of(arguments.out, history, results):
        print(clean_line(line))
    print(f"report: {report}")
    return {"PASS": EXIT_PASS, "FAIL": EXIT_FAIL}.get(results.verdict.value, EXIT_UNKNOWN)
