"""What a run and the processes of its benches say to each other, over a pair of sockets.

Each message is one datagram (``SOCK_SEQPACKET``), so a thread can send one without a lock, and a reader gets it whole.
The end of the stream means that the other side is gone, however it ended.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Self

import msgspec

LONGEST = 4000
"""Characters of a text that are sent at most."""
_BUFFER = 1 << 18


class BenchMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all messages."""


class FoundTest(BenchMessage, frozen=True, kw_only=True, tag="found"):
    """A test that a bench collected. ``scenario`` is its id, empty for a test that is not a scenario. ``seconds`` is
    how long it is expected to take, if known. ``alone``: it measures, so no other bench may run at the same time."""

    name: str
    scenario: str = ""
    seconds: float | None = None
    alone: bool = False


class Deselected(BenchMessage, frozen=True, kw_only=True, tag="deselected"):
    """A test that was not chosen."""

    name: str


class Collected(BenchMessage, frozen=True, kw_only=True, tag="collected"):
    """All tests have been found. ``whole`` is the number of scenarios of all shards, if this run is one of several."""

    count: int
    whole: int | None = None


class Ready(BenchMessage, frozen=True, kw_only=True, tag="ready"):
    """The bench asks for its next test."""


class RunTest(BenchMessage, frozen=True, kw_only=True, tag="run"):
    """The bench is to run the test with this index."""

    index: int


class NoMore(BenchMessage, frozen=True, kw_only=True, tag="no-more"):
    """The bench is to end its part of the run."""


class Happened(BenchMessage, frozen=True, kw_only=True, tag="happened"):
    """Something noteworthy in the scenario that runs. ``at`` is the DUT's time in seconds; ``tone`` is how much it
    matters (``report/narrate.py``)."""

    words: str
    at: float | None = None
    tone: str = "plain"


class Concluded(BenchMessage, frozen=True, kw_only=True, tag="concluded"):
    """A test ended. ``verdict`` is that of a scenario, ``skipped``, or pytest's outcome of another test."""

    index: int
    verdict: str
    seconds: float = 0.0
    sentence: str = ""


class BenchRefused(BenchMessage, frozen=True, kw_only=True, tag="refused"):
    """The bench could not be used. ``status`` is the exit status that this calls for."""

    text: str
    status: int


AnyMessage = FoundTest | Deselected | Collected | Ready | RunTest | NoMore | Happened | Concluded | BenchRefused

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyMessage] = msgspec.json.Decoder(AnyMessage)


class Channel:
    """One end of the pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    @classmethod
    def inherited(cls, descriptor: int) -> Self:
        """The end that a process was started with."""
        end = socket.socket(fileno=descriptor)
        end.set_inheritable(False)
        return cls(end)

    @staticmethod
    def pair() -> tuple[Channel, socket.socket]:
        """Two connected ends: one for this process, and one for another."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return Channel(ours), theirs

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: BenchMessage) -> None:
        """Send a message. If nobody is there any more, it is lost."""
        with suppress(OSError):
            self._socket.send(_encoder.encode(message))

    def offer(self, message: BenchMessage) -> None:
        """Send a message unless that would have to wait: progress must not hold up a bench."""
        with suppress(OSError):
            self._socket.send(_encoder.encode(message), socket.MSG_DONTWAIT)

    def receive(self) -> AnyMessage | None:
        """Wait for the next message; ``None`` when the other side is gone."""
        try:
            data = self._socket.recv(_BUFFER)
        except ConnectionError:
            return None
        return _decoder.decode(data) if data else None

    def close(self) -> None:
        self._socket.close()
