"""pydantic's errors as messages about a rig file.

The reader of a message writes TOML, not Python, so messages are about tables, keys, text in quotes and whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from enum import Enum
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from plugpull.rig.mistakes import Mistake, closest, quote
from plugpull.rig.model import (
    Controller,
    DeclaredMeter,
    DeclaredSwitch,
    Defect,
    Disk,
    DiskLimits,
    Dut,
    ExpectedRates,
    Hub,
    LabgridPlace,
    Rig,
    RigTable,
    Table,
)
from plugpull.rig.quantities import QuantityError
from plugpull.rig.source import KeyPath, Source

TABLES: dict[str, type[Table]] = {
    "rig": RigTable,
    "dut": Dut,
    "switch": DeclaredSwitch,
    "controller": Controller,
    "hub": Hub,
    "disk": Disk,
    "meter": DeclaredMeter,
    "defect": Defect,
    "labgrid": LabgridPlace,
}
SINGLE = frozenset({"rig", "dut", "labgrid"})
"""Tables in single brackets, of which a file has one. The others are in double brackets."""

_NAME_FORM = 'letters, digits, "-" and "_", beginning with a letter'
_FORMS = {
    "at": 'the name of a hub or controller, a dot and a port number, such as "hub1.2"',
    "cable": 'the name of a switch, a dot and a port, such as "cables.3"',
    "power": 'the name of a switch, a dot and a port, such as "mains.3"',
    "control": 'the name of a hub or controller, a dot and a port number, such as "hub1.2", or "dut"',
    "place": 'letters, digits, ".", "-" and "_", as labgrid-client shows it',
    "coordinator": 'a host and a port, such as "lab:20408"',
}
_WANTED = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
}
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}

Words = tuple[str, str]
"""The message, and the text that was probably meant (or an empty string)."""
Fields = Callable[[KeyPath], Mapping[str, FieldInfo]]
"""The possible keys of the table at a path."""


def header(kind: str) -> str:
    """The table's header as it is written in a rig file."""
    return f"[{kind}]" if kind in SINGLE else f"[[{kind}]]"


def fields_of(table: KeyPath) -> Mapping[str, FieldInfo]:
    if not table:
        return Rig.model_fields
    if table[0] == "disk" and table[2:] == ("limits",):
        return DiskLimits.model_fields
    if table[0] in ("controller", "hub", "disk") and table[2:] == ("expect",):
        return ExpectedRates.model_fields
    model = TABLES.get(str(table[0]))
    return model.model_fields if model else {}


def mistakes_of(
    error: ValidationError, source: Source, *, at: KeyPath = (), fields: Fields = fields_of
) -> Iterator[Mistake]:
    """Every error of a validation as a mistake at its place. A key that is missing because it is misspelt counts once.

    ``at`` is the table that was validated; if it is empty, the whole file.
    """
    details = list(_located(error, source, at))
    misspelt = {_meant(detail, fields) for detail in details if detail["type"] == "extra_forbidden"}
    for detail in details:
        path: KeyPath = detail["loc"]
        if detail["type"] == "missing":
            if path in misspelt:
                continue
            place, words = source.key(path[:-1]), (_missing(path, source), "")
        elif detail["type"] == "extra_forbidden":
            place, words = source.key(path), _unknown(path, fields, _meant(detail, fields))
        else:
            place, words = source.value(path), _wrong_value(detail, fields)
        yield Mistake(source.path, place.line, place.column, *words)


def _located(error: ValidationError, source: Source, at: KeyPath) -> Iterator[ErrorDetails]:
    """The errors with paths as in the file. pydantic adds the members of a union, and reports an error for each."""
    alternatives: set[KeyPath] = set()
    for detail in error.errors(include_url=False):
        path = (*at, *detail["loc"])
        detail["loc"] = path if detail["type"] == "missing" else _in_file(path, source.values)
        if detail["loc"] != path:
            if detail["loc"] in alternatives:
                continue
            alternatives.add(detail["loc"])
        yield detail


def _in_file(path: KeyPath, values: Any) -> KeyPath:
    for depth, part in enumerate(path):
        there = part in values if isinstance(values, dict) else isinstance(values, list) and isinstance(part, int)
        if not there:
            return path[:depth]
        values = values[part]
    return path


def _meant(detail: ErrorDetails, fields: Fields) -> KeyPath:
    """The path of the key that was probably meant by a misspelt one. Empty if no key is similar."""
    path = detail["loc"]
    near = closest(str(path[-1]), fields(path[:-1]))
    return (*path[:-1], near) if near else ()


def _unknown(path: KeyPath, fields: Fields, meant: KeyPath) -> Words:
    key = str(path[-1])
    if len(path) == 1:
        known = ", ".join(header(kind) for kind in TABLES)
        return f"unknown table {quote(key)}" + ("" if meant else f": there are {known}"), (
            header(str(meant[-1])) if meant else ""
        )
    known = ", ".join(fields(path[:-1]))
    inner = next((f"the {part} of " for part in path[1:-1] if isinstance(part, str)), "")
    what = f"unknown key {quote(key)} in {inner}{header(str(path[0]))}" + ("" if meant else f": it can have {known}")
    return what, str(meant[-1]) if meant else ""


def _missing(path: KeyPath, source: Source) -> str:
    if len(path) == 1:
        return f"the table {header(str(path[0]))} is missing"
    return f"{label(path, source.values)} has no {quote(str(path[-1]))}"


def label(path: KeyPath, values: dict[str, Any]) -> str:
    """The name in messages of the table at ``path``: ``[[disk]] "disk3"``, or ``[[disk]]`` if it has no name."""
    kind = str(path[0])
    table: Any = values.get(kind)
    if len(path) > 1 and isinstance(table, list) and isinstance(path[1], int):
        table = table[path[1]]
        name = table.get("name") if isinstance(table, dict) else None
        if isinstance(name, str):
            return f"{header(kind)} {quote(name)}"
    return header(kind)


def _wrong_value(detail: ErrorDetails, fields: Fields) -> Words:
    value, context = detail["input"], detail.get("ctx", {})
    key = quote(_key(detail))
    kind = detail["type"]
    if kind in _WANTED:
        return f"{key} must be {_WANTED[kind]}, not {describe(value)}", ""
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{key} must be {words} {context[name]:g}", ""
    if kind in ("literal_error", "enum"):
        return _bad_choice(detail, fields)
    special = _SPECIAL.get(kind)
    return special(detail) if special else (f"{key} cannot be {describe(value)}", "")


def _key(detail: ErrorDetails) -> str:
    """The key that a mistake is about; for an element of an array, the array's key."""
    return next((part for part in reversed(detail["loc"]) if isinstance(part, str)), "")


def _bad_table(detail: ErrorDetails) -> Words:
    kind = str(detail["loc"][0])
    if detail["loc"][2:] == ("limits",):
        return (
            f'"limits" must be a table in braces, such as {{ returned = "30 s" }}, not {describe(detail["input"])}',
            "",
        )
    if len(detail["loc"]) > 2:
        return f"{quote(_key(detail))} must be an array, in square brackets, not {describe(detail['input'])}", ""
    wanted = "one table, in single brackets" if kind in SINGLE else "tables, in double brackets"
    return f"{quote(kind)} must be {wanted}: {header(kind)}", ""


def _bad_form(detail: ErrorDetails) -> Words:
    key = _key(detail)
    value = quote(str(detail["input"]))
    if key != "name" and key not in _FORMS:
        return f"{quote(key)} cannot be {value}: it must look like {detail['ctx']['pattern']}", ""
    return f"{value} is not a {_noun(key)}: write {_FORMS.get(key, _NAME_FORM)}", ""


def _noun(key: str) -> str:
    nouns = {
        "at": "place to plug into",
        "control": "place to plug into",
        "cable": "switch port",
        "power": "switch port",
        "coordinator": "coordinator's address",
    }
    return nouns.get(key, "name")


def _bad_choice(detail: ErrorDetails, fields: Fields) -> Words:
    key, value = _key(detail), detail["input"]
    numbers = _numbers(fields(detail["loc"][:-1]).get(key))
    if numbers:
        given = value if isinstance(value, int) and not isinstance(value, bool) else describe(value)
        return f"{quote(key)} cannot be {given}: it is {' or '.join(map(str, numbers))}", ""
    choices = _choices(fields(detail["loc"][:-1]).get(key))
    if not isinstance(value, str):
        return f"{quote(key)} must be text in quotes, not {describe(value)}", ""
    listed = ", ".join(quote(choice) for choice in choices)
    return f"{quote(key)} cannot be {quote(value)}: it is one of {listed}", closest(value, choices)


def _choices(field: FieldInfo | None) -> tuple[str, ...]:
    """The possible values of a key. They come from the model, because pydantic only has them in an English sentence."""
    annotation: Any = field.annotation if field is not None else None
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(str(member.value) for member in annotation)
    options = [option for part in (annotation, *get_args(annotation)) for option in get_args(part)]
    return tuple(option for option in options if isinstance(option, str))


def _numbers(field: FieldInfo | None) -> tuple[int, ...]:
    """The possible numbers of a key, if only certain numbers are possible."""
    return tuple(option for option in get_args(field.annotation if field else None) if isinstance(option, int))


def _bad_quantity(detail: ErrorDetails) -> Words:
    error = detail.get("ctx", {}).get("error")
    if isinstance(error, QuantityError):
        return error.what, error.hint
    if isinstance(error, ValueError):  # a driver's own rule, in its own words
        subject = quote(_key(detail)) if len(detail["loc"]) > 2 else header(str(detail["loc"][0]))
        return f"{subject}: {error}", ""
    return f"{quote(_key(detail))} cannot be {describe(detail['input'])}", ""


def _too_long(detail: ErrorDetails) -> Words:
    return f"{quote(_key(detail))} must be at most {detail['ctx']['max_length']} characters long", ""


def _too_short(detail: ErrorDetails) -> Words:
    return f"{quote(_key(detail))} must not be empty", ""


_SPECIAL: dict[str, Callable[[ErrorDetails], Words]] = {
    "model_type": _bad_table,
    "tuple_type": _bad_table,
    "string_pattern_mismatch": _bad_form,
    "string_too_long": _too_long,
    "string_too_short": _too_short,
    "value_error": _bad_quantity,
}


def describe(value: object) -> str:
    """A TOML value's type in the words of TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date | time):
        return "a date or time"
    names: dict[type, str] = {
        str: "text in quotes",
        int: "a whole number",
        float: "a number with a fraction",
        list: "an array",
        dict: "a table",
    }
    return names.get(type(value), "this")
