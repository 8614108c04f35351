"""The process that talks to labgrid's coordinator (``place_helper.py``), and what it answers."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

import msgspec

from plugpull.coordination import place_helper
from plugpull.errors import RigError, UsageError
from plugpull.plain import clean_line
from plugpull.rig.model import LabgridPlace

MOST_ANSWER = 16 << 20
"""Bytes of an answer. A place takes some hundred."""
OPENING = 60.0
"""Seconds to load labgrid and to reach the coordinator."""
ANSWER = 20.0
"""Seconds for one answer: twice what the process gives the coordinator."""
EXIT = 8.0
"""Seconds that the process gets to cancel its reservation."""
_INSTALL = "python3 -m venv ~/labgrid && ~/labgrid/bin/pip install 'labgrid>=25'"


class CoordinatorLost(RigError):
    """The coordinator gave no answer this time. It may answer again later."""


class PlaceState(msgspec.Struct, frozen=True):
    """A place as the coordinator shows it. ``acquired`` is a user, ``reservation`` a token; both may be empty.

    ``changed`` is seconds since the epoch. ``unmatched`` are its matches for which no exporter has a resource."""

    acquired: str = ""
    reservation: str = ""
    changed: float = 0.0
    unmatched: tuple[str, ...] = ()


class PlaceReservation(msgspec.Struct, frozen=True):
    """A reservation. ``place`` is the place that it has or, while it waits, asks for by name."""

    token: str = ""
    owner: str = ""
    state: str = ""
    created: float = 0.0
    place: str = ""


class LabState(msgspec.Struct, frozen=True):
    """All places of a coordinator by name, and all reservations."""

    places: dict[str, PlaceState] = {}
    reservations: tuple[PlaceReservation, ...] = ()

    def holder(self, place: str, mine: str = "") -> str:
        """Who has a place, and for how long, in words; empty if nobody has. ``mine`` is a token that does not count."""
        state = self.places.get(place, PlaceState())
        holding = [one for one in self.reservations if one.place == place and one.token == state.reservation]
        if state.acquired:
            return f"acquired by {clean_line(state.acquired)} {since(state.changed)}"
        for one in holding:
            if one.token != mine:
                return f"reserved by {clean_line(one.owner)} {since(one.created)}"
        return ""


def since(moment: float) -> str:
    """For how long something has been so, in words. ``moment`` is seconds since the epoch."""
    seconds = max(0.0, time.time() - moment)
    if seconds < 90:
        return f"for {seconds:.0f} s"
    return f"for {seconds / 60:.0f} min" if seconds < 5400 else f"for {seconds / 3600:.1f} h"


class PlaceProcess:
    """Asks a coordinator. Close it, or its process ends with this one.

    Raises UsageError if labgrid is not installed, and RigError if the coordinator cannot be reached.
    """

    def __init__(self, declared: LabgridPlace) -> None:
        self._python = os.path.expanduser(declared.python or sys.executable)
        self._asking = threading.Lock()
        # Isolated (-I): labgrid must not be replaced by a file in the current directory.
        line = [self._python, "-I", place_helper.__file__, declared.coordinator or ""]
        # A file and not a pipe: a full pipe would stop the process.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        try:
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,  # Ctrl-C is for the run, which then cancels the reservation
                env={**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0"},
            )
        except OSError as error:
            self._errors.close()
            raise UsageError(
                f"cannot run {clean_line(self._python)}, which [labgrid] names as its python: {error.strerror}",
                hint=f"make an environment with labgrid, and name its interpreter: {_INSTALL}",
            ) from None
        self._pending = b""
        try:
            self.address = self._opened(self._read(OPENING), declared)
        except BaseException:
            self.close()
            raise

    def _opened(self, answer: Mapping[str, Any], declared: LabgridPlace) -> str:
        why, address = clean_line(str(answer.get("why", ""))), clean_line(str(answer.get("address", "")))
        if answer.get("ok") is True:
            return address
        if answer.get("kind") == "missing":
            raise UsageError(
                f"the rig is a place of labgrid ({declared.place}), which {clean_line(self._python)} lacks: {why}",
                hint=f'{_INSTALL}; then write into [labgrid]: python = "~/labgrid/bin/python"',
            )
        raise RigError(
            f"the coordinator of labgrid at {address} cannot be reached: {why}",
            hint="check coordinator in [labgrid] (or LG_COORDINATOR), and that labgrid-coordinator runs there",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, do: str, timeout: float = ANSWER, **more: str) -> Mapping[str, Any]:
        """One request. Raises CoordinatorLost if it may work later, and RigError if it was refused."""
        with self._asking:
            assert self._process.stdin is not None
            with suppress(OSError, ValueError):  # the answer is missing then
                self._process.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
                self._process.stdin.flush()
            answer = self._read(timeout)
        if answer.get("ok") is True:
            return answer
        why = clean_line(str(answer.get("why", "no reason given")))
        if answer.get("kind") == "unavailable":
            raise CoordinatorLost(f"the coordinator of labgrid at {self.address} does not answer: {why}")
        raise RigError(f"the coordinator of labgrid at {self.address} refused: {why}", hint="see labgrid-client places")

    def look(self) -> LabState:
        """All places and reservations. Raises RigError."""
        try:
            return msgspec.convert(self.ask("look"), LabState)
        except msgspec.ValidationError as error:
            raise RigError(f"the coordinator of labgrid at {self.address} answered something else: {error}") from None

    def _read(self, timeout: float) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout
        while b"\n" not in self._pending:
            if not select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self._kill()  # a late answer would be taken for the answer to the next request
                raise RigError(f"labgrid did not answer within {timeout:g} s", hint="try labgrid-client places")
            more = os.read(self._process.stdout.fileno(), 65536)
            if not more or len(self._pending) + len(more) > MOST_ANSWER:
                self._kill()
                raise RigError(f"labgrid's process ended: {self._last_error()}", hint="try labgrid-client places")
            self._pending += more
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        return answer if isinstance(answer, dict) else {"why": clean_line(repr(line[:80]))}

    def _last_error(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 4096))
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return clean_line(lines[-1].strip()) if lines else "it printed nothing"

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the process, which cancels its reservation first. Safe to call twice."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(EXIT)
        except subprocess.TimeoutExpired:
            self._kill()
        with suppress(OSError):
            if self._process.stdout is not None:
                self._process.stdout.close()
        self._errors.close()
