"""``plugpull run --calibrate``: measures a bench repeatedly and writes limits for its rig file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.pytest_line import Session
from plugpull.commands.session import session
from plugpull.exit_status import EXIT_PASS, EXIT_UNKNOWN
from plugpull.plain import clean

if TYPE_CHECKING:
    from plugpull.checks.calibration import Suggestion
    from plugpull.rig.model import Rig

TIMED = frozenset(
    {"removed", "returned", "kept_pace", "ended_with_error", "unmountable", "discovered", "ready_under_load"}
)
"""Checks whose findings may only mean that the limits do not fit, which is what a calibration finds out."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """``--calibrate [N]``."""
    parser.add_argument(
        "--calibrate",
        metavar="N",
        type=_times,
        nargs="?",
        const=5,
        help="run the scenarios N times (default: 5), each time with the next victims, measure this rig's healthy "
        "behaviour and print limits for its rig file, disk by disk",
    )


def _times(text: str) -> int:
    try:
        times = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs") from None
    if not 1 <= times <= 1000:
        raise argparse.ArgumentTypeError("a calibration has 1 to 1000 runs")
    return times


def calibrate(arguments: argparse.Namespace, rig: Rig) -> int:
    """Run the scenarios the requested number of times, then print the limits and write them beside the runs.

    The exit status is 0 if something was measured, whatever the verdicts of the runs.
    """
    ended: list[Session] = []
    kernel = next(iter(arguments.kernel), None)
    first = arguments.rotate or 0
    for number in range(arguments.calibrate):
        arguments.rotate = first + number
        print(f"plugpull: calibration, run {number + 1} of {arguments.calibrate}", file=sys.stderr)
        one = session(arguments, rig, kernel, [*_alone(arguments.words), "--rotate", str(arguments.rotate)])
        ended.append(one)
        if one.interrupted or one.directory is None:
            break
    directories = [one.directory for one in ended if one.directory is not None]
    return report(directories, rig.rig.name) if directories else EXIT_UNKNOWN


def report(directories: Sequence[Path], name: str) -> int:
    """Print the limits from the runs in ``directories``, and write them to a file beside the last of them."""
    from plugpull.checks.calibration import measure, suggest
    from plugpull.judging.judge import judge_history
    from plugpull.merging.read import read_run

    histories = [read_run(directory) for directory in directories]
    stories = [story for history in histories for story in history.stories]
    bad = [
        f"{scenario.id}: {finding.summary}"
        for history in histories
        for scenario in judge_history(history).scenarios
        for finding in scenario.findings
        if finding.check not in TIMED
    ]
    limits = {disk: suggest(values) for disk, values in measure(stories).items()}
    lines = [*_heading(name, len(directories), len(stories)), *_warning(bad), *_lines(limits)]
    print()
    for line in lines:
        print(clean(line))
    target = directories[-1].parent / f"limits-{name}.toml"
    target.write_text("".join(f"{clean(line)}\n" for line in lines), encoding="utf-8")
    print(f"\nlimits: {target}")
    return EXIT_PASS if limits else EXIT_UNKNOWN


def _heading(name: str, runs: int, scenarios: int) -> list[str]:
    return [
        f"# Limits of the rig {name}, measured over {runs} run{'s' * (runs != 1)} ({scenarios} scenarios).",
        "# Put each line into the [[disk]] of that name. A limit is the worst value plus a margin.",
    ]


def _warning(bad: Sequence[str]) -> list[str]:
    if not bad:
        return []
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return [
        "#",
        f"# WARNING: this bench is not healthy: {bad[0]}{more}",
        "# Limits from a faulty bench hide its fault.",
    ]


def _lines(limits: dict[str, tuple[Suggestion, ...]]) -> Iterable[str]:
    from plugpull.checks.calibration import RATIOS

    if not limits:
        yield "# Nothing was measured."
    for disk, suggestions in sorted(limits.items()):
        yield ""
        yield f"# {disk}"
        for one in suggestions:
            unit = "" if one.name in RATIOS else " s"
            few = "" if one.limit is not None else ": too few for a limit"
            yield f"#   {one.name}: worst {one.worst:.2f}{unit} of {one.count}{few}"
        known = [one.toml for one in suggestions if one.toml]
        if known:
            yield f"limits = {{ {', '.join(known)} }}"


def _alone(words: Sequence[str]) -> list[str]:
    """The command without its calibration options."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip and word.isdigit():
            skip = False
            continue
        skip = word in ("--calibrate", "--rotate")
        if not skip and not word.startswith(("--calibrate=", "--rotate=")):
            kept.append(word)
    return kept
