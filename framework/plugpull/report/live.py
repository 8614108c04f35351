"""Watching a run: every disk's rate and state as it happens, and the faults below it.

``LiveView`` redraws a table on a terminal; ``PlainView`` prints lines for logs. Both are fed with the history's
events, from any thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from plugpull.history import events as ev
from plugpull.history.counters import Counters, rates_between
from plugpull.judging.results import Verdict
from plugpull.plain import clean
from plugpull.report.narrate import Line, Tone, clock, kernel_line, narrate, rate_or_blank
from plugpull.report.text import duration, natural, one_line, title_of

CELL = 0.5
"""Seconds per character of a sparkline."""
CELLS = 28
BARS = "▁▂▃▄▅▆▇█"
ABSENT = "·"
TONES = {Tone.PLAIN: "", Tone.CUT: "bold cyan", Tone.WARNING: "yellow", Tone.TROUBLE: "bold red"}
VERDICTS = {Verdict.PASS: "bold green", Verdict.FAIL: "bold red", Verdict.UNKNOWN: "bold yellow"}


class View(Protocol):
    """What the plugin feeds: events as they are recorded, and each scenario's verdict once it is judged."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def __call__(self, event: ev.Event) -> None: ...
    def verdict(self, scenario_id: str, verdict: Verdict, sentence: str, seconds: float | None = None) -> None: ...


def view_for(console: Console) -> View:
    """The live view on a terminal, plain lines anywhere else."""
    return LiveView(console) if console.is_terminal and not console.is_dumb_terminal else PlainView(console)


class PlainView:
    """One line per noteworthy event, stamped with the DUT's time. The kernel's own words are left to ``kernel.log``."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = Lock()
        self._now: float | None = None

    def start(self) -> None:
        """Nothing to prepare."""

    def stop(self) -> None:
        """Nothing to end."""

    def __call__(self, event: ev.Event) -> None:
        line = narrate(event)
        with self._lock:
            self._now = None if isinstance(event, ev.ScenarioBegun) else self._now if event.at is None else event.at
            if line is not None:
                self._print(line)

    def verdict(self, scenario_id: str, verdict: Verdict, sentence: str, seconds: float | None = None) -> None:
        with self._lock:
            words = f"{verdict} {one_line(scenario_id)}{took(seconds)}: {one_line(sentence, 300)}"
            self._print(Line(self._now, Tone.PLAIN, words))

    def _print(self, line: Line) -> None:
        self._console.print(Text(str(line)), soft_wrap=True)


def took(seconds: float | None) -> str:
    """The time that a scenario took, for the line with its verdict."""
    return "" if seconds is None else f" ({duration(seconds)})"


@dataclass
class DiskState:
    """What is known of one disk right now. Rates in bytes per second."""

    kname: str = ""
    diskseq: int = -1
    attached: bool = False
    cut: bool = False
    loaded: bool = False
    read: float | None = None
    write: float | None = None
    in_flight: int = 0
    cells: deque[tuple[int, float | None]] = field(default_factory=lambda: deque(maxlen=CELLS))
    peak: float = 1.0
    counters: tuple[float, Counters] | None = None

    @property
    def role(self) -> str:
        return "victim" if self.cut else "survivor" if self.loaded else "bystander"

    def gone(self) -> None:
        self.attached, self.read, self.write, self.in_flight, self.counters = False, None, None, 0, None

    def moved(self, at: float, counters: Counters) -> None:
        """Take the disk's counters at ``at``."""
        self.in_flight = counters.in_flight
        if self.counters is not None and at > self.counters[0]:
            then, before = self.counters
            self.read, self.write = rates_between(before, counters, at - then).forward()
            self.peak = max(self.peak, self.read + self.write)
        self.counters = (at, counters)

    def tick(self, at: float) -> None:
        """Note the present rate in the sparkline. Of several within a cell the least is kept, so that a stall shows."""
        cell = int(at / CELL)
        now = None if self.read is None or self.write is None else self.read + self.write
        if self.cells and self.cells[-1][0] == cell:
            before = self.cells[-1][1]
            now = None if before is None or now is None else min(before, now)
            self.cells[-1] = (cell, now)
        else:
            self.cells.append((cell, now))

    def sparkline(self) -> str:
        return "".join(ABSENT if value is None else _bar(value / self.peak) for _, value in self.cells)


def _bar(share: float) -> str:
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]


class BenchState:
    """The state of the bench after the events so far. It has no lock; the view has one."""

    def __init__(self, lines: int) -> None:
        self.scenario = ""
        self.phase = ""
        self.begun: float | None = None
        self.now: float | None = None
        self.disks: dict[str, DiskState] = {}
        self.lines: deque[Line] = deque(maxlen=lines)

    def feed(self, event: ev.Event) -> None:
        if event.at is not None and not isinstance(event, ev.ScenarioBegun):
            self.now = event.at if self.now is None else max(self.now, event.at)
            self.begun = event.at if self.begun is None else self.begun
        match event:
            case ev.ScenarioBegun():
                self._begin(event)
            case ev.Phase(name="measure"):
                self.phase = f"measure {event.text}"
            case ev.Phase():
                self.phase = event.name
            case ev.DiskAttached() if event.disk:
                disk = self._disk(event.disk)
                disk.kname, disk.diskseq, disk.attached, disk.counters = event.kname, event.diskseq, True, None
            case ev.DiskDetached() if event.disk:
                if self._disk(event.disk).diskseq == event.diskseq:
                    self._disk(event.disk).gone()
            case ev.CutArmed():
                for name in event.victims:
                    self._disk(name).cut = True
            case ev.LoadBegun():
                self._disk(event.disk).loaded = True
            case ev.Sampled() if event.at is not None:
                self._sampled(event.at, event)
        line = kernel_line(event) if isinstance(event, ev.KernelMessage) else narrate(event)
        if line is not None and not isinstance(event, ev.Phase):
            self.lines.append(line)

    def _begin(self, event: ev.ScenarioBegun) -> None:
        """A scenario may start from a snapshot, so the DUT's clock and its list of disks begin again."""
        self.scenario, self.phase, self.begun, self.now = event.id, "", event.at, event.at
        self.disks.clear()

    def _disk(self, name: str) -> DiskState:
        return self.disks.setdefault(name, DiskState())

    def _sampled(self, at: float, event: ev.Sampled) -> None:
        for disk in self.disks.values():
            counters = event.disks.get(disk.kname)
            if disk.attached and counters is not None and counters.diskseq == disk.diskseq:
                disk.moved(at, counters)
            else:
                disk.read = disk.write = disk.counters = None
            disk.tick(at)


class LiveView:
    """A table of the disks, redrawn a few times a second, and below it the last ``lines`` things that happened."""

    def __init__(self, console: Console, *, lines: int = 12, refresh: float = 8.0) -> None:
        self._bench = BenchState(lines)
        self._lock = Lock()
        self._console = console
        self.above: Callable[[], RenderableType] | None = None
        """Makes what is shown above the table, such as the progress of a run that lasts."""
        self._live = Live(
            console=console, get_renderable=self.render, refresh_per_second=refresh, transient=True, screen=False
        )

    def start(self) -> None:
        self._live.start()

    def stop(self) -> None:
        """Take the table off the screen; what was printed above it stays."""
        self._live.stop()

    def __enter__(self) -> LiveView:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def feed(self, event: ev.Event) -> None:
        with self._lock:
            self._bench.feed(event)

    __call__ = feed

    def verdict(self, scenario_id: str, verdict: Verdict, sentence: str, seconds: float | None = None) -> None:
        """Print a scenario's verdict above the table, where it stays."""
        what = f" {one_line(scenario_id)}{took(seconds)}\n  {one_line(sentence, 300)}"
        words = Text.assemble((str(verdict), VERDICTS[verdict]), what)
        self._console.print(words)

    def render(self) -> RenderableType:
        with self._lock:
            above = () if self.above is None else (self.above(),)
            return Group(*above, _header(self._bench), _table(self._bench), _tail(self._bench.lines))


def _header(bench: BenchState) -> Text:
    if not bench.scenario:
        return Text("waiting for the first scenario", style="dim")
    elapsed = "" if bench.now is None or bench.begun is None else f"{bench.now - bench.begun:6.1f} s"
    return Text.assemble(
        (one_line(title_of(bench.scenario), 70), "bold"), "   ", (clean(bench.phase), "cyan"), "   ", elapsed
    )


def _table(bench: BenchState) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("disk", "role", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("read", "write"):
        table.add_column(name, justify="right", min_width=9, no_wrap=True)
    table.add_column("in flight", justify="right", no_wrap=True)
    table.add_column(f"last {CELLS * CELL:.0f} s", width=CELLS, no_wrap=True)
    for name in sorted(bench.disks, key=natural):
        disk = bench.disks[name]
        table.add_row(
            Text(clean(name), style="bold"),
            Text(disk.role, style="cyan" if disk.role == "victim" else ""),
            Text(clean(disk.kname)) if disk.attached else Text("gone", style="bold yellow"),
            rate_or_blank(disk.read),
            rate_or_blank(disk.write),
            str(disk.in_flight) if disk.attached else "",
            Text(disk.sparkline(), style="dim" if not disk.attached else ""),
        )
    return table


def _tail(lines: Iterable[Line]) -> Text:
    tail = Text(no_wrap=True, overflow="ellipsis")
    for line in lines:
        tail.append("\n" + clock(line.at), style="dim")
        tail.append(f" {line.words}", style=TONES[line.tone])
    return tail
