"""``plugpull measure``: runs the studies of a rig, and prints figures and conclusions."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from plugpull.commands.base import EXIT_STATUS, add_command

if TYPE_CHECKING:
    from plugpull.commands.base import Commands
    from plugpull.judging.results import Measurement, Results

EPILOG = f"""\
examples:
  plugpull measure                                 the stock virtual bench
  plugpull measure --rig rigs/desk.toml            another bench; its scratch disks are overwritten
  plugpull measure -k sustained                    only a long write, to see dips
  plugpull measure -k "caches or arrays"           studies that the rig file does not name in its rows

{EXIT_STATUS}"""
MOST = 100


def add(commands: Commands) -> None:
    """Add the parser of ``measure``."""
    parser = add_command(
        commands,
        "measure",
        help="measure what the disks, hubs and controllers of a rig can do",
        description="Run the studies among the stock scenarios that this rig can serve: they measure rates and cut "
        "nothing. Without PATH and -k, only those with a row that the rig file names, if it names any of a study. Ends "
        "with the figures, their 95 % intervals, and what they mean. PASS: measured. FAIL: a limit of the rig file is "
        "violated, or a rate is impossible. UNKNOWN: not steady, too noisy, or a starved sampler.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "path", nargs="*", metavar="PATH", help="study files, directories or node ids (default: the stock scenarios)"
    )
    parser.add_argument(
        "--rig", metavar="FILE", help="the rig file (default: the stock rig quick.toml, a virtual bench)"
    )
    parser.add_argument("-k", metavar="EXPR", dest="expression", help="only studies whose names match, as pytest -k")
    parser.add_argument(
        "--repeats",
        metavar="N",
        type=_repeats,
        default=None,
        help="how often each condition is measured, each time with a new load (default: 5; 3 give estimates, and 4 or "
        "more are needed to say that two things differ)",
    )
    parser.add_argument("--out", metavar="DIR", help="where run directories are made (default: runs)")
    parser.add_argument("--seed", metavar="N", type=int, help="repeat the order of an earlier run")
    parser.add_argument("--kernel", metavar="KERNEL", help="virtual rigs: the kernel to measure with, as for run")
    parser.add_argument(
        "--accel", choices=("auto", "kvm", "tcg"), default="auto", help="virtual rigs: as for run (default: auto)"
    )
    parser.set_defaults(action=_measure, module=[], every_victim=False, rotate=None)


def _repeats(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of repeats from 1 to {MOST}")
    return int(text)


def _measure(arguments: argparse.Namespace) -> int:
    from plugpull.commands.run import check
    from plugpull.commands.session import session
    from plugpull.judging.results_io import read_results
    from plugpull.plain import clean_line

    ended = session(arguments, check(arguments), arguments.kernel, arguments.words)
    if ended.directory is not None:
        for line in page(read_results(ended.directory)):
            print(clean_line(line))
    return ended.status


def page(results: Results) -> Iterator[str]:
    """The figures and conclusions of a run, line by line."""
    yield ""
    yield "figures (means with 95 % intervals)"
    rows = [_row(one, results.measurements) for one in results.measurements]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        yield f"  {row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}"
    if not rows:
        yield "  nothing was measured"
    yield ""
    yield "conclusions"
    for one in results.conclusions:
        yield f"  {one.kind}: {one.text}"
    if not results.conclusions:
        yield "  none"


def _row(one: Measurement, every: Sequence[Measurement]) -> tuple[str, str, str, str]:
    from plugpull.report.text import measure

    subject = ", ".join([one.subject, *_conditions(one, every)])
    bounds = "" if one.low is None or one.high is None else f"{measure(one.low, one.unit)} to "
    bounds += "" if one.high is None else measure(one.high, one.unit)
    odd = ", a repeat is unlike the others" if one.odd else ""
    return one.name, subject, measure(one.value, one.unit), f"{bounds}  n={one.n}{odd}".strip()


def _conditions(one: Measurement, every: Sequence[Measurement]) -> Iterator[str]:
    """The parameters that set this measurement apart from others of its name and subject."""
    alike = [other for other in every if (other.name, other.subject) == (one.name, one.subject)]
    for key, value in one.parameters.items():
        if any(other.parameters.get(key) != value for other in alike):
            if key in ("block", "chunk") and not isinstance(value, str):
                yield f"{key} {value / 1024:g} KiB"
            else:
                yield f"{key} {value}"
