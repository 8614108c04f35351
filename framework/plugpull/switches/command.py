"""Any switch that has a command line: one shell command to turn a port on, one to turn it off, perhaps one to ask.

``{port}`` in a command becomes the port's name. They are run by ``sh -c`` on the machine the switch is plugged into,
one process each, ended with its children when the time is up.
"""

from __future__ import annotations

import shlex
from typing import Annotated

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Capabilities, Identity
from plugpull.switches.kinds import Kind, Wiring
from plugpull.switches.program_switch import ProgramSwitch, disobeyed, left, words_of

_WORDS = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}

Line = Annotated[str, Field(min_length=1)]


class CommandOptions(Table):
    """Keys of a switch that has commands. Each ends with status 0 when it was obeyed."""

    on: Line
    off: Line
    read: Line | None = None
    """Prints on or off (or 1 or 0) as its last word. Without it, cuts are verified by their effect alone."""


class CommandSwitch(ProgramSwitch):
    def __init__(self, wiring: Wiring, options: CommandOptions) -> None:
        program = (
            shlex.split(options.off)[:1] if options.off.count("'") % 2 == 0 and options.off.count('"') % 2 == 0 else []
        )
        super().__init__(
            wiring,
            Identity("command", model=program[0] if program else "sh", place=""),
            Capabilities(wiring.mechanism, read_back=options.read is not None, latching=False),
        )
        self._options = options

    def _command(self, port: str, on: bool) -> None:
        with self._told() as deadline:
            self._run("on" if on else "off", port, left(deadline))
            if self._options.read is not None and self._state(port, left(deadline)) is not on:
                raise disobeyed(port, on, "try the commands by hand: does the device do what they say?")

    def read(self, port: str) -> bool | None:
        if self._options.read is None:
            return None
        with self._told() as deadline:
            return self._state(port, left(deadline))

    def _state(self, port: str, timeout: float) -> bool:
        return parse_state(self._run("read", port, timeout))

    def _run(self, key: str, port: str, timeout: float) -> str:
        line: str = getattr(self._options, key)
        done = self._wiring.host.run(["sh", "-c", line.replace("{port}", shlex.quote(port))], timeout)
        if done.status != 0:
            # Not with the command itself: it may hold a password, and this goes into the history.
            raise RigError(
                f"the command {key!r} for port {port} ended with status {done.status}: {words_of(done)}",
                mend=f"run it by hand on {self._wiring.host.name}",
            )
        return done.stdout


def parse_state(said: str) -> bool:
    """The last word of what the reading command prints. Raises RigError for one that says neither."""
    last = said.rsplit(maxsplit=1)[-1].lower() if said.split() else ""
    if last not in _WORDS:
        raise RigError(
            f"the command that reads a port back said {said.strip()[:80]!r}, which is neither on nor off",
            mend="have it print on or off as its last word",
        )
    return _WORDS[last]


def _open(wiring: Wiring, options: CommandOptions) -> CommandSwitch:
    return CommandSwitch(wiring, options)


KIND = Kind(
    "command", "anything with a command line: a shell command for on and one for off", CommandOptions, _open,
    frozenset(Mechanism), port_names="any",
)  # fmt: skip
