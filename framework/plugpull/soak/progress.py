"""How far a soak has come, for people: lines in a log, and a bar above the table of the live view."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from plugpull.judging.results import Verdict
from plugpull.soak.length import length_text


@dataclass
class SoakProgress:
    """``total`` seconds are to be worked, and ``worked`` of them were done at ``since`` (``time.monotonic()``).
    ``verdicts`` are those of the turns of this process, before which there were ``earlier`` turns. ``aside`` has the
    disks that were set aside, and since when."""

    total: float
    worked: float = 0.0
    since: float = field(default_factory=time.monotonic)
    turns: int = 0
    earlier: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    aside: dict[str, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic

    @property
    def done(self) -> float:
        """Seconds worked so far."""
        return self.worked + self.clock() - self.since

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.total - self.done)

    def text(self) -> str:
        """One line: how long it has run, how long it goes on, what the turns came to, and what is lost."""
        ran = f"{length_text(min(self.done, self.total))} of {length_text(self.total)}"
        said = [f"soak: {ran}, {length_text(self.left)} left", f"turn {self.turns}"]
        if self.verdicts:
            counts = ", ".join(f"{self.verdicts[one]} {one.value}" for one in Verdict if self.verdicts[one])
            said.append(f"since turn {self.earlier + 1}: {counts}" if self.earlier else counts)
        if self.aside:
            said.append("set aside: " + ", ".join(f"{disk} since {wall}" for disk, wall in self.aside.items()))
        return "; ".join(said)

    def render(self) -> RenderableType:
        """A bar, for a terminal."""
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
        bar = Progress(*columns, auto_refresh=False)
        bar.add_task(self.text(), total=self.total, completed=int(min(self.done, self.total)))
        return bar.get_renderable()
