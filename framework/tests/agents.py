"""The agent as an ordinary process on this machine, and what tests wait for."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory

from plugpull.dut.conversation.agent_zip import agent_zip
from plugpull.dut.conversation.link import AgentLink, Message

PATIENCE = 60.0
"""Seconds for what takes a moment, on a machine that may be busy."""


@dataclass(frozen=True)
class Agent:
    """A running agent, the link to it, the raw socket below the link, and the messages that it reported."""

    process: subprocess.Popen[bytes]
    link: AgentLink
    raw: socket.socket
    reported: Queue[Message]

    def wait_reported(self, kind: str, **having: object) -> Message:
        return wait_for(self.reported, lambda m: m.get("ev") == kind and all(m.get(k) == v for k, v in having.items()))


def wait_for(reported: Queue[Message], wanted: Callable[[Message], bool]) -> Message:
    """The first message that is wanted; those before it are dropped. Raises queue.Empty when none comes."""
    deadline = time.monotonic() + PATIENCE
    while True:
        message = reported.get(timeout=max(0.0, deadline - time.monotonic()))
        if wanted(message):
            return message


STARTING = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from agent import __main__ as program, service

class Starting(service.Service):
    def op_start(self, job, argv):
        return self.jobs.start(job, argv)

program.Service = Starting
program.main()
"""
"""The agent with one operation more, that starts any program: fio needs a disk."""


@contextmanager
def agent(*before: str, program: str = "") -> Iterator[Agent]:
    """An agent of its own on a socket; ``before`` goes in front of its command line. ``program`` is run in place of the
    bundle and gets its path."""
    ours, theirs = socket.socketpair()
    with TemporaryDirectory(prefix="plugpull-agent-") as folder:
        Path(folder).chmod(0o755)
        bundle = Path(folder) / "agent.zip"
        bundle.write_bytes(agent_zip())
        command = [*before, sys.executable, *(("-c", program) if program else ()), str(bundle)]
        with (Path(folder) / "stderr").open("wb") as errors:
            process = subprocess.Popen(
                command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=errors, start_new_session=True
            )
        theirs.close()
        reported: Queue[Message] = Queue()
        link = AgentLink(ours, reported.put)
        try:
            yield Agent(process, link, ours, reported)
        finally:
            link.close()
            ours.close()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_dead(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)  # no child of ours: there is nothing to wait on
    return not alive(pid)


def pid_in(file: Path) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(OSError, ValueError):
            text = file.read_text()
            if text.endswith("\n"):
                return int(text)
        time.sleep(0.01)  # another process writes it
    raise AssertionError(f"nothing was written to {file}")
