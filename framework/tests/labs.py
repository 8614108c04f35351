"""A lab on loopback: labgrid's coordinator and an exporter, with places, and clients of other users."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from plugpull.coordination.place_process import PlaceProcess
from plugpull.rig.model import LabgridPlace

EXPORTS = """\
rig1:
  NetworkPowerPort:
    model: netio
    host: 127.0.0.1
    index: 1
"""


@dataclass(frozen=True)
class Lab:
    """A running coordinator. ``python`` is the interpreter that has labgrid. ``observer`` asks and reserves nothing."""

    address: str
    python: Path
    coordinator: subprocess.Popen[bytes]
    observer: PlaceProcess

    def place(self, name: str, **more: object) -> LabgridPlace:
        values = {"place": name, "coordinator": self.address, "python": str(self.python), **more}
        return LabgridPlace.model_validate(values)

    def client(self, *words: str, user: str = "alice") -> subprocess.CompletedProcess[str]:
        """labgrid-client, as a user of another machine."""
        environment = {**os.environ, "LG_COORDINATOR": self.address, "LG_HOSTNAME": "ws", "LG_USERNAME": user}
        return subprocess.run(
            program(self.python, "client", *words),
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def reservations(self, state: str = "allocated") -> list[str]:
        """The tokens of all reservations in a state."""
        return [one.token for one in self.observer.look().reservations if one.state == state]


def program(python: Path, name: str, *words: str) -> list[str]:
    """The command line of one of labgrid's programs. Their scripts name the directory in which they were installed,
    and the environment was moved since."""
    return [str(python), "-I", "-c", f"from labgrid.remote.{name} import main; main()", *words]


@contextmanager
def lab(folder: Path, python: Path) -> Iterator[Lab]:
    """A coordinator with the places rig1 (whose resource is exported), rig2 (without matches) and rig3 (whose match
    nobody exports)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "exports.yaml").write_text(EXPORTS)
    environment = {**os.environ, "LG_COORDINATOR": address}
    programs = [["coordinator", "--listen", address], ["exporter", "--name", "lab1", "exports.yaml"]]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name, *words in programs:
            line = program(python, name, *words)
            with (folder / f"{name}.log").open("wb") as log:
                started.append(subprocess.Popen(line, cwd=folder, env=environment, stdout=log, stderr=log))
            _answers(address)
        asking = LabgridPlace(place="any", coordinator=address, python=str(python))
        with PlaceProcess(asking) as observer:
            made = Lab(address, python, started[0], observer)
            for place in ("rig1", "rig2", "rig3"):
                assert made.client("-p", place, "create").returncode == 0
            for place in ("rig1", "rig3"):
                assert made.client("-p", place, "add-match", f"*/{place}/*").returncode == 0
            _until(lambda: not observer.look().places["rig1"].unmatched)
            yield made
    finally:
        for one in reversed(started):
            one.kill()
            one.wait()


def _answers(address: str) -> None:
    host, _, port = address.rpartition(":")

    def connected() -> bool:
        try:
            socket.create_connection((host, int(port)), 1.0).close()
        except OSError:
            return False
        return True

    _until(connected)


def _until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
