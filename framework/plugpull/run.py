"""One run: its directory, its rig, its lease and journal, and a new bench for each scenario."""

from __future__ import annotations

import os
import platform
import random
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from plugpull import __version__
from plugpull.cache import Cache
from plugpull.coordination.journal import Journal, sweep
from plugpull.coordination.lease import Lease
from plugpull.draw import Draw
from plugpull.dut.bench import Bench
from plugpull.dut.listener import Listener
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.errors import DutError, RigError, UsageError
from plugpull.history import events as ev
from plugpull.history.reader import Story, read_history
from plugpull.history.recorder import Recorder
from plugpull.interrupts import signals_held, signals_raise
from plugpull.judging.judge import judge_story
from plugpull.judging.outcome import HISTORY_FILE, write_outcome
from plugpull.judging.plan import skip_reason
from plugpull.judging.results import Results, ScenarioResult
from plugpull.load.timed import REPEATS
from plugpull.rig.credentials import recorded
from plugpull.rig.load import load_rig
from plugpull.rig.model import Rig
from plugpull.rig.topology import Topology
from plugpull.scenario import ScenarioRig
from plugpull.streams import VICTIMS, Streams


@dataclass(frozen=True)
class Options:
    """The options of a run.

    ``kernel`` and ``modules`` are for virtual rigs. ``planned`` are the ids of the scenarios to run; ``None`` if
    unknown. ``turn`` is the number of the night if victims are taken in turn (``draw.py``). ``repeats`` is how often a
    study measures each of its conditions.
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


OpenBench = Callable[[Recorder, Path, Listener, str], Bench]
"""Makes the bench of one scenario: (recorder, directory for raw artefacts, listener, scenario id)."""


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
    results: list[ScenarioResult] = field(default_factory=list)
    interrupted: str = ""
    _folders: set[str] = field(default_factory=set)
    _open: OpenScenario | None = None

    @contextmanager
    def scenario(self, name: str, story: str = "", row: str = "", victim: str = "") -> Iterator[OpenScenario]:
        """One scenario, from a bench of its own to its verdict.

        Exceptions are recorded, not raised again: see ``OpenScenario.result``. ``victim`` names the disk or hub that it
        chooses first; drawn if empty.
        """
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
        wanted = _file_name(name)
        folder = next(one for one in _numbered(wanted) if one not in self._folders)
        self._folders.add(folder)
        path = self.directory / "scenarios" / folder
        path.mkdir(parents=True, exist_ok=True)
        return path

    def finish(self) -> tuple[Results, Path]:
        """Close the history, judge it, write the reports. Returns the results and the report's path.

        A signal that arrives meanwhile changes nothing: all interruptible work is over.
        """
        try:
            with signals_held(then_raise=False):
                self._close()  # a signal may have arrived just before signals were held
                self.recorder.record(ev.RunEnded(wall=_wall(), interrupted=self.interrupted))
                self.recorder.close()
                return write_outcome(self.directory)
        finally:
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
        self._opening = ev.ScenarioBegun(id=name, wall=_wall(), seed=run.seed, story=story, row=row)
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
        return Draw(streams.of(VICTIMS), self._name, wanted=self._victim, turn=self._run.options.turn)

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


def _restore(switch: dict[str, Any], dut: dict[str, Any], folder: Path, port: str) -> None:
    """Restore one port for the journal's sweep. Raises RigError and UsageError."""
    from plugpull.dut.real.restore import restore
    from plugpull.rig import model

    try:
        declared, machine = model.DeclaredSwitch.model_validate(switch), model.Dut.model_validate(dut)
    except ValueError as error:
        raise RigError(f"the journal of a killed run cannot be read: {error}") from None
    restore(declared, machine, folder, port)


def restore_what_was_left_off(cache: Cache, notify: Callable[[str], None]) -> None:
    """Restore what killed runs left off; ``notify`` gets a sentence for each."""
    sweep(cache.journals(make=False), notify, _restore)


def begin_run(options: Options, notify: Callable[[str], None]) -> Run:
    """Check everything that can be checked without touching anything, then make the run's directory and history.

    ``notify`` gets a sentence for each slow step and for each leftover that is cleaned up. Raises UsageError and
    RigError.
    """
    rig = load_rig(options.rig)
    cache = Cache.default(notify=notify)
    restore_what_was_left_off(cache, notify)
    directory = _make_directory(options.out, rig.rig.name)
    held = ExitStack()
    try:
        held.enter_context(Lease(rig, options.rig, run_dir=directory))
        journal = Journal(cache.journals(), directory)
        held.callback(journal.close)
        held.enter_context(signals_raise())
        recorder = Recorder(directory / HISTORY_FILE)
        held.callback(lambda: recorder.close(quietly=True))
        seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
        recorder.record(_opening(rig, options, seed))
        open_bench = _prepare(rig, options, cache, journal, held, notify)
    except BaseException:
        held.close()
        _remove_empty(directory)
        raise
    _point_latest(directory)
    return Run(options, rig, directory, recorder, seed, open_bench, held)


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
    )


def _prepare(
    rig: Rig, options: Options, cache: Cache, journal: Journal, held: ExitStack, notify: Callable[[str], None]
) -> OpenBench:
    if rig.dut.kind == "virtual":
        from plugpull.virtual.setting import prepare

        return prepare(rig, options.kernel, options.modules, options.accel, cache, journal, held, notify)
    if options.kernel is not None or options.modules:
        raise UsageError(
            f"--kernel and --module are for virtual rigs, but this rig's DUT is {rig.dut.kind}",
            hint="leave them out, and boot the kernel to be tested on the DUT",
            where=str(options.rig),
        )
    from plugpull.dut.real.bench import prepare_real

    return prepare_real(rig, options.rig, journal, held)


def _make_directory(out: Path | None, rig: str) -> Path:
    root = out or Path("runs")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        directory = root / f"{stamp}-{rig}{suffix}"
        try:
            directory.mkdir(parents=True)
            return directory.absolute()
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(
                f"cannot make the run's directory {directory}: {error.strerror}",
                hint="choose another directory with --out",
            ) from None
    raise UsageError(f"{root} has a thousand runs of this second already")


def _remove_empty(directory: Path) -> None:
    """Remove the directory of a run that never began. (A history with only its first line is not worth keeping.)"""
    with suppress(OSError):
        (directory / HISTORY_FILE).unlink(missing_ok=True)
        directory.rmdir()


def _point_latest(directory: Path) -> None:
    latest = directory.parent / "latest"
    half = directory.parent / f".latest-{os.getpid()}"
    with suppress(OSError):
        half.unlink(missing_ok=True)
        half.symlink_to(directory.name)
        half.replace(latest)


def _controller() -> dict[str, str]:
    return {
        "machine": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cpus": str(os.cpu_count() or 0),
        "platform": platform.platform(),
    }


def _file_name(scenario: str) -> str:
    """A folder name for a scenario: its file and function, without anything that could leave the parent folder."""
    path, _, name = scenario.partition("::")
    words = f"{path.rsplit('/', 1)[-1].removesuffix('.py')}-{name}" if name else path
    kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in words)
    return kept.strip("-.")[:120] or "scenario"


def _numbered(name: str) -> Iterator[str]:
    """This name, and then the same with numbers."""
    yield name
    for number in count(2):
        yield f"{name}-{number}"


def _wall() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
