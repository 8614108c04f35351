"""The valid parts of a rig file, so that a broken table does not hide the mistakes in the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from plugpull.errors import UsageError
from plugpull.rig.drivers import VIRTUAL, Driver, DriverBook, MeterBook, installed_meters
from plugpull.rig.mistakes import Mistake
from plugpull.rig.source import KeyPath, Source
from plugpull.rig.validation_messages import TABLES, label


@dataclass(frozen=True)
class DraftTable:
    """One table of the file. ``values`` are the TOML values of those keys that are valid by themselves."""

    kind: str
    path: KeyPath
    values: Mapping[str, Any]
    broken: frozenset[str]
    label: str
    """Its name in messages: ``[[disk]] "disk3"``."""

    def get(self, key: str) -> Any:
        """The key's value, its default if it is not given, or None if it is invalid."""
        if key in self.values:
            return self.values[key]
        if key in self.broken:
            return None
        return TABLES[self.kind].model_fields[key].get_default()

    @property
    def name(self) -> str | None:
        return self.values.get("name")

    def split(self, key: str) -> tuple[str, str] | None:
        """The two halves of ``"hub1.2"`` or ``"cables.3"``, or None if the key is absent or invalid."""
        value = self.get(key)
        if value is None:
            return None
        name, _, port = value.partition(".")
        return name, port


@dataclass(frozen=True)
class Draft:
    """All tables that could be read. ``whole`` are the kinds of table of which every name is known."""

    source: Source
    entries: tuple[DraftTable, ...]
    whole: frozenset[str]
    drivers: DriverBook
    meters: MeterBook = field(default_factory=installed_meters)

    def of(self, *kinds: str) -> Iterator[DraftTable]:
        return (entry for entry in self.entries if entry.kind in kinds)

    def named(self, *kinds: str) -> dict[str, DraftTable]:
        """Tables by name. If two tables have one name, the first."""
        found: dict[str, DraftTable] = {}
        for entry in self.of(*kinds):
            if entry.name is not None:
                found.setdefault(entry.name, entry)
        return found

    @property
    def dut_kind(self) -> str | None:
        return next((entry.get("kind") for entry in self.of("dut")), None)

    def driver(self, switch: DraftTable) -> Driver | None:
        """The kind of a switch. None if it is unknown, or not possible on such a rig: other rules report both."""
        name = switch.get("driver")
        if name == VIRTUAL.name:
            return VIRTUAL
        if name is None or self.dut_kind == "virtual":
            return None
        try:
            return self.drivers.kind_named(name)
        except UsageError:
            return None

    def line(self, entry: DraftTable, key: str) -> int:
        return self.source.value((*entry.path, key)).line

    def mistake(self, entry: DraftTable, key: str, what: str, hint: str = "", *, element: int | None = None) -> Mistake:
        """A mistake at the key's value or one element of its array. If the key is not given, at the table's header."""
        path: KeyPath = (*entry.path, key) if element is None else (*entry.path, key, element)
        place = self.source.value(path)
        return Mistake(self.source.path, place.line, place.column, what, hint)

    def misplaced(self, entry: DraftTable, key: str, what: str, hint: str = "") -> Mistake:
        """A mistake at the key itself, for a key that should not be there."""
        place = self.source.key((*entry.path, key))
        return Mistake(self.source.path, place.line, place.column, what, hint)


def draft_of(source: Source, wrong: frozenset[KeyPath], drivers: DriverBook) -> Draft:
    """The file's values without those at the ``wrong`` paths."""
    entries: list[DraftTable] = []
    whole: set[str] = set()
    for kind in TABLES:
        paths = _table_paths(source, kind)
        found = [_entry(source, path, wrong) for path in paths if not any(path[:cut] in wrong for cut in (1, 2))]
        entries.extend(found)
        if len(found) == len(paths) and (kind,) not in wrong and all(entry.name is not None for entry in found):
            whole.add(kind)
    return Draft(source, tuple(entries), frozenset(whole), drivers)


def _table_paths(source: Source, kind: str) -> list[KeyPath]:
    value = source.values.get(kind)
    if isinstance(value, dict):
        return [(kind,)]
    return [(kind, number) for number in range(len(value))] if isinstance(value, list) else []


def _entry(source: Source, path: KeyPath, wrong: frozenset[KeyPath]) -> DraftTable:
    table: Any = source.values[str(path[0])]
    if len(path) > 1:
        table = table[path[1]]
    broken = frozenset(str(bad[len(path)]) for bad in wrong if bad[: len(path)] == path and len(bad) > len(path))
    values = {key: value for key, value in table.items() if key not in broken}
    name = table.get("name")
    if isinstance(name, str):  # badly formed names are still what the other tables refer to
        values["name"] = name
    return DraftTable(str(path[0]), path, values, broken, label(path, source.values))
