"""Opens drivers that run programs, and feeds parsers with arbitrary text."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boards import Nobody

from plugpull.errors import RigError
from plugpull.rig import model
from plugpull.switches.base import Switch
from plugpull.switches.host import Host, Person
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch

FUZZ = int(os.environ.get("PLUGPULL_FUZZ", "300"))
"""Examples for each parser: PLUGPULL_FUZZ=10000 takes a minute."""


def opened(
    driver: str,
    folder: Path,
    host: Host | None = None,
    person: Person | None = None,
    ports: int = 2,
    mechanism: str = "mains",
    timeout: float = 20.0,
    **options: Any,
) -> Switch:
    table = {"name": "sw", "driver": driver, "ports": ports, "mechanism": mechanism, "timeout": timeout, **options}
    return open_switch(model.DeclaredSwitch.model_validate(table), host or LocalHost(), person or Nobody(), folder)


def survives(parse: Callable[..., Any], *arguments: Any) -> Any:
    """The result, or None if the parser refused with an explanation."""
    try:
        return parse(*arguments)
    except RigError as error:
        explained = error.what and error.hint
    assert explained
    return None


def said_of(parse: Callable[[Any], object], said: object) -> object:
    """What a parser makes of it, or the words of its error."""
    try:
        return parse(said)
    except RigError as error:
        return error.what
