"""The controller's end of the link to an agent: requests with deadlines, and a stream of messages.

execnet was considered in place of this protocol and does not serve: it bootstraps by sending its source and
executing it over the stream, which would have to happen again after each restored snapshot; it has no heartbeat
and no resynchronisation, so an agent that falls silent looks like one that has nothing to say.
"""

from __future__ import annotations

import json
import secrets
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from plugpull.dut.conversation.clock import DutClock, Exchange
from plugpull.errors import DutError, RigError

Message = dict[str, Any]
ASK_AGAIN = 2.0
"""Seconds after which an unanswered request for the time is sent again. Once, after a sleep of an emulated DUT, one was
never answered, while the agent's reports arrived all the time."""
MOST_OF_A_LINE = 8 << 20
"""Bytes. The longest line of an agent is a program's output: a megabyte, and JSON needs six bytes for one at most."""


class LineSplitter:
    """Cuts a stream into lines, keeping ``most`` bytes of a line at most.

    The sender must not decide how much memory is used."""

    def __init__(self, most: int = MOST_OF_A_LINE) -> None:
        self._most = most
        self._kept = bytearray()
        self._length = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """The lines that end in ``chunk``, without their ends; None for one that was too long."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._keep(part)
            yield bytes(self._kept) if self._length <= self._most else None
            self._kept, self._length = bytearray(), 0
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > self._most:
            self._kept = bytearray()
        else:
            self._kept += part


def _refuse(constant: str) -> None:
    """NaN and Infinity are not JSON, and no time or size that an agent could mean."""
    raise ValueError(f"{constant} is not JSON")


class GuardRefused(RigError):
    """The scratch guard on the DUT refused. Nothing was written."""


class AgentGone(RigError):
    """The agent does not answer, or its stream has ended."""


class _Pending:
    def __init__(self, done: threading.Event | None = None) -> None:
        self.done = done or threading.Event()
        self.answer: Message | None = None
        self.received = 0.0


class AgentLink:
    """Speaks with one agent over a connected socket. ``receive`` gets every message that is not an answer."""

    def __init__(self, connection: socket.socket, receive: Callable[[Message], None]) -> None:
        self._socket = connection
        self._receive = receive
        self._pending: dict[int, _Pending] = {}
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        # A restored agent may still answer what it was asked before it was saved: no two links use the same numbers.
        self._number = secrets.randbits(40)
        self._closing = False
        self.clock = DutClock()
        self.heard = time.monotonic()
        self.lost = ""
        self.unreadable = 0
        self._reader = threading.Thread(target=self._read, name="agent-link", daemon=True)
        self._reader.start()

    # --- requests -----------------------------------------------------------------------------------------------

    def call(self, op: str, timeout: float = 30.0, /, **arguments: Any) -> Any:
        """Ask the agent and return its answer. Raises GuardRefused, DutError if a disk is to blame for
        that, AgentGone, or RigError with the agent's reason."""
        deadline = time.monotonic() + timeout
        pending = self._ask(op, arguments, deadline)
        if not pending.done.wait(max(0.0, deadline - time.monotonic())):
            raise AgentGone(
                f"the agent did not answer {op!r} within {timeout:g} s",
                hint="see console.log and kernel.log for what the DUT was doing",
            )
        return self._result(op, pending)

    def _ask(self, op: str, arguments: Message, deadline: float, done: threading.Event | None = None) -> _Pending:
        pending = _Pending(done)
        with self._lock:
            if self.lost:
                raise AgentGone(self.lost)
            self._number += 1
            number = self._number
            self._pending[number] = pending
        line = json.dumps({"id": number, "op": op, "args": arguments}).encode() + b"\n"
        # A line that does not fit into the socket at once goes in pieces; no other line may come in between.
        if self._sending.acquire(timeout=max(0.0, deadline - time.monotonic())):
            try:
                self._send(line, deadline)
            except OSError as error:
                self._end(f"the stream to the agent broke: {error}")
            finally:
                self._sending.release()
        return pending

    def _send(self, line: bytes, deadline: float) -> None:
        """Send a line, or end the link: the agent could not read a line after half of another."""
        left = memoryview(line)
        while left:
            if not select.select([], [self._socket], [], max(0.0, deadline - time.monotonic()))[1]:
                if len(left) < len(line):
                    self._end("the agent does not read what it is sent")
                return
            with suppress(BlockingIOError):
                left = left[self._socket.send(left, socket.MSG_DONTWAIT) :]

    def _result(self, op: str, pending: _Pending) -> Any:
        answer = pending.answer
        if answer is None:
            raise AgentGone(self.lost or "the agent's stream ended")
        if answer.get("ok"):
            return answer.get("r")
        why, hint = str(answer.get("why", "no reason given")), str(answer.get("hint", ""))
        if answer.get("broken"):
            raise DutError(why, hint=hint)
        if answer.get("refused"):
            raise GuardRefused(why, hint=hint)
        raise RigError(f"the agent could not do {op!r}: {why}", hint=hint)

    def post(self, op: str, /, **arguments: Any) -> None:
        """Ask without waiting for the answer: for the thread that would have to read it."""
        self._ask(op, arguments, time.monotonic() + 5.0)

    def map_clock(self, timeout: float = 10.0) -> Exchange:
        """One exchange; remembered in ``clock``. Asks again if there is no answer for a while."""
        deadline = time.monotonic() + timeout
        answered = threading.Event()
        asked: list[tuple[float, _Pending]] = []
        while not answered.is_set():
            sent = time.monotonic()
            if sent >= deadline:
                raise AgentGone(f"the agent did not answer with its time within {timeout:g} s")
            asked.append((sent, self._ask("clock", {}, deadline, answered)))
            answered.wait(min(ASK_AGAIN, deadline - sent))
        sent, pending = next((one for one in asked if one[1].answer is not None), asked[0])
        dut = float(self._result("clock", pending)["at"])
        exchange = Exchange(sent, pending.received, dut)
        self.clock.add(exchange)
        return exchange

    # --- the stream ---------------------------------------------------------------------------------------------

    def _read(self) -> None:
        lines = LineSplitter()
        while True:
            try:
                chunk = self._socket.recv(1 << 16)
            except OSError as error:
                self._end(f"the stream from the agent broke: {error}")
                return
            if not chunk:
                self._end("the agent's stream ended")
                return
            self.heard = time.monotonic()
            for line in lines.feed(chunk):
                self._take(line)

    def _take(self, line: bytes | None) -> None:
        try:
            message = json.loads(line, parse_constant=_refuse) if line is not None else None
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or type(message.get("id", 0)) is not int:
            self.unreadable += 1
            return
        if "id" not in message:
            try:
                self._receive(message)
            except Exception:  # no message may end the thread that reads
                self.unreadable += 1
            return
        with self._lock:
            pending = self._pending.pop(message["id"], None)
        if pending is not None:
            pending.received = time.monotonic()
            pending.answer = message
            pending.done.set()

    def _end(self, why: str) -> None:
        with self._lock:
            already, self.lost = self.lost, self.lost or why
            waiting = list(self._pending.values())
            self._pending.clear()
        for pending in waiting:
            pending.done.set()
        if not already and not self._closing:
            self._receive({"ev": "link.lost", "why": why})

    def give_up(self, why: str) -> None:
        """Stop waiting for answers: every request, also a later one, raises AgentGone with ``why``."""
        with self._lock:
            self.lost = why
            waiting = list(self._pending.values())
            self._pending.clear()
        for pending in waiting:
            pending.done.set()

    def close(self) -> None:
        self._closing = True
        with suppress(OSError):  # the other end may have been quicker
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(5)
