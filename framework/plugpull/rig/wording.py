"""What pydantic found wrong with a rig file, in the words of the rig file.

The person who reads the message writes TOML, not Python: they have tables, keys, text in quotes and whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from plugpull.rig.mistakes import Mistake, closest, quote
from plugpull.rig.model import Controller, Defect, Disk, Dut, Hub, Mechanism, Rig, RigTable, Switch, Table
from plugpull.rig.quantities import QuantityError
from plugpull.rig.source import KeyPath, Source

TABLES: dict[str, type[Table]] = {
    "rig": RigTable,
    "dut": Dut,
    "switch": Switch,
    "controller": Controller,
    "hub": Hub,
    "disk": Disk,
    "defect": Defect,
}
SINGLE = frozenset({"rig", "dut"})
"""Tables there is one of; of the others there can be several, in double brackets."""

_NAME_FORM = 'letters, digits, "-" and "_", beginning with a letter'
_FORMS = {
    "at": 'the name of a hub or controller, a dot and a port number, such as "hub1.2"',
    "cable": 'the name of a switch, a dot and a port, such as "cables.3"',
    "power": 'the name of a switch, a dot and a port, such as "mains.3"',
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
"""What is wrong, and what was probably meant or an empty string."""


def header(kind: str) -> str:
    """The table's header as it is written in a rig file."""
    return f"[{kind}]" if kind in SINGLE else f"[[{kind}]]"


def mistakes_of(error: ValidationError, source: Source) -> Iterator[Mistake]:
    """Every error of a validation as a mistake at its place. A key missing because it was misspelt counts once."""
    details = error.errors(include_url=False)
    misspelt = {_meant(detail) for detail in details if detail["type"] == "extra_forbidden"}
    for detail in details:
        path: KeyPath = detail["loc"]
        if detail["type"] == "missing":
            if path in misspelt:
                continue
            place, words = source.key(path[:-1]), (_missing(path, source), "")
        elif detail["type"] == "extra_forbidden":
            place, words = source.key(path), _unknown(path, _meant(detail))
        else:
            place, words = source.value(path), _wrong_value(detail)
        yield Mistake(source.path, place.line, place.column, *words)


def _known_keys(table: KeyPath) -> tuple[str, ...]:
    if not table:
        return tuple(Rig.model_fields)
    model = TABLES.get(str(table[0]))
    return tuple(model.model_fields) if model else ()


def _meant(detail: ErrorDetails) -> KeyPath:
    """The path of the key that a misspelt one probably stands for; an empty path when none is near."""
    path = detail["loc"]
    near = closest(str(path[-1]), _known_keys(path[:-1]))
    return (*path[:-1], near) if near else ()


def _unknown(path: KeyPath, meant: KeyPath) -> Words:
    key = str(path[-1])
    if len(path) == 1:
        known = ", ".join(header(kind) for kind in TABLES)
        return f"unknown table {quote(key)}" + ("" if meant else f": there are {known}"), (
            header(str(meant[-1])) if meant else ""
        )
    known = ", ".join(_known_keys(path[:-1]))
    what = f"unknown key {quote(key)} in {header(str(path[0]))}" + ("" if meant else f": it can have {known}")
    return what, str(meant[-1]) if meant else ""


def _missing(path: KeyPath, source: Source) -> str:
    if len(path) == 1:
        return f"the table {header(str(path[0]))} is missing"
    return f"{label(path, source.values)} has no {quote(str(path[-1]))}"


def label(path: KeyPath, values: dict[str, Any]) -> str:
    """What to call the table that ``path`` lies in: ``[[disk]] "disk3"``, or ``[[disk]]`` when it has no name."""
    kind = str(path[0])
    table: Any = values.get(kind)
    if len(path) > 1 and isinstance(table, list) and isinstance(path[1], int):
        table = table[path[1]]
        name = table.get("name") if isinstance(table, dict) else None
        if isinstance(name, str):
            return f"{header(kind)} {quote(name)}"
    return header(kind)


def _wrong_value(detail: ErrorDetails) -> Words:
    path, value, context = detail["loc"], detail["input"], detail.get("ctx", {})
    key = quote(str(path[-1]))
    kind = detail["type"]
    if kind in _WANTED:
        return f"{key} must be {_WANTED[kind]}, not {describe(value)}", ""
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{key} must be {words} {context[name]:g}", ""
    special = _SPECIAL.get(kind)
    return special(detail) if special else (f"{key} cannot be {describe(value)}", "")


def _bad_table(detail: ErrorDetails) -> Words:
    kind = str(detail["loc"][0])
    wanted = "one table, in single brackets" if kind in SINGLE else "tables, in double brackets"
    return f"{quote(kind)} must be {wanted}: {header(kind)}", ""


def _bad_form(detail: ErrorDetails) -> Words:
    key = str(detail["loc"][-1])
    form = _FORMS.get(key, _NAME_FORM)
    return f"{quote(str(detail['input']))} is not a {_noun(key)}: write {form}", ""


def _noun(key: str) -> str:
    return {"at": "place to plug into", "cable": "switch port", "power": "switch port"}.get(key, "name")


def _bad_choice(detail: ErrorDetails) -> Words:
    key, value = str(detail["loc"][-1]), detail["input"]
    choices = _choices(detail["loc"])
    if not isinstance(value, str):
        return f"{quote(key)} must be text in quotes, not {describe(value)}", ""
    listed = ", ".join(quote(choice) for choice in choices)
    return f"{quote(key)} cannot be {quote(value)}: it is one of {listed}", closest(value, choices)


def _choices(path: KeyPath) -> tuple[str, ...]:
    """The words a key can have, from the model itself: pydantic only tells them as an English sentence."""
    annotation: Any = TABLES[str(path[0])].model_fields[str(path[-1])].annotation
    if annotation is Mechanism:
        return tuple(Mechanism)
    options = [option for part in (annotation, *get_args(annotation)) for option in get_args(part)]
    return tuple(option for option in options if isinstance(option, str))


def _bad_quantity(detail: ErrorDetails) -> Words:
    error = detail.get("ctx", {}).get("error")
    if isinstance(error, QuantityError):
        return error.what, error.hint
    return f"{quote(str(detail['loc'][-1]))} cannot be {describe(detail['input'])}", ""


def _too_long(detail: ErrorDetails) -> Words:
    return f"{quote(str(detail['loc'][-1]))} must be at most {detail['ctx']['max_length']} characters long", ""


def _too_short(detail: ErrorDetails) -> Words:
    return f"{quote(str(detail['loc'][-1]))} must not be empty", ""


_SPECIAL: dict[str, Callable[[ErrorDetails], Words]] = {
    "model_type": _bad_table,
    "tuple_type": _bad_table,
    "string_pattern_mismatch": _bad_form,
    "string_too_long": _too_long,
    "string_too_short": _too_short,
    "literal_error": _bad_choice,
    "enum": _bad_choice,
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
