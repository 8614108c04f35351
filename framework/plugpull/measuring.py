"""The part of the scenario API that measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugpull.choices import Choices
from plugpull.draw import Draw
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.load.designs import Design
from plugpull.load.patterns import Pattern
from plugpull.load.sweep import Sweep
from plugpull.load.tasks import FioTask, run_tasks
from plugpull.load.timed import REPEATS, TimedLoad, measure
from plugpull.targets.disk import RigDisk
from plugpull.targets.target import Targets, targets_of


class Measuring(Choices):
    """The rig of a scenario, as far as it measures. ``repeats`` is how often each condition is measured."""

    def __init__(self, context: ScenarioContext, draw: Draw | None = None, repeats: int = REPEATS) -> None:
        super().__init__(context, draw)
        self.repeats = repeats
        self._kind = ""

    def measure(self, design: Design[RigDisk], repeats: int | None = None) -> None:
        """Measure each condition of a design ``repeats`` times, in random order, each time with a new load.

        The default is that of the command line. What the disks held is overwritten. Raises ``RigError`` if a load does
        not start.

            rig.measure(each_alone(rig.disks))
            rig.judge(alone(rig.disks))
        """
        measure(self.context, design, repeats or self.repeats, virtual=self._kind == "virtual")

    def run_tasks(self, tasks: Sequence[FioTask[Any]], repeats: int | None = None, *, ordered: bool = False) -> None:
        """Run each of these jobs of fio ``repeats`` times, in random order unless they are ``ordered``.

        The default is that of the command line. A study judges fio's own figures. What the disks held is overwritten.
        Raises ``RigError`` if fio does not start.

            rig.run_tasks(caching_design(rig.disks))
            rig.judge(caching(rig.disks))
        """
        run_tasks(self.context, tasks, repeats or self.repeats, virtual=self._kind == "virtual", ordered=ordered)

    def keep_busy(self, targets: Targets, pattern: Pattern) -> TimedLoad:
        """Run fio on these targets for the length of the ``with`` block. What it writes is not stamped and cannot be
        verified, and the sampler watches its rate. Raises ``RigError`` if it does not start.

            with rig.keep_busy(rig.disks, sequential_write):
                rig.wait(seconds=5)
        """
        return TimedLoad(self.context, targets_of(targets), pattern)

    def sweep_sizes(self, disks: Sequence[RigDisk]) -> None:
        """Read and write with larger and larger requests, on all disks at once, until one stalls; then confirm the
        largest safe size of each disk that did. What the disks held is overwritten. Raises ``RigError``."""
        Sweep(self.context).run(disks)


__all__ = ["REPEATS", "Measuring"]
