"""A recorded fault in words, made from its data alone: histories may hold kinds that this version does not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plugpull.history.events import FaultInjected
from plugpull.report.text import size

DEEPEST = 8
"""Faults within faults that are written out."""


def is_shown(event: FaultInjected) -> bool:
    """Whether the fault needs a mark of its own. A plain cut does not: it is shown as a cut."""
    return event.fault.get("kind") != "cut"


def fault_text(fault: object, depth: int = 0) -> str:
    """What is done: "3 times, 1 s apart: cut of disk1.cable, held for 0.5 s"."""
    if not isinstance(fault, Mapping) or depth > DEEPEST:
        return "…"
    parts = [fault_text(part, depth + 1) for part in _list(fault.get("faults"))]
    inner = fault_text(fault.get("fault"), depth + 1)
    match fault.get("kind"):
        case "cut":
            lasting = ", for good" if fault.get("permanent") else ""
            return f"cut of {_names(fault.get('points'))}{lasting}{_when(fault)}"
        case "bounce":
            return f"bounce of {_names(fault.get('points'))}: {_gaps(fault.get('gaps'))}{_when(fault)}"
        case "move":
            return f"move of {_moves(fault.get('sockets'))}"
        case "swap":
            return f"swap: {_moves(fault.get('sockets'))}{_when(fault)}"
        case "pause":
            return _pause(fault.get("until"))
        case "in_sequence":
            return "; then ".join(parts)
        case "together":
            return "together: " + " | ".join(parts)
        case "held":
            return f"{inner}, held for {_number(fault.get('seconds'))} s"
        case "repeated":
            return f"{_number(fault.get('times'))} times, {_number(fault.get('gap'))} s apart: {inner}"
    return _unknown(fault)


def trigger_text(trigger: object) -> str:
    """When: "after 2 s". As ``faults/triggers.py`` says it, for every kind that is recorded."""
    if not isinstance(trigger, Mapping):
        return "…"
    match trigger.get("kind"):
        case "now":
            return "at once"
        case "after":
            return f"after {_number(trigger.get('seconds'))} s"
        case "at_random":
            return f"at random within {_number(trigger.get('low'))} to {_number(trigger.get('high'))} s"
        case "moved":
            amount = trigger.get("size")
            moved = size(amount) if isinstance(amount, int) else _number(amount)
            return f"{moved} moved on {_plain(trigger.get('disk'))}"
        case "promised":
            later = trigger_text(trigger.get("later"))
            return f"something is promised on {_plain(trigger.get('disk'))}, and {later} after that"
        case "flushing":
            return f"a flush of {_plain(trigger.get('disk'))} is under way"
        case "kernel_says":
            return f"the kernel logs /{_plain(trigger.get('pattern'))}/"
    return _unknown(trigger)


def _pause(until: object) -> str:
    if isinstance(until, Mapping) and until.get("kind") == "after":
        return f"pause of {_number(until.get('seconds'))} s"
    return f"pause until {trigger_text(until)}"


def _when(fault: Mapping[str, Any]) -> str:
    when = fault.get("when")
    at_once = when is None or (isinstance(when, Mapping) and when.get("kind") == "now")
    return "" if at_once else f" ({trigger_text(when)})"


def _moves(sockets: object) -> str:
    pairs = (tuple(map(_plain, _list(pair))) for pair in _list(sockets))
    return ", ".join(" to ".join(pair) for pair in pairs) or "nothing"


def _gaps(gaps: object) -> str:
    return ", ".join(f"{_number(gap)} s {'closed' if index % 2 else 'open'}" for index, gap in enumerate(_list(gaps)))


def _names(names: object) -> str:
    return ", ".join(map(_plain, _list(names))) or "nothing"


def _unknown(data: Mapping[str, Any]) -> str:
    """A kind of fault or trigger that this version does not have: its name, and its simple fields."""
    fields = ", ".join(f"{_plain(name)} {_value(value)}" for name, value in data.items() if name != "kind")
    return _plain(data.get("kind")) + (f" ({fields})" if fields else "")


def _value(value: object) -> str:
    simple = isinstance(value, list | tuple) and all(isinstance(one, str | int | float) for one in value)
    if simple and isinstance(value, Iterable):
        return " ".join(map(_plain, value))
    return "…" if isinstance(value, Mapping | list | tuple) else _plain(value)


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else _plain(value)


def _plain(value: object) -> str:
    return "?" if value is None else str(value)
