"""A soak: turns follow each other until the time is over, and disks that die are left out of the next ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from plugpull.errors import RigError, UsageError
from plugpull.history import events as ev
from plugpull.history.reader import HISTORY_FILE
from plugpull.judging.results import ScenarioResult, Verdict
from plugpull.rig.topology import Topology
from plugpull.run import OpenScenario, Run
from plugpull.scenario import ScenarioRig
from plugpull.soak.draw import points_to_cut
from plugpull.soak.progress import SoakProgress
from plugpull.soak.state import SoakState
from plugpull.soak.turn import Turn, wall

SEGMENT = 2 << 20
"""Bytes of ``history.jsonl`` from which on it is compressed after a turn."""
LONGEST_PAUSE = 300.0
"""Seconds between two attempts to begin a turn, at most, while the bench does not work. It begins with one second."""
WORST = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)


class Soak:
    """A run that lasts: the ``soak`` fixture gives it to a scenario.

        def test_disks_last(soak):
            for turn in soak.turns():
                with turn as rig:
                    with rig.load(rig.disks, fio_write) as load:
                        turn.run_until_fault()
                        load.settle()
                        with rig.fault(turn.fault):
                            pass
                        load.regain_pace()
                    rig.judge(*turn.checks())

    Every turn is a scenario of the run with its own verdict. ``show`` is called with the progress whenever a turn
    begins or ends, and with the result of a turn that has ended.
    """

    def __init__(
        self,
        run: Run,
        name: str,
        story: str,
        row: str,
        state: SoakState | None,
        show: Callable[[SoakProgress, ScenarioResult | None], None],
    ) -> None:
        self._run, self._name, self._story, self._row, self._show = run, name, story, row, show
        self._failures = 0
        self._known: set[str] = set()
        self._cause: ev.LossCause = "alone"
        self._works = state is not None and state.turns > 0
        self.worst: ScenarioResult | None = None
        """The worst of the results so far."""
        points_to_cut(Topology(run.rig))
        assert run.options.lasting is not None
        self.progress = SoakProgress(run.options.lasting)
        if state is None:
            run.recorder.record(ev.SoakBegun(seconds=run.options.lasting, directory=str(Path.cwd())))
        else:
            self.progress.worked = state.worked
            self.progress.turns = self.progress.earlier = state.turns
            self.progress.aside = {disk: event.wall for disk, event in state.aside.items()}
            run.go_on_without(state.aside)
            self._known, self._cause = {disk.name for disk in run.rig.disk}, "unseen"

    def turns(self) -> Iterator[Turn]:
        """One turn after the other until the time is over or no disk is left that can be cut.

        A turn whose bench cannot be opened counts as UNKNOWN, and the next one is tried a little later; if it is the
        first, the soak is over."""
        while self.progress.left > 0 and self._can_go_on():
            self.progress.turns += 1
            self._show(self.progress, None)
            name = f"{self._name}[{self.progress.turns:04}]"
            with self._run.scenario(name, self._story, self._row) as opened:
                turn = self._open(opened)
                if turn is not None:
                    try:
                        yield turn
                    finally:
                        turn.close()
                    self._go_on_without(turn)
            self._close_segment()
            if not self._works:
                self._run.fault("the soak ended early: its first turn could not begin")
                return
            self._pause()

    def _can_go_on(self) -> bool:
        try:
            points_to_cut(Topology(self._run.rig))
        except UsageError:
            self._run.fault("the soak ended early: no disk is left that can be cut")
            return False
        return True

    def _open(self, opened: OpenScenario) -> Turn | None:
        """The next turn; None if its bench does not work. Raises UsageError for a rig that must not be used."""
        try:
            rig = opened.open()
        except RigError as error:
            opened.failed(error)
            lost = self._gone_alone(opened)
            self._ended(opened.close())
            self._failures = 0 if lost else self._failures + 1
            self._leave_out(lost)
            return None
        except BaseException as error:
            opened.failed(error)
            raise
        self._failures, self._works = 0, True
        return Turn(opened, rig, self.progress.total, self.progress.left, lambda turn: self._ended(turn.result))

    def _gone_alone(self, opened: OpenScenario) -> dict[str, str]:
        """The disks that were there when a turn last ended and are not found now, if others are. They are recorded as
        set aside."""
        rig: ScenarioRig | None = opened.rig
        if rig is None or rig.context.listener.lost:
            return {}
        table, lost = rig.context.bench.disk_table, dict[str, str]()
        names = [disk.name for disk in self._run.rig.disk]
        missing = [name for name in names if table.attached(name) is None]
        if len(missing) < len(names) and set(missing) <= self._known:
            with suppress(RigError):
                for disk in missing:
                    now = wall()
                    at = rig.context.now()
                    self._run.recorder.record(ev.DiskSetAside(at=at, disk=disk, wall=now, cause=self._cause))
                    lost[disk] = now
        return lost

    def _ended(self, result: ScenarioResult | None) -> None:
        """Count a turn. Its result is not kept: there may be thousands."""
        if result is None:
            return
        self._run.results.clear()
        self.progress.verdicts[result.verdict] += 1
        if self.worst is None or WORST.index(result.verdict) < WORST.index(self.worst.verdict):
            self.worst = result
        self._show(self.progress, result)

    def _go_on_without(self, turn: Turn) -> None:
        self._known, self._cause = {disk.name for disk in self._run.rig.disk} - set(turn.lost), "alone"
        self._leave_out(turn.lost)

    def _leave_out(self, lost: dict[str, str]) -> None:
        if lost:
            self.progress.aside.update(lost)
            self._run.go_on_without(lost)

    def _close_segment(self) -> None:
        with suppress(OSError):
            if (self._run.directory / HISTORY_FILE).stat().st_size >= SEGMENT:
                self._run.recorder.close_segment()

    def _pause(self) -> None:
        """Give a bench that does not work some time."""
        if self._failures:
            # No event says that a switch or another machine works again.
            time.sleep(min(LONGEST_PAUSE, 2.0 ** (self._failures - 1), self.progress.left))
