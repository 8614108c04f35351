"""From a recorded run to its files: results.json, junit.xml, report.html, kernel.log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from plugpull.errors import RigError
from plugpull.history.events import KernelMessage
from plugpull.history.reader import History, read_history
from plugpull.judge import judge_history
from plugpull.plan import judged_stories
from plugpull.report.html import events_of, render_html
from plugpull.report.junit import render_junit
from plugpull.results import Results
from plugpull.results_io import write_results

HISTORY_FILE = "history.jsonl"
REPORT_FILE = "report.html"


def history_path(run: Path) -> Path:
    """The history of a run directory, or the file itself if that is what was given."""
    return run / HISTORY_FILE if run.is_dir() else run


def judge_run(run: Path, *, edited: bool = False) -> tuple[History, Results]:
    """Read a run's history and judge it again. Raises UsageError when there is none.

    ``edited``: the history was edited on purpose, so its lines are not compared with their numbers and digests."""
    history = read_history(history_path(run), edited=edited)
    return history, judge_history(history)


def write_report(run: Path, history: History, results: Results) -> Path:
    """Write ``report.html`` and ``junit.xml``; the path of the report. Raises RigError when that cannot be done."""
    report = run / REPORT_FILE
    try:
        events = events_of(judged_stories(history, results))
        report.write_text(render_html(results, events, begun=history.begun), encoding="utf-8", errors="replace")
        (run / "junit.xml").write_text(render_junit(results), encoding="utf-8", errors="replace")
        (run / "kernel.log").write_text("".join(_kernel_log(history)), encoding="utf-8", errors="replace")
        (run / "console.log").write_bytes(b"".join(_consoles(run)))
    except OSError as error:
        raise RigError(
            f"cannot write the report into {run}: {error.strerror or error}",
            mend=f"make room there, then: plugpull report {run}",
        ) from error
    return report


def write_outcome(run: Path, *, edited: bool = False) -> tuple[Results, Path]:
    """Judge a run and write everything that is derived from its history."""
    history, results = judge_run(run, edited=edited)
    write_results(run, results)
    return results, write_report(run, history, results)


def _consoles(run: Path) -> Iterable[bytes]:
    """The consoles of all scenarios, in the order they were run."""
    for path in sorted((run / "scenarios").glob("*/console.log"), key=lambda path: path.stat().st_mtime):
        yield f"# {path.parent.name}\n".encode() + path.read_bytes() + b"\n"


def _kernel_log(history: History) -> Iterable[str]:
    for story in history.stories:
        yield f"# {story.id}\n"
        for event in story.of(KernelMessage):
            yield f"<{event.level}>[{event.at or 0.0:12.6f}] {event.text}\n"
