"""The controller's end of the link to the agent: answers, deadlines, broken streams."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, Queue

import pytest
from agents import PATIENCE

from plugpull.dut.conversation import link as module
from plugpull.dut.conversation.link import AgentGone, AgentLink, Message


@contextmanager
def link_by_hand() -> Iterator[tuple[AgentLink, socket.socket, Queue[Message]]]:
    """A link whose other end the test speaks for."""
    ours, theirs = socket.socketpair()
    reported: Queue[Message] = Queue()
    link = AgentLink(ours, reported.put)
    try:
        yield link, theirs, reported
    finally:
        link.close()
        ours.close()
        theirs.close()


def request(theirs: socket.socket) -> Message:
    theirs.settimeout(PATIENCE)
    return dict(json.loads(theirs.makefile("rb").readline()))


def test_an_answer_after_its_deadline_is_ignored() -> None:
    with link_by_hand() as (link, theirs, reported), ThreadPoolExecutor(1) as pool:
        late = pool.submit(link.call, "slow", 0.05)
        number = request(theirs)["id"]
        with pytest.raises(AgentGone, match=r"did not answer 'slow' within 0\.05 s"):
            late.result(PATIENCE)
        theirs.sendall(json.dumps({"id": number, "ok": True, "r": "late"}).encode() + b"\n")
        prompt = pool.submit(link.call, "quick", PATIENCE)
        number = request(theirs)["id"]
        theirs.sendall(json.dumps({"id": number, "ok": True, "r": "prompt"}).encode() + b"\n")
        assert prompt.result(PATIENCE) == "prompt"
        assert link.lost == ""
        with pytest.raises(Empty):
            reported.get_nowait()


def test_the_end_of_the_stream_wakes_all_who_wait() -> None:
    with link_by_hand() as (link, theirs, reported), ThreadPoolExecutor(10) as pool:
        waiting = [pool.submit(link.call, "hello", PATIENCE) for _ in range(10)]
        lines = theirs.makefile("rb")
        for _ in waiting:
            lines.readline()
        theirs.shutdown(socket.SHUT_RDWR)
        for call in waiting:
            with pytest.raises(AgentGone, match="stream ended"):
                call.result(PATIENCE)
        assert reported.get(timeout=PATIENCE)["ev"] == "link.lost"


def test_it_knows_when_it_last_heard_the_agent() -> None:
    with link_by_hand() as (link, theirs, reported):
        before = time.monotonic()
        assert link.heard <= before
        theirs.sendall(b'{"ev": "note"}\n')
        reported.get(timeout=PATIENCE)
        assert before <= link.heard <= time.monotonic()


def test_an_agent_that_says_nothing_is_given_up_at_the_deadline() -> None:
    with link_by_hand() as (link, _, reported):
        with pytest.raises(AgentGone, match=r"did not answer with its time within 0\.05 s"):
            link.map_clock(0.05)
        assert not link.clock.mapped
        assert link.lost == "", "a slow answer is no broken stream"
        assert reported.empty()


@pytest.mark.parametrize("answered", [0, 2], ids=["the first", "the last"])
def test_an_agent_that_does_not_say_its_time_is_asked_again(answered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASK_AGAIN", 0.05)
    with link_by_hand() as (link, theirs, _), ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        mapped = pool.submit(link.map_clock, PATIENCE)
        lines = theirs.makefile("rb")
        asked = [json.loads(lines.readline()) for _ in range(3)]
        assert [one["op"] for one in asked] == ["clock"] * 3
        answer = {"id": asked[answered]["id"], "ok": True, "r": {"at": 7.0}}
        theirs.sendall(json.dumps(answer).encode() + b"\n")
        exchange = mapped.result(PATIENCE)
        assert exchange.dut == 7.0
        assert exchange.sent - began >= 0.05 * answered, "an exchange begins with the request that was answered"


def test_a_request_over_a_broken_stream_is_lost_at_once() -> None:
    with link_by_hand() as (link, theirs, reported):
        theirs.close()
        assert reported.get(timeout=PATIENCE)["ev"] == "link.lost"
        for _ in range(2):
            with pytest.raises(AgentGone):
                link.call("hello", PATIENCE)
        assert reported.empty(), "the loss is reported once"


def test_lines_that_cannot_be_read_are_counted() -> None:
    unreadable = [b"garbage", b"[1]", b'"text"', b"\xff", b'{"half":', b"[" * 200_000, b'{"id": [1], "ok": true}']
    with link_by_hand() as (link, theirs, reported):
        theirs.sendall(b"\n".join(unreadable) + b"\n")
        theirs.sendall(b'{"ev": "note"}\n')
        assert reported.get(timeout=PATIENCE) == {"ev": "note"}
        assert link.unreadable == len(unreadable)
