"""What the kernel of a real DUT says between two scenarios is read, and judged in the second."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from stories import healthy

from plugpull.checks import kernel_between
from plugpull.checks.record.same_dut import same_dut
from plugpull.dut.agent import kmsg
from plugpull.dut.agent.kmsg import KernelLog
from plugpull.dut.conversation.disk_table import DiskTable
from plugpull.dut.conversation.translation import translate
from plugpull.history import events as ev
from plugpull.history.story import Story
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict

OOPS = "BUG: kernel NULL pointer dereference, address: 0000000000000010"
DISK = "I/O error, dev sdb, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1"


class Ring:
    """The kernel's ring buffer as /dev/kmsg shows it: a record per read, from the oldest on."""

    def __init__(self, *numbers: int) -> None:
        self.records = [b"4,%d,%d,-;record %d\n" % (number, number * 1000, number) for number in numbers]

    def module(self) -> Any:
        left = list(self.records)

        def read(fd: int, size: int) -> bytes:
            if not left:
                raise BlockingIOError
            return left.pop(0)

        return SimpleNamespace(**{**vars(os), "open": lambda *_: 3, "close": lambda fd: None, "read": read})


def log_at(first: int, monkeypatch: pytest.MonkeyPatch, ring: Ring) -> KernelLog:
    log = KernelLog.__new__(KernelLog)
    log._first, log._path, log.offset = first, "/dev/kmsg", 0.5
    monkeypatch.setattr(kmsg, "os", ring.module())
    return log


def test_what_was_said_between_is_read_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    said = log_at(9, monkeypatch, Ring(3, 4, 5, 6, 7, 8, 9, 10)).since(5)
    assert [record["seq"] for record in said["records"]] == [6, 7, 8]
    assert said["records"][0]["at"] == pytest.approx(0.506)
    assert said["lost"] == 0


def test_what_was_overwritten_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    said = log_at(9, monkeypatch, Ring(7, 8, 9)).since(3)
    assert ([record["seq"] for record in said["records"]], said["lost"]) == ([7, 8], 3)


def test_nothing_was_said_between(monkeypatch: pytest.MonkeyPatch) -> None:
    assert log_at(-1, monkeypatch, Ring(3, 4, 5)).since(5) == {"records": [], "lost": 0}


def earlier(text: str, level: int = 1, facility: int = 0) -> ev.EarlierMessage:
    message = {"ev": "kmsg.earlier", "at": 3.0, "text": text, "level": level, "seq": 7, "facility": facility}
    event = translate(message, DiskTable({}, {}))
    assert isinstance(event, ev.EarlierMessage)
    return event


def test_an_oops_between_scenarios_is_found_in_the_next() -> None:
    bench = healthy()
    bench.add(earlier(OOPS))
    (finding,) = bench.judge(kernel_between()).findings
    assert finding.summary.startswith("before this scenario began: ")
    assert OOPS in finding.summary
    assert judge_story(bench.story()).verdict is Verdict.FAIL


@pytest.mark.parametrize("message", [earlier(DISK, 3), earlier(OOPS, 1, facility=1), earlier("usb 1-1: reset", 6)])
def test_the_end_of_an_earlier_cut_and_what_a_process_wrote_accuse_nobody(message: ev.EarlierMessage) -> None:
    bench = healthy()
    bench.add(message)
    assert judge_story(bench.story()).verdict is Verdict.PASS


# --- taint ------------------------------------------------------------------------------------------------------------


def story_with(*states: ev.DutState, kind: str = "ssh") -> Story:
    bench = healthy()
    bench.add(*states)
    bench.events = [
        msgspec.structs.replace(event, kind=kind) if isinstance(event, ev.DutReady) else event for event in bench.events
    ]
    return bench.story()


@pytest.mark.parametrize(
    ("kind", "before", "now", "found"), [("ssh", 0, 512, 1), ("ssh", 512, 512, 0), ("virtual", 0, 512, 0)]
)
def test_a_taint_between_scenarios_is_found(kind: str, before: int, now: int, found: int) -> None:
    one = story_with(ev.DutState(at=25.0, moment="end", taint=before), kind=kind)
    two = story_with(ev.DutState(at=10.9, moment="begin", taint=now), kind=kind)
    findings = same_dut(two, one).findings
    assert len(findings) == found
    assert all(
        finding.summary == "the kernel was tainted before this scenario began: W, the kernel warned"
        for finding in findings
    )
