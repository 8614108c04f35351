"""The processes of several benches: starts them, gives them tests, and ends them."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from plugpull.jobs.display import Display, name_of
from plugpull.jobs.messages import (
    AnyMessage,
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
from plugpull.jobs.schedule import Schedule, WaitForOthers

ENDS_WITHIN = 180.0
"""Seconds that a bench gets to restore power and to close its history after SIGTERM."""
EXITS_WITHIN = 60.0
"""Seconds that a process gets to exit after it has closed its end of the channel."""

Start = Callable[[int, socket.socket], subprocess.Popen[bytes]]
"""Starts the process of a bench: (its number, its end of the channel)."""


@dataclass
class BenchProcess:
    """One bench: its process, and what it has found and been given."""

    number: int
    process: subprocess.Popen[bytes]
    channel: Channel
    tests: list[FoundTest] = field(default_factory=list)
    ready: bool = False
    """It has asked for a test."""
    refused: str = ""
    """Why it could not be used."""
    finished: bool = False
    """The bench knows that there are no more tests."""


class Benches:
    """Runs the tests that the benches collect, each on one of them.

    A bench that dies takes the test that it was running with it; the others go on. ``faults`` says what went wrong.
    """

    def __init__(self, start: Start, count: int, display: Display, planned: Callable[[list[FoundTest]], None]) -> None:
        self._start = start
        self._count = count
        self._display = display
        self._planned = planned
        self._selector = selectors.DefaultSelector()
        self._benches: dict[int, BenchProcess] = {}
        self._waiting: list[BenchProcess] = []
        self._schedule: Schedule | None = None
        self._ending = False
        self.tests: list[FoundTest] = []
        self.whole: int | None = None
        self.deselected: list[str] = []
        self.results: dict[int, Concluded] = {}
        self.faults: list[str] = []
        self.refusals: list[BenchRefused] = []
        self.died = False
        """A process ended without cleaning up."""

    def run(self) -> None:
        """Start the benches, and run all tests. Returns when all processes have ended."""
        for number in range(1, self._count + 1):
            channel, theirs = Channel.pair()
            with theirs:
                bench = BenchProcess(number, self._start(number, theirs), channel)
            self._benches[number] = bench
            self._selector.register(channel, selectors.EVENT_READ, bench)
        self._serve()

    def end(self) -> None:
        """Have all benches restore power and end, and wait until they have."""
        self._ending = True
        for bench in self._benches.values():
            with suppress(ProcessLookupError):
                bench.process.send_signal(signal.SIGTERM)
        if not self._serve(time.monotonic() + ENDS_WITHIN):
            for bench in self._benches.values():
                bench.process.kill()
            self._serve()

    def _serve(self, deadline: float | None = None) -> bool:
        """Answer the benches until all of them have ended. Returns False at the deadline."""
        while self._benches:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            for key, _ in self._selector.select(left):
                bench: BenchProcess = key.data
                message = bench.channel.receive()
                if message is None:
                    self._gone(bench)
                else:
                    self._take(bench, message)
        return True

    def _take(self, bench: BenchProcess, message: AnyMessage) -> None:
        match message:
            case FoundTest():
                bench.tests.append(message)
            case Deselected():
                self.deselected.append(message.name)
            case Collected():
                self._collected(bench, message)
            case Ready():
                self._give(bench)
            case Happened():
                self._display.happened(bench.number, message)
            case Concluded():
                self.results[message.index] = message
                self._display.tested(bench.number, self.tests[message.index], message)
            case BenchRefused():
                bench.refused = message.text
                self.refusals.append(message)

    def _collected(self, bench: BenchProcess, message: Collected) -> None:
        if self._schedule is None:
            self.tests, self.whole = bench.tests, message.whole
            self._schedule = Schedule(self.tests)
            self._planned(self.tests)
        elif [test.name for test in bench.tests] != [test.name for test in self.tests]:
            self.faults.append(f"bench {bench.number} found other tests than bench 1, and ran none")
            self._dismiss(bench)

    def _give(self, bench: BenchProcess) -> None:
        bench.ready = True
        if self._schedule is None or self._ending or bench.finished:
            self._dismiss(bench)
            return
        given = self._schedule.next(bench.number)
        if isinstance(given, WaitForOthers):
            self._waiting.append(bench)
        elif given is None:
            self._dismiss(bench)
            self._ask_again()
        else:
            self._display.begun(bench.number, self.tests[given])
            bench.channel.send(RunTest(index=given))

    def _dismiss(self, bench: BenchProcess) -> None:
        bench.finished = True
        bench.channel.send(NoMore())

    def _ask_again(self) -> None:
        """Serve the benches that had to wait."""
        waiting, self._waiting = self._waiting, []
        for bench in waiting:
            self._give(bench)

    def _gone(self, bench: BenchProcess) -> None:
        """A process has closed its end of the channel: it ended, or is about to.

        A signal may interrupt this at any step, and then ``end`` comes here again.
        """
        if bench.number in self._benches:
            self._account_for(bench)
            del self._benches[bench.number]
        if self._schedule is not None:
            self._schedule.lost(bench.number)
        if bench in self._waiting:
            self._waiting.remove(bench)
        with suppress(KeyError):
            self._selector.unregister(bench.channel)
        bench.channel.close()
        self._ask_again()

    def _account_for(self, bench: BenchProcess) -> None:
        """How a process ended, and whether that is a fault."""
        try:
            status = bench.process.wait(EXITS_WITHIN)
        except subprocess.TimeoutExpired:
            bench.process.kill()
            status = bench.process.wait()
        self.died = self.died or status < 0
        if self._unforeseen(bench, status):
            self._failed(bench, status)

    def _unforeseen(self, bench: BenchProcess, status: int) -> bool:
        """Whether this end has to be explained. SIGTERM is what ``end`` sends; no other signal is a bench's own end."""
        if self._ending:
            return status < 0 and status != -signal.SIGTERM
        return status < 0 or not bench.finished

    def _failed(self, bench: BenchProcess, status: int) -> None:
        lost = self._schedule.running.get(bench.number) if self._schedule is not None else None
        how = f"was killed by {_signal(-status)}" if status < 0 else f"ended with exit status {status}"
        while_ = f" while it ran {name_of(self.tests[lost])}" if lost is not None else ""
        text = f"bench {bench.number} {how}{while_}{f': {bench.refused}' if bench.refused else ''}"
        if text not in self.faults:
            self.faults.append(text)
        if bench.ready and not bench.refused:
            self._display.said(bench.number, text.partition(" ")[2].partition(" ")[2])


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def start_process(command: list[str], log: int, theirs: socket.socket) -> subprocess.Popen[bytes]:
    """Start the process of a bench in a session of its own, so that Ctrl-C reaches it through its run alone."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(theirs.fileno(),),
        start_new_session=True,
        env=os.environ,
    )
