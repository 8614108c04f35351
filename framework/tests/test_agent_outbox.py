"""The agent's outbox: bounded, in order, and it outlives a broken stream."""

from __future__ import annotations

import json
import threading
from queue import Queue

from agents import PATIENCE

from plugpull.dut.agent.wire import Outbox
from plugpull.dut.conversation.link import Message


class Jam:
    """A stream that takes nothing until it is freed."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.entered = threading.Event()
        self.messages: Queue[Message] = Queue()

    def write(self, data: bytes) -> None:
        self.entered.set()
        assert self.free.wait(PATIENCE)
        for line in data.splitlines():
            self.messages.put(json.loads(line))


def test_an_outbox_that_is_full_drops_and_says_how_many() -> None:
    jam = Jam()
    outbox = Outbox(jam.write, limit=100)
    outbox.send({"n": -1})
    assert jam.entered.wait(PATIENCE)  # the first is on its way; nothing more is taken out of the queue

    def send(first: int) -> None:
        for number in range(first, first + 500):
            outbox.send({"n": number})

    threads = [threading.Thread(target=send, args=(500 * worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "sending must never block"
    jam.free.set()
    arrived = [jam.messages.get(timeout=PATIENCE) for _ in range(101)]
    outbox.send({"n": 9999})
    dropped, last = jam.messages.get(timeout=PATIENCE), jam.messages.get(timeout=PATIENCE)
    assert all("n" in message for message in arrived)
    assert (dropped["ev"], dropped["count"]) == ("dropped", 1900)
    assert last == {"n": 9999}


def test_an_outbox_keeps_order() -> None:
    jam = Jam()
    jam.free.set()
    outbox = Outbox(jam.write)
    for number in range(3000):
        outbox.send({"n": number})
    assert [jam.messages.get(timeout=PATIENCE)["n"] for _ in range(3000)] == list(range(3000))


def test_an_outbox_outlives_a_broken_stream() -> None:
    broken, written = threading.Event(), Queue[bytes]()

    def write(data: bytes) -> None:
        if not broken.is_set():
            broken.set()
            raise BrokenPipeError
        written.put(data)

    outbox = Outbox(write)
    outbox.send({"n": 1})
    assert broken.wait(PATIENCE)
    outbox.send({"n": 2})
    assert json.loads(written.get(timeout=PATIENCE)) == {"n": 2}


def test_a_muted_outbox_says_nothing() -> None:
    jam = Jam()
    jam.free.set()
    outbox = Outbox(jam.write)
    outbox.muted = True
    outbox.send({"n": 1})
    outbox.muted = False
    outbox.send({"n": 2})
    assert jam.messages.get(timeout=PATIENCE) == {"n": 2}
