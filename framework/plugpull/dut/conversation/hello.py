"""The first request to a connected agent: who the DUT is, and how the clock of its kernel log runs."""

from __future__ import annotations

from plugpull.dut.conversation.link import AgentLink, Message
from plugpull.history import events as ev

ANSWER = 30.0
"""Seconds a connected agent gets to answer on a busy machine; it takes a tenth of one."""


def hello(
    link: AgentLink,
    *,
    kind: ev.DutKind,
    how: ev.DutReached,
    took: float,
    accel: str = "",
    threads: int = 0,
    modules: tuple[str, ...] = (),
) -> ev.DutReady:
    """The event that records a ready DUT. Raises AgentGone and RigError."""
    said: Message = link.call("hello", ANSWER)
    offset, error = (float(value) for value in link.call("clock.offset", ANSWER))
    return ev.DutReady(
        at=said["at"],
        kernel=said["kernel"],
        kind=kind,
        how=how,
        took=took,
        fio=said["fio"],
        python=said["python"],
        boot_id=said["boot_id"],
        cpus=said["cpus"],
        memory_bytes=said["memory"],
        accel=accel,
        threads=threads,
        modules=modules,
        records=tuple(said.get("records", ())),
        reports=said.get("reports"),
        log_clock_offset=offset,
        log_clock_error=error,
    )
