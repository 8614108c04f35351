"""Any switch with a command line: a shell command to turn a port on, one to turn it off, and perhaps one to read it.

``{port}`` in a command becomes the port's name. ``sh -c`` runs each command on the machine the switch is plugged into.
At the deadline the process and its children are killed.
"""

from __future__ import annotations

import shlex
from typing import Annotated

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Capabilities, DeviceSwitch, Identity, SwitchContext, disobeyed, seconds_left
from plugpull.switches.kinds import Kind
from plugpull.switches.programs import error_line

_WORDS = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}

Line = Annotated[str, Field(min_length=1)]


class CommandOptions(Table):
    """Keys of a switch with commands. Each ends with status 0 if the switch obeyed."""

    on: Line
    off: Line
    read: Line | None = None
    """Prints on or off (or 1 or 0) as its last word. Without it, cuts are verified by their effect alone."""


class CommandSwitch(DeviceSwitch):
    def __init__(self, context: SwitchContext, options: CommandOptions) -> None:
        super().__init__(
            context,
            Identity("command", model=program_of(options.off), place=""),
            Capabilities(context.mechanism, read_back=options.read is not None, latching=False),
        )
        self._options = options

    def _command(self, port: str, on: bool) -> None:
        with self._deadline() as deadline:
            self._run("on" if on else "off", port, seconds_left(deadline))
            if self._options.read is not None and self._state(port, seconds_left(deadline)) is not on:
                raise disobeyed((port,), on, "try the commands by hand: does the device do what they say?")

    def read(self, port: str) -> bool | None:
        if self._options.read is None:
            return None
        with self._deadline() as deadline:
            return self._state(port, seconds_left(deadline))

    def _state(self, port: str, timeout: float) -> bool:
        return parse_state(self._run("read", port, timeout))

    def _run(self, key: str, port: str, timeout: float) -> str:
        line: str = getattr(self._options, key)
        done = self._context.host.run(["sh", "-c", line.replace("{port}", shlex.quote(port))], timeout)
        if done.status != 0:
            # Without the command itself: it may contain a password, and this message goes into the history.
            raise RigError(
                f"the command {key!r} for port {port} ended with status {done.status}: {error_line(done)}",
                hint=f"run it by hand on {self._context.host.name}",
            )
        return done.stdout


def program_of(line: str) -> str:
    """The program that a shell command begins with, or the shell if the command's quotes are not closed."""
    try:
        return next(iter(shlex.split(line)), "sh")
    except ValueError:
        return "sh"


def parse_state(said: str) -> bool:
    """The state in the output of the reading command: its last word. Raises RigError if that is neither on nor off."""
    last = said.rsplit(maxsplit=1)[-1].lower() if said.split() else ""
    if last not in _WORDS:
        raise RigError(
            f"the command that reads a port back printed {said.strip()[:80]!r}, which is neither on nor off",
            hint="have it print on or off as its last word",
        )
    return _WORDS[last]


KIND = Kind(
    "command", "anything with a command line: a shell command for on and one for off", CommandOptions,
    CommandSwitch, frozenset(Mechanism), port_names="any", identity_keys=("on", "off"),
)  # fmt: skip
