"""Faults, and the edges of the switches that make them."""

from __future__ import annotations

from typing import Any, Literal

from plugpull.history.events.base import Event

PortState = Literal["off", "on"]
"""The state that a port is switched to."""

EdgePhase = Literal[
    "commanded",  # the switch is about to get the command
    "acknowledged",  # the switch answered
    "read-back",  # the switch was asked for the port's state
]
"""A step of switching a port."""


class FaultInjected(Event, frozen=True, kw_only=True, tag="fault"):
    """A fault begins, as data (``faults/codec.py``), so that it can be made again. ``number`` counts the faults of the
    scenario from 1. The cuts that it is made of follow."""

    number: int
    fault: dict[str, Any]


class CutArmed(Event, frozen=True, kw_only=True, tag="cut.armed"):
    """A cut is planned. ``cut`` numbers it within the scenario; ``victims`` is its blast radius; ``permanent`` cuts
    are not restored before the scenario ends. ``group`` is the number of the first of the cuts that are made at once
    with it, or in one burst (0: none are). ``fault`` is the number of the ``FaultInjected`` it belongs to (0: not
    recorded)."""

    cut: int
    point: str
    mechanism: str
    trigger: str
    victims: tuple[str, ...]
    permanent: bool = False
    group: int = 0
    fault: int = 0


class Edge(Event, frozen=True, kw_only=True, tag="edge"):
    """One step of switching one port: ``PortState`` and ``EdgePhase`` list states and steps.

    ``agrees``: in a read-back, whether the switch confirmed the state. ``error`` bounds ``at``, in seconds: the mapping
    of the controller's clock onto the DUT's. ``sent``: in an acknowledgement, when the driver had sent the command, DUT
    seconds (``None``: not recorded)."""

    cut: int
    point: str
    switch: str
    port: str
    state: PortState
    phase: EdgePhase
    agrees: bool = True
    error: float = 0.0
    sent: float | None = None


class CutSwitched(Event, frozen=True, kw_only=True, tag="cut.switched"):
    """Several ports were switched at once, for these ``cuts``, and all have acknowledged.

    ``skew`` is from the first acknowledged edge to the last, in seconds of the controller's own clock: the mapping of
    clocks has no part in it. Ports that a device switches in one command acknowledge as one."""

    cuts: tuple[int, ...]
    state: PortState
    switches: tuple[str, ...]
    ports: int
    skew: float


class Healed(Event, frozen=True, kw_only=True, tag="heal"):
    """Power came back on the way out: every port that was off."""

    ports: tuple[str, ...]
    ok: bool = True
    detail: str = ""
