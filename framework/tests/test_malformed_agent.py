"""Malformed messages of an agent do not end the thread that listens to it."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

from desks import desk

from plugpull.dut.conversation.link import AgentLink
from plugpull.history import events as ev
from plugpull.qualify.observer import PortObserver


def test_a_loss_without_a_reason_is_recorded(tmp_path: Path) -> None:
    with desk(tmp_path) as bench:
        bench.report({"ev": "link.lost"})
        assert "no reason given" in bench.wait_for(ev.AgentLost).why


def test_a_loss_without_a_reason_is_seen_by_the_observer_of_ports() -> None:
    observer = PortObserver()
    observer.receive({"ev": "link.lost"})
    assert observer._dead == "no reason given"


def test_a_listener_that_fails_does_not_end_the_link() -> None:
    ours, theirs = socket.socketpair()
    heard: list[dict[str, Any]] = []

    def receive(message: dict[str, Any]) -> None:
        heard.append(message)
        raise KeyError("why")

    link = AgentLink(ours, receive)
    try:
        for number in range(2):
            theirs.sendall(json.dumps({"ev": "x", "number": number}).encode() + b"\n")
        deadline = time.monotonic() + 30
        while len(heard) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [message["number"] for message in heard] == [0, 1]
    finally:
        link.close()
        ours.close()
        theirs.close()
    assert link.unreadable == 2
