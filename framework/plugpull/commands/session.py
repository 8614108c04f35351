"""One run of the scenarios on one kernel: one pytest session, or one for each of several benches."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plugpull.commands.pytest_line import Session, nothing_collected, pytest_line
from plugpull.exit_status import EXIT_USAGE

if TYPE_CHECKING:
    from plugpull.rig.model import Rig


def session(arguments: argparse.Namespace, rig: Rig, kernel: str | None, words: Sequence[str]) -> Session:
    """One run. ``words`` is the command that repeats it. Raises UsageError if no scenario is left to run."""
    if getattr(arguments, "jobs", 1) > 1:
        from plugpull.commands.jobs import jobs_session

        return jobs_session(arguments, rig, kernel, words)
    import pytest

    from plugpull.commands.run_plugin import RunPlugin

    plugin = RunPlugin(rig, Path(arguments.out or "runs"), getattr(arguments, "repeats", None))
    status = int(pytest.main(pytest_line(arguments, rig, kernel, words), plugins=[plugin]))
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        return nothing_collected(arguments, rig, plugin.deselected, plugin.whole)
    status = EXIT_USAGE if status == pytest.ExitCode.USAGE_ERROR else status
    return Session(status, plugin.directory, plugin.interrupted)
