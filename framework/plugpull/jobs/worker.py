"""The pytest plugin of one bench of several: it runs the tests that it is given, and reports on them."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from plugpull.exit_status import EXIT_UNKNOWN
from plugpull.history.events import Event
from plugpull.jobs.messages import (
    LONGEST,
    BenchRefused,
    Channel,
    Collected,
    Concluded,
    Deselected,
    FoundTest,
    Happened,
    NoMore,
    Ready,
    RunTest,
)
from plugpull.judging.results import Verdict
from plugpull.plugin_session import BENCH, RESULT, OneOfSeveral, is_scenario, scenario_id
from plugpull.plugin_stash import WHOLE
from plugpull.report.narrate import narrate
from plugpull.report.text import one_line

Estimate = Callable[[Sequence[pytest.Item]], dict[str, float]]
"""How long scenarios are expected to take, in seconds by id."""


class ChannelView:
    """Sends the events of a scenario instead of showing them."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def start(self) -> None:
        """Nothing to prepare."""

    def stop(self) -> None:
        """Nothing to end."""

    def __call__(self, event: Event) -> None:
        line = narrate(event)
        if line is not None:
            self._channel.offer(Happened(words=line.words, at=line.at, tone=line.tone.value))

    def verdict(self, scenario_id: str, verdict: Verdict, sentence: str, seconds: float | None = None) -> None:
        """Nothing: ``Worker`` sends it when the test has ended."""

    def notify(self, text: str) -> None:
        """Send a sentence about a slow step."""
        self._channel.offer(Happened(words=one_line(text, LONGEST)))


class Worker:
    """Collects all tests, and then runs those that it is given, until there are no more.

    If the process that gives them is killed, the scenario that runs is ended as by SIGTERM: its bench is healed, and
    its history says so.
    """

    def __init__(self, channel: Channel, number: int, benches: int, directory: Path, estimate: Estimate) -> None:
        self._channel = channel
        self._number = number
        self._benches = benches
        self._directory = directory
        self._estimate = estimate
        self._given: queue.SimpleQueue[RunTest | NoMore] = queue.SimpleQueue()
        self._over = False
        self._reports: list[pytest.TestReport] = []

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[BENCH] = OneOfSeveral(self._number, self._benches, self._directory, ChannelView(self._channel))
        threading.Thread(target=self._listen, name="given tests", daemon=True).start()

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            self._channel.send(Deselected(name=item.name))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        times = self._estimate(session.items)
        for item in session.items:
            name = scenario_id(item) if is_scenario(item) else ""
            alone = item.get_closest_marker("study") is not None
            self._channel.send(FoundTest(name=item.nodeid, scenario=name, seconds=times.get(name), alone=alone))
        whole = session.config.stash.get(WHOLE, None)
        self._channel.send(Collected(count=len(session.items), whole=None if whole is None else len(whole)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """pytest's own loop (``_pytest/main.py``), except that another process says which test is next."""
        if session.testsfailed or session.config.option.collectonly:
            return None  # pytest reports errors of the collection
        while True:
            self._channel.send(Ready())
            given = self._given.get()
            if isinstance(given, NoMore):
                self._over = True
                return True
            self._run(session.items[given.index], given.index)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)

    def _run(self, item: pytest.Item, index: int) -> None:
        self._reports = []
        # The test that comes next is not known yet: fixtures that several tests share are made again.
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        result = item.stash.get(RESULT, None)
        if result is not None:
            self._channel.send(
                Concluded(
                    index=index,
                    verdict=result.verdict.value,
                    seconds=result.seconds,
                    sentence=one_line(result.sentence, LONGEST),
                )
            )
            return
        outcome = next((report.outcome for report in self._reports if report.outcome != "passed"), "passed")
        why = next((_reason(report) for report in self._reports if report.skipped), "")
        took = sum(report.duration for report in self._reports)
        self._channel.send(Concluded(index=index, verdict=outcome, seconds=took, sentence=one_line(why, LONGEST)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """pytest's hook for a session that is cut short, also by ``pytest.exit``."""
        error = excinfo.value
        if isinstance(error, pytest.exit.Exception):
            status = EXIT_UNKNOWN if error.returncode is None else int(error.returncode)
            self._channel.send(BenchRefused(text=error.msg[:LONGEST], status=status))

    def _listen(self) -> None:
        while True:
            message = self._channel.receive()
            if isinstance(message, RunTest | NoMore):
                self._given.put(message)
            elif message is None:
                break
        if not self._over:
            os.kill(os.getpid(), signal.SIGTERM)


def _reason(report: pytest.TestReport) -> str:
    where = report.longrepr
    return str(where[2]).removeprefix("Skipped: ") if isinstance(where, tuple) else str(where or "")
