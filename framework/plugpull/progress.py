"""Shows slow steps while they run: as lines in a log, as a spinner with the elapsed time on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, runtime_checkable

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from plugpull.plain import clean

Notify = Callable[[str], None]
"""Shows a sentence."""


@runtime_checkable
class ShowsSteps(Protocol):
    """A ``Notify`` that can show a step while it runs."""

    def __call__(self, text: str, /) -> None: ...

    def step(self, text: str) -> AbstractContextManager[Notify]:
        """Show the step until the block ends. The block calls the result with each stage that begins."""
        ...


@contextmanager
def step(notify: Notify, text: str) -> Iterator[Notify]:
    """Show a slow step until the block ends. The block calls the result with each stage that begins."""
    shown = notify if isinstance(notify, ShowsSteps) else Lines(notify)
    with shown.step(text) as stage:
        yield stage


def notify_for(console: Console) -> ShowsSteps:
    """A spinner on a terminal, lines anywhere else."""
    if console.is_terminal and not console.is_dumb_terminal:
        return Spinner(console)
    return Lines(lambda text: _print(console, text))


class Lines:
    """A line when a step begins, one for each of its stages, and one when it is done."""

    def __init__(self, notify: Notify) -> None:
        self._notify = notify

    def __call__(self, text: str, /) -> None:
        self._notify(text)

    @contextmanager
    def step(self, text: str) -> Iterator[Notify]:
        self._notify(text)
        begun = time.monotonic()
        yield lambda stage: self._notify(f"  {stage} ({time.monotonic() - begun:.0f} s)")
        self._notify(f"  done after {time.monotonic() - begun:.0f} s")


class Spinner:
    """One line that is redrawn: the step, its present stage, and the time since it began. A line stays when it is
    done."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, text: str, /) -> None:
        _print(self._console, text)

    @contextmanager
    def step(self, text: str) -> Iterator[Notify]:
        begun = time.monotonic()
        columns = (SpinnerColumn(), TextColumn("plugpull: {task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=self._console, transient=True) as bar:
            task = bar.add_task(clean(text), total=None)
            yield lambda stage: bar.update(task, description=clean(f"{text}: {stage}"))
        self(f"{text}: done after {time.monotonic() - begun:.0f} s")


def _print(console: Console, text: str) -> None:
    console.print(f"plugpull: {clean(text)}", markup=False, highlight=False, soft_wrap=True)
