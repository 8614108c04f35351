"""Makes the rig file of a history safe to read: values of a kind that no rig file has are left out and named."""

from __future__ import annotations

from typing import Any

LISTS = ("array", "controller", "defect", "disk", "hub", "meter", "switch")
"""Keys of a rig file that have a list of tables."""
TABLES = ("dut", "rig")
"""Keys that have one table."""
TEXTS = ("at", "cable", "disk", "driver", "kind", "mechanism", "model", "name", "power", "protocol", "serial")
"""Keys of these tables that have a text."""


def readable(rig: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The rig file as data without what is of another kind than it must be, and what that was, such as ``disk`` or
    ``disk.name``."""
    made, wrong = dict(rig), []
    for key in (key for key in LISTS if key in rig):
        tables = rig[key] if isinstance(rig[key], list | tuple) else []
        if tables != rig[key] or not all(isinstance(table, dict) for table in tables):
            wrong.append(key)
        made[key] = [_texts(key, table, wrong) for table in tables if isinstance(table, dict)]
    for key in (key for key in TABLES if key in rig):
        if not isinstance(rig[key], dict):
            wrong.append(key)
            del made[key]
        else:
            made[key] = _texts(key, rig[key], wrong)
    return made, tuple(dict.fromkeys(wrong))


def _texts(where: str, table: dict[str, Any], wrong: list[str]) -> dict[str, Any]:
    bad = [key for key in TEXTS if not isinstance(table.get(key), str | None)]
    wrong += [f"{where}.{key}" for key in bad]
    return {key: value for key, value in table.items() if key not in bad}
