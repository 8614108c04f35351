"""Writes the files of a recorded run: results.json, junit.xml, report.html, kernel.log."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from plugpull.errors import RigError
from plugpull.files import directory_inside, read_inside, write_whole
from plugpull.history.events import KernelMessage
from plugpull.history.reader import HISTORY_FILE, History
from plugpull.judging.early import EarlyJudge
from plugpull.judging.judge import judge_history
from plugpull.judging.lasting import lasts, page_of, shown_of, so_far
from plugpull.judging.plan import judged_stories
from plugpull.judging.results import Results
from plugpull.judging.results_io import write_results
from plugpull.judging.side_by_side import judged_side_by_side
from plugpull.merging.manifest import found_parts, part_folder
from plugpull.merging.read import read_run
from plugpull.plain import clean, clean_line, kernel_escaped
from plugpull.uncollected import uncollected

__all__ = ["HISTORY_FILE", "REPORT_FILE", "judge_run", "write_outcome", "write_report", "write_results_and_report"]

REPORT_FILE = "report.html"


def judge_run(run: Path, *, edited: bool = False) -> tuple[History, Results]:
    """Read a run's history and judge it again. Raises UsageError when there is none.

    ``edited``: the history was edited on purpose, so line numbers and digests are not checked. Of a run that is still
    going on, the scenarios that have ended are judged.
    """
    with uncollected():
        early = EarlyJudge()
        history = so_far(read_run(run, edited=edited, reduce=early if lasts(run) else None))
        if history.flawed and early.results:  # what is wrong with a scenario is known only when all of it is read
            early = EarlyJudge()
            history = so_far(read_run(run, edited=edited))
        return history, judge_history(history, early.results or judged_side_by_side(history))


def write_report(run: Path, history: History, results: Results) -> Path:
    """Write ``report.html`` and ``junit.xml``; returns the report's path. Raises RigError when that fails."""
    # Not needed, and slow to load, where a run is only judged.
    from plugpull.report.html import events_of, render_html
    from plugpull.report.junit import render_junit

    report = run / REPORT_FILE
    try:
        shown, stories = shown_of(history, results), judged_stories(history, results)
        events = events_of(stories[index] for index in shown)
        write_whole(report, _encoded(render_html(page_of(results, shown), events, begun=history.begun)))
        write_whole(run / "junit.xml", _encoded(render_junit(results)))
        write_whole(run / "kernel.log", _encoded("".join(_kernel_log(history))))
        write_whole(run / "console.log", b"".join(_all_consoles(run)))
    except OSError as error:
        raise RigError(
            f"cannot write the report into {run}: {error.strerror or error}",
            hint=f"free space there, then run: plugpull report {run}",
        ) from error
    return report


def write_outcome(run: Path, *, edited: bool = False) -> tuple[Results, Path]:
    """Judge a run and write all files that are derived from its history."""
    with uncollected():
        history, results = judge_run(run, edited=edited)
        return results, write_results_and_report(run, history, results)


def write_results_and_report(run: Path, history: History, results: Results) -> Path:
    """Write all files that are derived from a judged history; returns the report's path."""
    write_results(run, results)
    return write_report(run, history, results)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _all_consoles(run: Path) -> Iterable[bytes]:
    yield from _consoles(run)
    for name in found_parts(run):
        yield from _consoles(part_folder(run, name))


def _consoles(run: Path) -> Iterable[bytes]:
    """The consoles of all scenarios in the order of the run, with control characters made visible."""
    found: list[tuple[float, str, bytes]] = []
    with suppress(OSError), directory_inside(run, "scenarios") as scenarios:
        for name in os.listdir(scenarios):
            # A console must be an ordinary file of this run.
            with suppress(OSError), directory_inside(scenarios, name) as folder:
                written, data = read_inside(folder, "console.log")
                found.append((written, name, data))
    for _, name, data in sorted(found):
        yield b"# %s\n%s\n" % (_encoded(clean_line(name)), _shown(data))


def _shown(data: bytes) -> bytes:
    """Decode console output; a serial console ends its lines with CR LF."""
    return _encoded(clean(data.decode("utf-8", "replace").replace("\r\n", "\n")))


def _kernel_log(history: History) -> Iterable[str]:
    for story in history.stories:
        yield f"# {clean_line(story.id)}\n"
        for event in story.of(KernelMessage):
            yield f"<{event.level}>[{event.at or 0.0:12.6f}] {kernel_escaped(event.text)}\n"
