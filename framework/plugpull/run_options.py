"""The options of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plugpull.history import events as ev


@dataclass(frozen=True)
class Options:
    """The options of a run.

    ``kernel`` and ``modules`` are for virtual rigs. ``planned`` are the ids of the scenarios to run; ``None`` if
    unknown. ``turn`` is the number of the night if victims are taken in turn (``draw.py``). ``repeats`` is how often a
    study measures each of its conditions. ``shard`` and ``whole`` are as in ``run.begin``. ``bench`` is the number of
    this bench if several share the plan, and ``benches`` how many they are; such a run waits for bench slots, and its
    ``directory`` is given. ``lasting`` is how many seconds a soak lasts. ``resumed``: the run in ``directory`` goes
    on, and this is recorded first. ``expected`` are findings that some kernels are known to cause.
    """

    rig: Path
    out: Path | None = None
    seed: int | None = None
    kernel: str | None = None
    modules: tuple[Path, ...] = ()
    accel: str = "auto"
    argv: tuple[str, ...] = ()
    planned: tuple[str, ...] | None = None
    turn: int | None = None
    repeats: int | None = None
    shard: str = ""
    whole: tuple[str, ...] | None = None
    bench: int = 0
    benches: int = 1
    directory: Path | None = None
    lasting: float | None = None
    resumed: ev.RunResumed | None = None
    expected: tuple[ev.ExpectedFinding, ...] = ()
