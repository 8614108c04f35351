"""Shows what happens on several benches at once: a table on a terminal, lines in a log."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from plugpull.jobs.messages import Concluded, FoundTest, Happened
from plugpull.plain import clean_line
from plugpull.report.live import took
from plugpull.report.narrate import clock
from plugpull.report.text import duration, one_line, title_of

STYLES = {"PASS": "bold green", "FAIL": "bold red", "UNKNOWN": "bold yellow", "failed": "bold red"}
WIDE = 300
"""Characters of a sentence that are shown."""


class Display(Protocol):
    """Shows what happens on the benches, by their numbers."""

    def planned(self, count: int) -> None: ...
    def begun(self, bench: int, test: FoundTest) -> None: ...
    def happened(self, bench: int, what: Happened) -> None: ...
    def tested(self, bench: int, test: FoundTest, result: Concluded) -> None: ...
    def said(self, bench: int, text: str) -> None: ...
    def stop(self) -> None: ...


def display_for(console: Console) -> Display:
    """A table on a terminal, lines anywhere else."""
    return TableDisplay(console) if console.is_terminal and not console.is_dumb_terminal else LineDisplay(console)


def name_of(test: FoundTest) -> str:
    """The name of a test: the id of a scenario, pytest's name of another test."""
    return one_line(test.scenario or test.name)


def result_line(test: FoundTest, result: Concluded) -> tuple[str, str]:
    """The verdict of a test, and the rest of its line, with the time that it took."""
    sentence = f": {one_line(result.sentence, WIDE)}" if result.sentence else ""
    return result.verdict, f"{name_of(test)}{took(result.seconds)}{sentence}"


class LineDisplay:
    """One line per event, with the bench, the scenario and the DUT's time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._running: dict[int, str] = {}

    def planned(self, count: int) -> None:
        """Nothing: the run has been announced."""

    def begun(self, bench: int, test: FoundTest) -> None:
        self._running[bench] = title_of(test.scenario or test.name)

    def happened(self, bench: int, what: Happened) -> None:
        where = self._running.get(bench, "")
        self._print(bench, f"{where}: {clock(what.at)} {what.words}" if what.at is not None else what.words)

    def tested(self, bench: int, test: FoundTest, result: Concluded) -> None:
        self._print(bench, " ".join(result_line(test, result)))

    def said(self, bench: int, text: str) -> None:
        self._print(bench, text)

    def stop(self) -> None:
        """Nothing to end."""

    def _print(self, bench: int, text: str) -> None:
        self._console.print(Text(f"bench {bench}: {clean_line(text)}"), soft_wrap=True)


@dataclass(frozen=True)
class BenchRow:
    """What a bench does. ``since`` is when its test began, on ``time.monotonic``."""

    title: str = ""
    words: str = "is being prepared"
    since: float | None = None


class TableDisplay:
    """A row for each bench, redrawn a few times a second; results stay above the table."""

    def __init__(self, console: Console, *, refresh: float = 4.0) -> None:
        self._console = console
        self._lock = Lock()
        self._rows: dict[int, BenchRow] = {}
        self._count = 0
        self._done = 0
        self._begun = time.monotonic()
        self._live = Live(
            console=console, get_renderable=self.render, refresh_per_second=refresh, transient=True, screen=False
        )

    def planned(self, count: int) -> None:
        self._count = count
        self._live.start()

    def begun(self, bench: int, test: FoundTest) -> None:
        self._set(bench, BenchRow(title_of(test.scenario or test.name), "", time.monotonic()))

    def happened(self, bench: int, what: Happened) -> None:
        self._set(bench, replace(self._rows.get(bench, BenchRow()), words=what.words))

    def tested(self, bench: int, test: FoundTest, result: Concluded) -> None:
        self._done += 1
        self._set(bench, BenchRow(words=""))
        verdict, rest = result_line(test, result)
        self._console.print(Text.assemble((verdict, STYLES.get(verdict, "dim")), f" {rest}"))

    def said(self, bench: int, text: str) -> None:
        self._console.print(Text(f"bench {bench}: {clean_line(text)}"))

    def stop(self) -> None:
        self._live.stop()

    def _set(self, bench: int, row: BenchRow) -> None:
        with self._lock:
            self._rows = {**self._rows, bench: row}

    def render(self) -> RenderableType:
        with self._lock:
            rows = sorted(self._rows.items())
        now = time.monotonic()
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, style="bold")
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis", style="dim")
        for bench, row in rows:
            passed = "" if row.since is None else f"{now - row.since:.0f} s"
            table.add_row(f"bench {bench}", Text(one_line(row.title, 60)), passed, Text(one_line(row.words, WIDE)))
        head = f"{self._done} of {self._count} done after {duration(round(now - self._begun))}"
        return Group(Text(head, style="dim"), table)
