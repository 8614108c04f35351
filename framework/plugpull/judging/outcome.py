"""Writes the files of a recorded run: results.json, junit.xml, report.html, kernel.log."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from plugpull.errors import RigError
from plugpull.files import directory_inside, read_inside, write_whole
from plugpull.history.events import KernelMessage
from plugpull.history.reader import History, read_history
from plugpull.judging.judge import judge_history
from plugpull.judging.plan import judged_stories
from plugpull.judging.results import Results
from plugpull.judging.results_io import write_results
from plugpull.plain import clean, clean_line, kernel_escaped
from plugpull.report.html import events_of, render_html
from plugpull.report.junit import render_junit

HISTORY_FILE = "history.jsonl"
REPORT_FILE = "report.html"


def history_path(run: Path) -> Path:
    """The history of a run directory; a path to a file is returned unchanged."""
    return run / HISTORY_FILE if run.is_dir() else run


def judge_run(run: Path, *, edited: bool = False) -> tuple[History, Results]:
    """Read a run's history and judge it again. Raises UsageError when there is none.

    ``edited``: the history was edited on purpose, so line numbers and digests are not checked.
    """
    history = read_history(history_path(run), edited=edited)
    return history, judge_history(history)


def write_report(run: Path, history: History, results: Results) -> Path:
    """Write ``report.html`` and ``junit.xml``; returns the report's path. Raises RigError when that fails."""
    report = run / REPORT_FILE
    try:
        events = events_of(judged_stories(history, results))
        write_whole(report, _encoded(render_html(results, events, begun=history.begun)))
        write_whole(run / "junit.xml", _encoded(render_junit(results)))
        write_whole(run / "kernel.log", _encoded("".join(_kernel_log(history))))
        write_whole(run / "console.log", b"".join(_consoles(run)))
    except OSError as error:
        raise RigError(
            f"cannot write the report into {run}: {error.strerror or error}",
            hint=f"free space there, then run: plugpull report {run}",
        ) from error
    return report


def write_outcome(run: Path, *, edited: bool = False) -> tuple[Results, Path]:
    """Judge a run and write all files that are derived from its history."""
    history, results = judge_run(run, edited=edited)
    write_results(run, results)
    return results, write_report(run, history, results)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


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
