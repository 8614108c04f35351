"""The run behind a pytest session."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TextIO, cast

import pytest
from rich.console import Console

from plugpull.draw import NO_METER, disks_behind_meters, disks_too_small, night
from plugpull.errors import NoFilesystem, NotServed, RigError, UsageError
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.expected_findings import read_expected
from plugpull.history import events as ev
from plugpull.judging.coverage import sentences
from plugpull.judging.lasting import listed
from plugpull.judging.results import Results, ScenarioResult, Verdict
from plugpull.plain import clean_line
from plugpull.plugin_stash import ITEMS, SKIPPED, STDOUT, VERDICT, WHOLE, argv_of, stock_rig
from plugpull.progress import Lines, notify_for
from plugpull.report.live import LiveView, View, view_for
from plugpull.report.text import duration
from plugpull.run import OpenScenario, Run, begin_run
from plugpull.run_options import Options
from plugpull.scenario import ScenarioRig
from plugpull.soak import Soak
from plugpull.soak.length import parse_length
from plugpull.soak.progress import SoakProgress
from plugpull.soak.state import SoakState, read_state
from plugpull.soak.turn import wall

RESULT: pytest.StashKey[ScenarioResult] = pytest.StashKey()
NOT_SERVED: pytest.StashKey[str] = pytest.StashKey()
"""Why a fixture of the scenario found this rig unable to serve it."""


class ViewOfBench(View, Protocol):
    """Shows what happens on one bench of several."""

    def notify(self, text: str) -> None: ...


@dataclass(frozen=True)
class OneOfSeveral:
    """One bench of several side by side: its number, how many they are, its part's directory, and what shows its
    events."""

    number: int
    benches: int
    directory: Path
    view: ViewOfBench


BENCH: pytest.StashKey[OneOfSeveral] = pytest.StashKey()
"""Set if other processes run the other scenarios of the plan."""


class PlugpullSession:
    """A run, begun with the first scenario.

    An unusable rig ends the whole session, because every scenario would report the same.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._open: OpenScenario | None = None
        self._outcome: tuple[Results, Path] | None = None
        self._refused = ""
        self._others_failed = False
        self._without: dict[str, str] = {}
        """Filesystems that the DUT does not have, and the words in which it said so."""
        self._console = _console(config)
        self._bench = config.stash.get(BENCH, None)
        self._view: View = view_for(self._console) if self._bench is None else self._bench.view
        notify = notify_for(self._console) if self._bench is None else Lines(self._bench.view.notify)
        self._notify = notify
        self._state: SoakState | None = None
        self._soak: Soak | None = None
        try:
            self._run: Run = begin_run(self._options(), notify)
        except (UsageError, RigError) as error:
            status = EXIT_USAGE if isinstance(error, UsageError) else EXIT_UNKNOWN
            pytest.exit(str(error), returncode=status)
        except KeyboardInterrupt as interrupt:
            why = f"interrupted while preparing the bench: {interrupt or 'Ctrl-C'}"
            pytest.exit(why, returncode=EXIT_UNKNOWN)
        self._run.recorder.subscribe(self._view)
        for item, reason in config.stash.get(SKIPPED, []):
            self._skipped_outside(item, reason)

    @property
    def directory(self) -> Path:
        """The run's directory."""
        return self._run.directory

    @property
    def interrupted(self) -> str:
        """The signal that ended the run early; empty if none did."""
        return self._run.interrupted

    def _options(self) -> Options:
        option = self._config.getoption
        options = self._usual_options()
        if option("--plugpull-resume"):
            run = Path(option("--plugpull-resume")).absolute()
            self._state = state = read_state(run)
            assert state.begun is not None  # as read_state returns it
            assert state.soak is not None
            event = ev.RunResumed(wall=wall(), interrupted=state.interrupted, argv=argv_of(self._config))
            seed, lasting = state.begun.seed, state.soak.seconds
            return replace(options, seed=seed, directory=run, planned=None, lasting=lasting, resumed=event)
        if option("--plugpull-for"):
            return replace(options, planned=None, lasting=parse_length(option("--plugpull-for")))
        return options

    def _usual_options(self) -> Options:
        option = self._config.getoption
        return Options(
            rig=Path(option("--rig")) if option("--rig") else stock_rig(),
            out=Path(option("--plugpull-out")) if option("--plugpull-out") else None,
            seed=option("--plugpull-seed"),
            kernel=option("--plugpull-kernel"),
            modules=tuple(Path(name) for name in option("--plugpull-module")),
            accel=option("--plugpull-accel"),
            argv=argv_of(self._config),
            turn=night(option("--plugpull-rotate")) if option("--plugpull-rotate") else None,
            repeats=option("--plugpull-repeats"),
            planned=tuple(scenario_id(item) for item in self._config.stash[ITEMS] if is_scenario(item)),
            shard=option("--plugpull-shard") or "",
            whole=self._config.stash.get(WHOLE, None),
            bench=0 if self._bench is None else self._bench.number,
            benches=1 if self._bench is None else self._bench.benches,
            directory=None if self._bench is None else self._bench.directory,
            expected=read_expected(item.path.parent for item in self._config.stash[ITEMS] if is_scenario(item)),
        )

    # --- one scenario ---------------------------------------------------------------------------------------------

    @contextmanager
    def scenario(self, item: pytest.Item, victim: str = "") -> Iterator[ScenarioRig]:
        lacking = self._lacking(item)
        if lacking:
            pytest.skip(lacking)
        row, story = row_and_story(item)
        self._view.start()
        try:
            with self._run.scenario(scenario_id(item), story, row, victim) as opened:
                self._open = opened
                try:
                    rig = opened.open()
                except BaseException as error:
                    opened.failed(error)
                    if not isinstance(error, RigError | UsageError):
                        raise
                    self._close(item)
                    if isinstance(error, UsageError):
                        # Only the DUT could report that this rig must not be used. Nothing was touched.
                        self._refused = str(error)
                        pytest.exit(self._refused, returncode=EXIT_USAGE)
                    pytest.fail(_text(opened.result), pytrace=False)
                yield rig
        finally:
            self._open = None
            self._view.stop()

    def _lacking(self, item: pytest.Item) -> str:
        """Why this rig cannot serve a scenario, if that is known before a bench is opened for it: a study of power
        without a meter, or a scenario with a parameter ``fstype`` whose filesystem is too large for each disk, or which
        the DUT did not have for an earlier scenario."""
        mark = item.get_closest_marker("study")
        wants_meter = mark is not None and mark.kwargs.get("meter", False)
        if wants_meter and not disks_behind_meters(self._run.rig):
            return NO_METER
        callspec = getattr(item, "callspec", None)
        fstype = None if callspec is None else callspec.params.get("fstype")
        if not isinstance(fstype, str):
            return ""
        return self._without.get(fstype) or disks_too_small(self._run.rig, fstype)

    @contextmanager
    def soak(self, item: pytest.Item) -> Iterator[Soak]:
        """The soak of the run. Skips the test if nothing of this rig can be cut, or if the run has a soak already."""
        if self._soak is not None:
            pytest.skip("a run has one soak: choose it with -k, and run the others by themselves")
        row, story = row_and_story(item)
        self._view.start()
        try:
            self._soak = Soak(self._run, scenario_id(item), story, row, self._state, self._show_soak)
            if isinstance(self._view, LiveView):
                self._view.above = self._soak.progress.render
            yield self._soak
        except NotServed as error:
            pytest.skip(error.what)
        finally:
            self._view.stop()

    def _show_soak(self, progress: SoakProgress, result: ScenarioResult | None) -> None:
        if result is not None:
            self._view.verdict(result.id, result.verdict, result.sentence, result.seconds)
            self._notify(progress.text())

    def conclude_soak(self, item: pytest.Item) -> None:
        """Pass the worst verdict of a soak's turns to pytest."""
        worst = None if self._soak is None else self._soak.worst
        if worst is not None:
            item.stash[RESULT] = worst
            if worst.verdict is not Verdict.PASS:
                pytest.fail(f"{worst.id}: {_text(worst)}", pytrace=False)

    def raised(self, error: BaseException) -> None:
        """Record why the open scenario stopped with an exception, or why it was skipped."""
        if self._open is None:
            return
        if isinstance(error, pytest.skip.Exception):
            self._open.skipped(error.msg or "no reason given")
        elif isinstance(error, NotServed) and not self._open.cut:
            self._open.skipped(error.what)
            if isinstance(error, NoFilesystem):
                self._without[error.fstype] = error.what
        elif isinstance(error, pytest.fail.Exception):
            self._open.failed(AssertionError(error.msg))
        else:
            self._open.failed(error)

    def erred(self, item: pytest.Item, when: str, error: BaseException) -> None:
        """Record that a phase of a test ended with an exception. A scenario's body and opening record their own."""
        if not is_scenario(item):
            return
        if self._open is not None and self._open.result is None:
            self.raised(error)
            if isinstance(error, NotServed):
                item.stash[NOT_SERVED] = error.what
        elif self._open is None and when == "setup" and isinstance(error, pytest.skip.Exception):
            self._skipped_outside(item, error.msg or "")
        elif when == "teardown" or (when == "setup" and item.stash.get(RESULT, None) is None):
            self._run.fault(f"{when} of {scenario_id(item)}: {type(error).__name__}: {error}")

    def _skipped_outside(self, item: pytest.Item, reason: str) -> None:
        if is_scenario(item):
            self._run.skipped(scenario_id(item), reason)

    def _close(self, item: pytest.Item) -> ScenarioResult:
        assert self._open is not None
        result = self._open.close()
        if not self._open.skip_reason:
            item.stash[RESULT] = result
            self._view.verdict(result.id, result.verdict, result.sentence, result.seconds)
        return result

    def conclude(self, item: pytest.Item) -> None:
        """End the scenario after its body: heal, judge, and pass the verdict to pytest."""
        assert self._open is not None
        result = self._close(item)
        if self._open.skip_reason:
            pytest.skip(self._open.skip_reason)
        if result.verdict is not Verdict.PASS:
            pytest.fail(_text(result), pytrace=False)

    def annotate(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Add a scenario's verdict to pytest's report, and note the failures of other tests."""
        result = item.stash.get(RESULT, None)
        if result is not None and report.when in ("call", "setup") and not (report.when == "setup" and report.passed):
            setattr(report, VERDICT, result.verdict.value)
            report.when = "call"
            report.user_properties.append(("plugpull_run", str(self._run.directory)))
        elif report.failed and NOT_SERVED in item.stash:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {clean_line(item.stash[NOT_SERVED])}")
        elif report.failed and not is_scenario(item):
            self._others_failed = True

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """pytest's hook for a session that is cut short, also between two scenarios or while one is being closed.

        Scenarios that were not run must not look as if they had passed.
        """
        why = f"refused: {self._refused}" if self._refused else f"interrupted: {excinfo.value or 'Ctrl-C'}"
        self._run.interrupted = self._run.interrupted or why

    # --- the end --------------------------------------------------------------------------------------------------

    def finish(self, status: int) -> int:
        """Judge the run and write its files. Returns plugpull's exit status: 0, 1, 2 or 3; of one bench of several
        pytest's, for nothing is judged before all parts are there."""
        self._outcome = self._run.finish()
        if self._refused:
            return EXIT_USAGE
        ended = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
        if status not in ended or self._outcome is None:
            return status
        results = self._outcome[0]
        if results.verdict is Verdict.PASS and self._others_failed:
            return status
        return {Verdict.PASS: EXIT_PASS, Verdict.FAIL: EXIT_FAIL}.get(results.verdict, EXIT_UNKNOWN)

    def summarize(self, terminal: Any) -> None:
        if self._outcome is None:
            return
        results, report = self._outcome
        terminal.section("plugpull")
        for line in summary(results):
            terminal.write_line(clean_line(line))
        terminal.write_line(f"report: {report}")
        if self._soak is not None and self._run.interrupted and self._soak.progress.left > 0:
            terminal.write_line(f"to go on: plugpull run --resume {self.directory}")


def summary(results: Results) -> Iterator[str]:
    """The results of a run in a few lines, with the time that each scenario took; the last one is its verdict."""
    for scenario in listed(results):
        yield f"{scenario.verdict.value:8}{scenario.id} ({duration(scenario.seconds)})"
        if scenario.verdict is not Verdict.PASS:
            yield from (f"        {line}" for line in _lines(scenario))
    if more := len(results.scenarios) - len(listed(results)):
        yield f"{'PASS':8}{more} scenarios, not listed here"
    for skipped in results.skipped:
        yield f"{'skipped':8}{skipped.id}"
        yield f"        {skipped.reason}"
    if not results.measurements or any(scenario.cuts for scenario in results.scenarios):
        yield from sentences(results.coverage)  # a run of studies cuts nothing
    yield from (
        f"expected and not found: {one.name}, in {one.scenarios} scenario{'s' * (one.scenarios != 1)}: {one.reference}"
        for one in results.expected
        if not one.matched
    )
    yield from (f"unknown: {reason}" for reason in results.unknowns if reason not in results.sentence)
    yield results.sentence


def is_scenario(item: pytest.Item) -> bool:
    """True if this test uses plugpull's ``rig`` or ``soak`` fixture, directly or through other fixtures."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    definitions = (*known.get("rig", ()), *known.get("soak", ()))
    return any(definition.func.__module__ == "plugpull.plugin" for definition in definitions)


def scenario_id(item: pytest.Item) -> str:
    """pytest's node id, completed with the file's path. Outside its root directory, pytest leaves folders out, and two
    files of one name would share their ids."""
    config = item.config
    if item.path.is_relative_to(config.rootpath):
        return item.nodeid
    name = item.nodeid.partition("::")[2]
    here = config.invocation_params.dir
    path = item.path.relative_to(here) if item.path.is_relative_to(here) else item.path
    return f"{path}::{name}"


def row_and_story(item: pytest.Item) -> tuple[str, str]:
    """The experiment that a scenario stands for (empty: none), and its docstring."""
    marker = item.get_closest_marker("row")
    story = paragraphs(getattr(getattr(item, "function", None), "__doc__", "") or item.name)
    return (str(marker.args[0]) if marker else ""), story


def paragraphs(docstring: str) -> str:
    """The text of a docstring, each paragraph on one line; where its lines end depends on the width of the file."""
    return "\n\n".join(" ".join(each.split()) for each in re.split(r"\n\s*\n", docstring.strip()))


def _console(config: pytest.Config) -> Console:
    stdout = config.stash.get(STDOUT, None)
    if stdout is None:
        return Console(stderr=True)
    # rich gets the terminal's width from the standard streams, which pytest has captured.
    width = os.get_terminal_size(stdout.fileno()).columns if stdout.isatty() else None
    return Console(file=cast("TextIO", stdout), width=width)


def _text(result: ScenarioResult | None) -> str:
    return "UNKNOWN" if result is None else "\n".join(map(clean_line, _lines(result)))


def _lines(result: ScenarioResult) -> list[str]:
    lines = [result.sentence]
    lines += [
        f"  {finding.check}: {finding.summary}" + (f" (expected: {finding.expected})" if finding.expected else "")
        for finding in result.findings
    ]
    return [*lines, *(f"  unknown: {reason}" for reason in result.unknowns)]
