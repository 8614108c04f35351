"""One run: its directory, its rig, its lease and journal, and a new bench for each scenario."""

from __future__ import annotations

import os
import platform
import random
import signal
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from plugpull import __version__
from plugpull.cache import Cache
from plugpull.coordination.journal import Journal
from plugpull.coordination.lease import Lease
from plugpull.coordination.place import place_name, reserved
from plugpull.coordination.slots import Slots, slots_needed
from plugpull.draw import Draw, disks_driven_by
from plugpull.dut.bench import Bench
from plugpull.dut.listener import Listener
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import DutError, RigError, UsageError
from plugpull.history import events as ev
from plugpull.history.reader import Story, read_history
from plugpull.history.recorder import Recorder
from plugpull.interrupts import signals_held, signals_raise
from plugpull.judging.expected import concerns
from plugpull.judging.judge import judge_story
from plugpull.judging.outcome import HISTORY_FILE, write_outcome
from plugpull.judging.plan import skip_reason
from plugpull.judging.results import Results, ScenarioResult
from plugpull.left_off import restore_what_was_left_off
from plugpull.load.timed import REPEATS
from plugpull.rig.credentials import recorded
from plugpull.rig.load import load_rig
from plugpull.rig.model import Rig
from plugpull.rig.topology import Topology, without_disks
from plugpull.run_directory import folder_names, make_directory, point_latest, remove_empty
from plugpull.run_options import Options
from plugpull.scenario import ScenarioRig
from plugpull.streams import VICTIMS, Streams
from plugpull.virtual.kernel_modules import module_name

__all__ = ["OpenBench", "OpenScenario", "Options", "Run", "begin_run"]


OpenBench = Callable[[Recorder, Path, Listener, str], Bench]
"""Makes the bench of one scenario: (recorder, directory for raw artefacts, listener, scenario id)."""


class Prepare(Protocol):
    """Prepares the benches of a run for a rig. What they share is closed with ``held``."""

    def __call__(self, rig: Rig, *, held: ExitStack) -> OpenBench: ...


@dataclass
class Run:
    """A run in progress. Made by ``begin_run``."""

    options: Options
    rig: Rig
    directory: Path
    recorder: Recorder
    seed: int
    open_bench: OpenBench
    _held: ExitStack
    slot: Callable[[], AbstractContextManager[object]] = nullcontext
    """Holds a bench slot of this machine while a scenario runs."""
    results: list[ScenarioResult] = field(default_factory=list)
    interrupted: str = ""
    without: tuple[str, ...] = ()
    """The disks of the rig file that were set aside."""
    _prepare: Prepare | None = None
    _prepared: ExitStack = field(default_factory=ExitStack)
    _folders: set[str] = field(default_factory=set)
    _open: OpenScenario | None = None

    def go_on_without(self, disks: Collection[str]) -> None:
        """Set these disks aside: the benches of later scenarios do not have them. Raises RigError and UsageError."""
        if not disks or self._prepare is None:
            return
        self.without = (*self.without, *disks)
        self.rig = without_disks(self.rig, disks)
        self._prepared.close()
        self.open_bench = self._prepare(self.rig, held=self._prepared)

    @contextmanager
    def scenario(self, name: str, story: str = "", row: str = "", victim: str = "") -> Iterator[OpenScenario]:
        """One scenario, from a bench of its own to its verdict.

        Exceptions are recorded, not raised again: see ``OpenScenario.result``. ``victim`` names the disk or hub that it
        chooses first; drawn if empty.
        """
        with self.slot():
            opened = self._open = OpenScenario(self, name, story, row, victim)
            try:
                yield opened
            finally:
                with signals_held():
                    self._close()

    def _close(self) -> None:
        """Close the open scenario, if there is one."""
        opened, self._open = self._open, None
        if opened is not None:
            self.results.append(opened.close())

    def skipped(self, name: str, reason: str) -> None:
        """Record that a scenario was skipped before it began."""
        with suppress(RigError):  # the recorder keeps its failure and raises it when it is closed
            self.recorder.record(ev.ScenarioSkipped(id=name, reason=reason))

    def fault(self, summary: str) -> None:
        """Record a failure outside of any scenario."""
        with suppress(RigError):
            self.recorder.record(ev.RigFault(summary=summary))

    def artefacts(self, name: str) -> Path:
        """Make a scenario's own folder for raw artefacts, inside the run's directory."""
        folder = next(one for one in folder_names(name) if one not in self._folders)
        self._folders.add(folder)
        path = self.directory / "scenarios" / folder
        path.mkdir(parents=True, exist_ok=True)
        return path

    def finish(self) -> tuple[Results, Path] | None:
        """Close the history, judge it, write the reports. Returns the results and the report's path; nothing of one
        bench of several, because the parts are judged together when all of them are there.

        A signal that arrives meanwhile changes nothing: all interruptible work is over.
        """
        try:
            with signals_held(then_raise=False):
                self._close()  # a signal may have arrived just before signals were held
                self.recorder.record(ev.RunEnded(wall=_wall(), interrupted=self.interrupted))
                self.recorder.close()
                return None if self.options.bench else write_outcome(self.directory)
        finally:
            self._prepared.close()
            self._held.close()


class OpenScenario:
    """A running scenario."""

    def __init__(self, run: Run, name: str, story: str, row: str, victim: str = "") -> None:
        self._run = run
        self._name = name
        self._victim = victim
        self._begun = time.monotonic()
        self._bench: Bench | None = None
        self._listener = Listener(run.recorder)
        self._mark = run.recorder.mark()
        self._split: dict[str, float] = {}
        self.rig: ScenarioRig | None = None
        self.result: ScenarioResult | None = None
        self.skip_reason = ""
        expected = tuple(entry for entry in run.options.expected if concerns(entry, name))
        self._opening = ev.ScenarioBegun(
            id=name, wall=_wall(), seed=run.seed, story=story, row=row, expected=expected, without=run.without
        )
        run.recorder.record(self._opening)

    def open(self) -> ScenarioRig:
        """Open the bench. Raises RigError, which is already recorded."""
        run = self._run
        artefacts = run.artefacts(self._name)
        self._bench = run.open_bench(run.recorder, artefacts, self._listener, self._name)
        self._listener.begin(self._bench)
        self._split["wake"] = time.monotonic() - self._begun
        streams = Streams(run.seed, self._name)
        context = ScenarioContext(
            run.rig, Topology(run.rig), self._bench, self._listener, run.recorder, streams, self._split
        )
        self.rig = ScenarioRig(context, self.draw(streams), run.options.repeats or REPEATS)
        self.rig.begin()
        return self.rig

    def draw(self, streams: Streams) -> Draw:
        """The source of this scenario's choices."""
        options = self._run.options
        preferred = disks_driven_by(map(module_name, options.modules), self._run.rig)
        return Draw(streams.of(VICTIMS), self._name, wanted=self._victim, turn=options.turn, preferred=preferred)

    def failed(self, error: BaseException) -> None:
        """Record that the scenario stopped with an exception."""
        fault: ev.ErrorFault = "framework"
        if isinstance(error, RigError | UsageError):
            fault = "rig"
        elif isinstance(error, KeyboardInterrupt | SystemExit):
            fault = "interrupt"
        elif isinstance(error, AssertionError | DutError):
            fault = "assertion"
        summary = getattr(error, "what", None) or f"{type(error).__name__}: {error}"
        trace = "" if fault in ("rig", "interrupt") else "".join(traceback.format_exception(error))[-8000:]
        if fault == "interrupt":
            summary = f"interrupted: {error or 'Ctrl-C'}"
            self._run.interrupted = summary
        with suppress(RigError):
            at = self.rig.context.now() if self.rig is not None else None
            hint = getattr(error, "hint", "")
            self._run.recorder.record(ev.ScenarioError(at=at, fault=fault, summary=summary, hint=hint, traceback=trace))

    @property
    def cut(self) -> bool:
        """True if it has cut anything, so that there is something to judge."""
        return any(isinstance(event, ev.CutArmed) for event in self._run.recorder.since(self._mark))

    def skipped(self, reason: str) -> None:
        """Record that the scenario was skipped."""
        with suppress(RigError):
            at = self.rig.context.now() if self.rig is not None else None
            self._run.recorder.record(ev.ScenarioSkipped(at=at, id=self._name, reason=reason))

    def close(self) -> ScenarioResult:
        """Heal, close the bench, judge. May be called more than once, and however the scenario ended."""
        if self.result is not None:
            return self.result
        begun = time.monotonic()
        if self.rig is not None:
            with suppress(RigError):
                self.rig.end()
        self._listener.end()
        if self._bench is not None:
            self._bench.close()
        self._split["close"] = time.monotonic() - begun
        clock = self._bench.link.clock if self._bench is not None else None
        ended_at = clock.now()[0] if clock is not None and clock.mapped else None
        with suppress(RigError):
            self._run.recorder.record(
                ev.ScenarioEnded(
                    at=ended_at,
                    id=self._name,
                    wall=_wall(),
                    seconds=time.monotonic() - self._begun,
                    split=self._split,
                    asked=self.rig.asked if self.rig is not None else 0,
                    reports=self._listener.reports,
                    left_out=self._listener.left_out,
                    censuses=self.rig.censuses if self.rig is not None else 0,
                    grace_periods=self.rig.grace_periods if self.rig is not None else 0,
                )
            )
        story = self._story()
        self.result = judge_story(story)
        if not self.result.findings:
            self.skip_reason = skip_reason(story)
        return self.result

    def _story(self) -> Story:
        recorder = self._run.recorder
        if recorder.holds(self._mark):
            return Story(self._opening, recorder.since(self._mark), rig=recorded(self._run.rig))
        return read_history(recorder.path).stories[-1]


def begin_run(options: Options, notify: Callable[[str], None]) -> Run:
    """Check everything that can be checked without touching anything, then make the run's directory and history.

    ``notify`` gets a sentence for each slow step and for each leftover that is cleaned up. Raises UsageError and
    RigError.
    """
    rig = load_rig(options.rig)
    cache = Cache.default(notify=notify)
    held = ExitStack()
    directory: Path | None = None
    try:
        # First of all: until then somebody else may be using the rig.
        place = held.enter_context(reserved(rig.labgrid, notify)) if rig.labgrid else None
        restore_what_was_left_off(cache, notify, place_name(rig))
        slot = _slot(rig, options, notify)
        directory = options.directory or make_directory(options.out, rig.rig.name)
        directory.mkdir(exist_ok=True)
        held.enter_context(Lease(rig, options.rig, run_dir=directory))
        journal = Journal(cache.journals(), directory, place_name(rig))
        held.callback(journal.close)
        held.enter_context(signals_raise())
        recorder = Recorder(directory / HISTORY_FILE, held=True)
        held.callback(lambda: recorder.close(quietly=True))
        if place is not None:
            place.on_loss(partial(_place_lost, recorder))
        seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
        recorder.record(options.resumed or _opening(rig, options, seed))
        prepare = partial(_prepare, options=options, cache=cache, journal=journal, notify=notify)
        open_bench = prepare(rig, held=(prepared := held.enter_context(ExitStack())))
    except BaseException:
        held.close()
        if directory is not None and options.resumed is None:
            remove_empty(directory)
        raise
    if options.directory is None:
        point_latest(directory)
    return Run(options, rig, directory, recorder, seed, open_bench, held, slot, _prepare=prepare, _prepared=prepared)


def _place_lost(recorder: Recorder, why: str) -> None:
    """Record that somebody else may have the rig now, and end the run as a signal does, which restores power."""
    with suppress(RigError):
        recorder.record(ev.RigFault(summary=why, hint="see labgrid-client reservations"))
    os.kill(os.getpid(), signal.SIGTERM)


def _slot(rig: Rig, options: Options, notify: Callable[[str], None]) -> Callable[[], AbstractContextManager[object]]:
    """Holds a bench slot of this machine. One bench of several waits for it; a single one only lets others wait."""
    if rig.dut.kind != "virtual":
        return nullcontext
    slots, need = Slots(), slots_needed(rig.dut.cpus, rig.dut.memory)
    return partial(slots.hold, need, notify) if options.bench else partial(slots.hold_if_free, need)


def _opening(rig: Rig, options: Options, seed: int) -> ev.RunBegun:
    return ev.RunBegun(
        version=ev.HISTORY_VERSION,
        plugpull=__version__,
        wall=_wall(),
        rig_name=rig.rig.name,
        rig=recorded(rig),
        seed=seed,
        argv=options.argv,
        controller=_controller(),
        numbered=True,
        planned=options.planned,
        turn=options.turn,
        shard=options.shard,
        whole=options.whole,
        bench=options.bench,
    )


def _prepare(
    rig: Rig, options: Options, cache: Cache, journal: Journal, held: ExitStack, notify: Callable[[str], None]
) -> OpenBench:
    if rig.dut.kind == "virtual":
        from plugpull.virtual.setting import prepare

        return prepare(
            rig, options.kernel, options.modules, options.accel, options.benches, cache, journal, held, notify
        )
    if options.kernel is not None or options.modules:
        raise UsageError(
            f"--kernel and --module are for virtual rigs, but this rig's DUT is {rig.dut.kind}",
            hint="leave them out, and boot the kernel to be tested on the DUT",
            where=str(options.rig),
        )
    from plugpull.dut.real.bench import prepare_real

    return prepare_real(rig, options.rig, journal, held)


def _controller() -> dict[str, str]:
    return {
        "machine": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cpus": str(os.cpu_count() or 0),
        "platform": platform.platform(),
    }


def _wall() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
