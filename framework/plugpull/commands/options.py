"""``--option KEY=VALUE``: a driver's own keys on the command line, as lines of a rig file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from plugpull.errors import UsageError

if TYPE_CHECKING:
    from plugpull.rig.model import Table


def option_lines(options: type[Table], given: Sequence[str]) -> Iterator[str]:
    """A line for each KEY=VALUE. ``options`` are the keys of the driver. Raises UsageError."""
    for option in given:
        key, equals, value = option.partition("=")
        if not equals:
            raise UsageError(f"--option {option}: write KEY=VALUE")
        yield f"{key} = {option_value(options, key, value)}"


def option_value(options: type[Table], key: str, value: str) -> str:
    """A value of the command line as TOML: text if the key takes text (such as a serial number of digits), otherwise a
    number, a boolean or an array."""
    from pydantic import TypeAdapter, ValidationError

    field = options.model_fields.get(key)
    if field is not None:
        takes: TypeAdapter[object] = TypeAdapter(cast("type[object]", field.annotation))
        with suppress(ValidationError):
            takes.validate_python(value, strict=True)
            return json.dumps(value)
    if value.isdecimal():
        return str(int(value))
    return value if value in ("true", "false") or value.startswith("[") else json.dumps(value)
