"""Answers of an agent that was saved before it had answered."""

from __future__ import annotations

import json
import socket
import threading

from plugpull.dut.conversation.link import AgentLink


def asked(link: AgentLink, agent: socket.socket, late: tuple[int, ...]) -> tuple[object, int]:
    """What a call gets, and its number, if the agent first answers what other links had asked."""
    numbers = []

    def answer() -> None:
        number = json.loads(agent.makefile("rb").readline())["id"]
        numbers.append(number)
        for one, value in [*((other, "late") for other in late), (number, "right")]:
            agent.sendall(json.dumps({"id": one, "ok": True, "r": value}).encode() + b"\n")

    thread = threading.Thread(target=answer)
    thread.start()
    said = link.call("hello", 30.0)
    thread.join()
    return said, numbers[0]


def test_what_an_earlier_link_had_asked_is_no_answer_of_this_one() -> None:
    seen: list[int] = []
    for _ in range(3):
        ours, theirs = socket.socketpair()
        link = AgentLink(ours, lambda message: None)
        said, number = asked(link, theirs, tuple(seen))
        assert said == "right"
        seen.append(number)
        link.close()
        ours.close()
        theirs.close()
    assert len(set(seen)) == 3
