"""Listens to the agent during a scenario: records its events, maps its clock, and notices when it falls silent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from plugpull.dut.bench import Bench, PostMortem
from plugpull.dut.console import stamp_of
from plugpull.dut.conversation.link import AgentGone, Message
from plugpull.dut.conversation.translation import translate
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder

MOST_EARLY = 100_000
"""Messages that are kept until the scenario begins. A correct agent sends a few hundred."""
MAPPING_INTERVAL = 1.0
"""Seconds between two exchanges of clocks, which are also the heartbeat."""
SILENCE = 10.0
"""Seconds without an answer after which the agent counts as lost. Generous: an emulated DUT may be starved by its
host."""
SLEEPING = 60.0
"""Seconds after which a DUT that was asked to sleep must be heard again. One whose USB device was cut meanwhile woke
after 10.6 s: it resumes one device after the other, and a control transfer to one that is gone takes 5 s to fail."""
POST_MORTEM = 3.0
"""Seconds to wait for signs of death that come by themselves: a process that ends, last words on a console."""
EXAMINED = 120.0
"""Seconds after which a post-mortem (``dut/post_mortem.py``) is over at the latest."""


class Listener:
    """Records what the agent sends.

    ``lost`` says why the agent is gone; it is empty while the agent answers. ``reports`` is the highest number of a
    report that was received, ``left_out`` how many of the reports are not recorded.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._bench: Bench | None = None
        self._jobs: dict[str, Callable[[Message], None]] = {}
        self._streams: dict[str, Callable[[Message], None]] = {}
        self._early: list[Message] = []
        self._too_early = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._keeper: threading.Thread | None = None
        self._unreadable = 0
        self._died = False
        self._losing = False
        self._sleep_asked = self._sleep_until = float("-inf")
        self._examined = threading.Event()
        self._examined.set()
        self.lost = ""
        self.reports = 0
        self.left_out = 0

    def hear(self, message: Message) -> None:
        """Handle one message of the agent. Runs in the link's thread."""
        with self._lock:
            if self._bench is None:
                if len(self._early) < MOST_EARLY:
                    self._early.append(message)
                else:
                    self._too_early += 1
                return
        self._take(message, self._bench)

    def begin(self, bench: Bench) -> None:
        """Record messages as events from here on, beginning with those that came before."""
        with self._lock:
            early, self._early = self._early, []
            self._bench = bench
        for message in early:
            self._take(message, bench)
        if self._too_early:
            self._fault(f"{self._too_early} messages came before the scenario and were dropped")
        self._map(bench)
        self._keeper = threading.Thread(target=self._keep, args=(bench,), name="listener", daemon=True)
        self._keeper.start()

    def end(self) -> None:
        """Stop listening. If the agent was lost, bring the DUT back and record what became of it."""
        self._stop.set()
        if self._keeper is not None:
            self._keeper.join(SILENCE + 5)
        self._examined.wait(EXAMINED)
        if self._bench is not None:
            self._count_unreadable(self._bench)
            if self.lost:
                self._conclude(self._bench.bring_back())

    def unanswered(self, why: str) -> None:
        """Find out what became of a DUT whose agent did not answer a request, unless that is known already.

        Nobody else notices if that happens at the end of a scenario: its heartbeat ends with it."""
        if self._bench is not None:
            self._agent_lost(why, self._bench)
            self._examined.wait(EXAMINED)

    def expect(self, job: str, ended: Callable[[Message], None]) -> None:
        """Call ``ended`` with the agent's message when this job ends."""
        with self._lock:
            self._jobs[job] = ended

    def expect_stream(self, job: str, said: Callable[[Message], None]) -> None:
        """Call ``said`` with each piece of this job's stream, in the thread that listens."""
        with self._lock:
            self._streams[job] = said

    def let_sleep(self, seconds: float) -> None:
        """Ask nothing of an agent whose machine is about to sleep, until it is heard after ``seconds``: it cannot
        answer while it is frozen, and what is on its way to it when its devices are suspended may be lost."""
        self._sleep_asked = time.monotonic()
        self._sleep_until = self._sleep_asked + seconds

    @property
    def asleep(self) -> bool:
        """Whether the machine was asked to sleep and has not been heard since it should be awake."""
        awake = self._bench is not None and self._bench.link.heard >= self._sleep_until
        return not awake and time.monotonic() < self._sleep_asked + SLEEPING

    def _take(self, message: Message, bench: Bench) -> None:
        try:
            if message.get("ev") == "stream":
                with self._lock:
                    said = self._streams.get(message["job"])
                if said is not None:
                    said(message)
            elif message.get("ev") == "job.end":
                with self._lock:
                    ended = self._jobs.pop(message["job"], None)
                    self._streams.pop(message["job"], None)
                if ended is not None:
                    ended(message)
            elif message.get("ev") == "link.lost":
                self._agent_lost(str(message.get("why") or "no reason given"), bench)
            else:
                event = translate(message, bench.disk_table)
                if event is not None:
                    self._recorder.record(event)
                number = int(message.get("report", 0))
                self.reports = max(self.reports, number)
                self.left_out += bool(number) and event is None
        except RigError:
            pass  # the recorder keeps its failure and raises it in the thread that waits on the history
        except Exception as error:
            # No message may end the thread that listens.
            self._fault(f"a message of the agent cannot be understood: {message!r:.200} ({error!r})")

    def _keep(self, bench: Bench) -> None:
        while not self._stop.wait(MAPPING_INTERVAL):
            if self.asleep:
                continue
            begun = time.monotonic()
            try:
                self._map(bench)
            except AgentGone as loss:
                if self._sleep_asked >= begun and not bench.link.lost:
                    continue  # it was asked to sleep when this question was under way
                if not self._stop.is_set() and not bench.link.lost:
                    self._agent_lost(f"the agent fell silent: {loss.what}", bench)
                return
            except RigError:
                return

    def _map(self, bench: Bench) -> None:
        exchange = bench.link.map_clock(SILENCE)
        error = (exchange.received - exchange.sent) / 2
        self._recorder.record(
            ev.ClockMapped(at=exchange.dut, controller=exchange.middle, error=error, ran=bench.cpu_seconds())
        )
        self._count_unreadable(bench)

    def _count_unreadable(self, bench: Bench) -> None:
        """Lines that arrived damaged are evidence that was lost."""
        count = bench.link.unreadable - self._unreadable
        if count:
            self._unreadable += count
            self._fault(f"{count} lines from the agent could not be read")

    def _agent_lost(self, why: str, bench: Bench) -> None:
        """Find out whether the DUT died with its agent, then end all waiting for the agent."""
        with self._lock:
            if self._losing or self._stop.is_set():
                return
            self._losing = True
            self._examined.clear()
        try:
            self._examine(why, bench)
        finally:
            self._examined.set()

    def _examine(self, why: str, bench: Bench) -> None:
        clock = bench.link.clock
        last_heard = clock.at(bench.link.heard)[0] if clock.mapped else None
        at = clock.now()[0] if clock.mapped else None
        found = bench.post_mortem(POST_MORTEM)
        if found.death is not None:
            self.lost = f"the DUT died: {found.death.headline}"
        else:
            self.lost = f"{why}; {found.says}" if found.says else why
        bench.link.give_up(self.lost)
        with suppress(RigError):  # as above: raised where somebody can act on it
            for line in found.console:
                stamp = stamp_of(line)
                if stamp is None or last_heard is None or stamp > last_heard:
                    self._recorder.record(ev.ConsoleLine(at=stamp, text=line))
            if found.death is not None:
                self._died = True
                self._recorder.record(found.death)
            self._recorder.record(ev.AgentLost(at=at, why=self.lost, last_heard=last_heard))

    def _conclude(self, found: PostMortem) -> None:
        with suppress(RigError):  # as above
            if found.says:
                self._recorder.record(ev.Note(text=found.says, subject="dut"))
            if found.death is not None and not self._died:
                self._died = True
                self._recorder.record(found.death)

    def _fault(self, summary: str) -> None:
        with suppress(RigError):  # as above
            self._recorder.record(ev.RigFault(summary=summary))
