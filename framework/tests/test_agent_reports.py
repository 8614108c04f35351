"""The reports of the agent: numbered as they leave, and a disk announced before anything is said of it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

from plugpull.dut.agent.service import Service


class Sent:
    """An outbox that keeps what it is given, and gives way to other threads meanwhile."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        time.sleep(0.001)  # for another thread to overtake this one, if it can
        self.messages.append(message)


def test_reports_leave_in_the_order_of_their_numbers() -> None:
    service, sent = Service(lambda line: None), Sent()
    service.outbox = sent  # type: ignore[assignment]
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda number: service._send({"ev": "kmsg", "number": number}), range(200)):
            pass
    assert [message["report"] for message in sent.messages] == list(range(1, 201))


def test_a_disk_is_announced_before_anything_is_said_of_it() -> None:
    service, sent, before = Service(lambda line: None), Sent(), list[dict[str, Any]]()
    service.outbox = sent  # type: ignore[assignment]
    service.sampler = Mock()
    service.attendant = Mock(attach=lambda disk: before.extend(sent.messages))
    service._send({"ev": "disk.add", "disk": {"kname": "sda", "diskseq": 7}})
    assert [message["ev"] for message in before] == ["disk.add"]
