"""Any power or digital-output driver of labgrid (LGPL, an optional extra).

labgrid comes with a modified pyserial that would replace the one of the other drivers, so it needs a Python environment
of its own: ``python`` names that environment's interpreter. A small program in that environment opens the driver once
and then obeys requests, because loading labgrid takes a second.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches import labgrid_helper
from plugpull.switches.base import Capabilities, DeviceSwitch, Identity, SwitchContext, disobeyed, seconds_left
from plugpull.switches.kinds import Kind
from plugpull.switches.programs import LONGEST

MOST_ANSWER = 1 << 16
OPENING = 60.0
"""Seconds that labgrid gets to load and to activate a driver, which may have to reach another machine."""


class LabgridOptions(Table):
    """Keys of a labgrid driver. Each port is a driver of the target."""

    environment: Annotated[str, Field(min_length=1)]
    """labgrid's environment file, relative to the rig file."""
    target: str = "main"
    protocol: Literal["PowerProtocol", "DigitalOutputProtocol"] = "PowerProtocol"
    names: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """The name of each port's driver in the environment file, in order. Not needed if there is only one."""
    python: str = sys.executable
    """The interpreter that has labgrid."""


class _DriverProcess:
    """One labgrid driver, in a process of its own."""

    def __init__(self, options: LabgridOptions, folder: Path, name: str) -> None:
        # Isolated (-I): otherwise `import labgrid` would import this module.
        line = [options.python, "-I", labgrid_helper.__file__, str(folder / options.environment), options.target]
        # A file and not a pipe: a full pipe would stop the process.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the driver)
        try:
            self._process = subprocess.Popen(
                [*line, options.protocol, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise RigError(
                f"cannot run {options.python}: {error.strerror}",
                hint='name the interpreter of the environment that has labgrid: python = "..."',
            ) from None
        self._pending = b""
        try:
            self.kind = str(self._answer(OPENING)["driver"])
        except BaseException:
            self.close()
            raise

    def ask(self, do: str, timeout: float) -> bool | None:
        if self._process.poll() is not None:
            raise RigError(f"labgrid ended: {self._last_error()}", hint="try it with labgrid-client")
        assert self._process.stdin is not None
        with suppress(OSError):  # _answer reports why it ended
            self._process.stdin.write(json.dumps({"do": do}).encode() + b"\n")
            self._process.stdin.flush()
        state = self._answer(timeout).get("state")
        return state if isinstance(state, bool) else None

    def _answer(self, timeout: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout
        while b"\n" not in self._pending:
            if not select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.close()  # a late answer would be taken for the answer to the next request
                raise RigError(f"labgrid did not answer within {timeout:g} s", hint="try it with labgrid-client")
            more = os.read(self._process.stdout.fileno(), 65536)
            if not more:
                raise RigError(f"labgrid ended: {self._last_error()}", hint="try it with labgrid-client")
            self._pending += more
            if len(self._pending) > MOST_ANSWER:
                self.close()
                raise RigError(f"labgrid answered more than {MOST_ANSWER} bytes", hint="try it with labgrid-client")
        line, _, self._pending = self._pending.partition(b"\n")
        return parse_answer(line)

    def _last_error(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - LONGEST))
        lines = self._errors.read(LONGEST).decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else "it printed nothing"

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


def parse_answer(line: bytes) -> dict[str, Any]:
    """An answer of the helper. Raises RigError if it reports an error, or is not an answer."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise RigError(f"labgrid's process printed {line[:80]!r}, which is not an answer")
    if answer.get("ok") is not True:
        raise RigError(f"labgrid could not: {answer.get('why', 'no reason given')}", hint="try it with labgrid-client")
    return answer


class Labgrid(DeviceSwitch):
    def __init__(self, context: SwitchContext, options: LabgridOptions) -> None:
        super().__init__(
            context,
            Identity("labgrid", place=options.environment),
            Capabilities(context.mechanism, False, latching=True),
        )
        names = options.names or ("",) * context.ports
        if len(names) != context.ports:
            raise RigError(f"{len(names)} names for {context.ports} ports", hint="give each port a name: names = [...]")
        self._drivers: list[_DriverProcess] = []
        with self._deadline() as deadline:
            try:
                for name in names:
                    self._drivers.append(_DriverProcess(options, context.folder, name))
                reads = all(driver.ask("get", max(5.0, seconds_left(deadline))) is not None for driver in self._drivers)
            except BaseException:
                self.close()
                raise
        self.identity = Identity(
            "labgrid", model=self._drivers[0].kind, place=f"{options.target} in {options.environment}"
        )
        self.capabilities = Capabilities(context.mechanism, read_back=reads, latching=True)

    def _command(self, port: str, on: bool) -> None:
        driver = self._drivers[self._number(port) - 1]
        with self._deadline() as deadline:
            driver.ask("on" if on else "off", seconds_left(deadline))
            if self.capabilities.read_back and driver.ask("get", seconds_left(deadline)) is not on:
                raise disobeyed((port,), on, "try it with labgrid-client")

    def read(self, port: str) -> bool | None:
        driver = self._drivers[self._number(port) - 1]
        if not self.capabilities.read_back:
            return None
        with self._deadline() as deadline:
            return driver.ask("get", seconds_left(deadline))

    def close(self) -> None:
        for driver in self._drivers:
            driver.close()


def open_driver(context: SwitchContext, options: LabgridOptions) -> Labgrid:
    """The driver. Raises RigError if it is not to be run on the controller."""
    if context.host.name != "this machine":
        raise RigError("labgrid's drivers run on the controller", hint='leave out via = "dut"')
    return Labgrid(context, options)


KIND = Kind(
    "labgrid",
    "any power or digital-output driver of labgrid",
    LabgridOptions,
    open_driver,
    frozenset(Mechanism),
    identity_keys=("environment", "target", "protocol", "names"),
)
