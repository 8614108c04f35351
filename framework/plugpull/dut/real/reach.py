"""The way to a real DUT: this machine, or one behind ssh. Starts the agent there, and explains what went wrong."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from plugpull.dut.conversation.bootstrap import NO_PYTHON, OLDEST, TOO_OLD, boot_command, boot_payload, quoted
from plugpull.errors import RigError
from plugpull.history.events import DutKind
from plugpull.rig.model import Dut

ALIVE_EVERY = 3
ALIVE_COUNT = 3
"""ssh asks the DUT every so many seconds whether it is there, and gives up after so many unanswered questions."""
CONNECT_WITHIN = 15
"""Seconds ssh gets for the TCP connection and its handshake."""
BOOTING = CONNECT_WITHIN + 15.0
"""Seconds the agent may take on its way to the DUT."""
MOST_WORDS = 4 << 20
"""Bytes that a DUT may write to ssh's standard error."""
ENDING = 5.0
"""Seconds to wait for the command to end after the agent was asked to."""


class Reach(Protocol):
    """One way to a DUT."""

    @property
    def kind(self) -> DutKind: ...

    @property
    def name(self) -> str:
        """For messages: "this machine", "ssh bench2"."""
        ...

    def command(self, within: float = CONNECT_WITHIN) -> list[str]:
        """The command whose standard input and output are the agent's; it gets ``within`` seconds to connect."""
        ...

    def explain(self, status: int | None, words: str) -> RigError:
        """Why the command ended with this exit status and these words on standard error. Unreachable when trying
        again later may help."""
        ...


class Unreachable(RigError):
    """The DUT cannot be reached at the moment: it may be starting, or the network is down."""


class Connection:
    """A running command with the agent behind it. ``socket`` is our end of its standard input and output."""

    def __init__(self, reach: Reach, within: float = CONNECT_WITHIN) -> None:
        self._reach = reach
        command = reach.command(within)
        self.socket, theirs = socket.socketpair()
        # A file and not a pipe: the command does not block if nothing reads it.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the connection)
        with theirs:
            pipe = theirs.fileno()
            try:
                self._process = subprocess.Popen(
                    command, stdin=pipe, stdout=pipe, stderr=self._errors, start_new_session=True
                )
            except OSError as error:
                self.socket.close()
                self._errors.close()
                raise RigError(
                    f"cannot run {command[0]}: {error.strerror}", hint="is it installed on this machine?"
                ) from None
        if reach.kind == "ssh":
            # The DUT's standard error goes to a file of this machine. The limit ends ssh when the file is full.
            with suppress(OSError):
                resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (MOST_WORDS, MOST_WORDS))
        # Before anybody else may write: the agent's first request must not come in the middle of the agent.
        self._send(boot_payload())

    def _send(self, payload: bytes) -> None:
        """ssh reads it once it is connected. Whether it was taken shows in whether the agent answers."""
        self.socket.settimeout(BOOTING)
        with suppress(OSError):
            self.socket.sendall(payload)
        self.socket.settimeout(None)

    def why(self) -> RigError:
        """The error that says why the agent does not answer."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        return self._reach.explain(self._process.poll(), self.words())

    def words(self) -> str:
        """What the command has written on standard error."""
        # Not by seeking: the command writes where the file's one position is.
        return os.pread(self._errors.fileno(), 1 << 16, 0).decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End it. The agent sees its input end and ends what it started."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(ENDING)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError, PermissionError):  # sudo is root's
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING)
        self.socket.close()
        self._errors.close()


@dataclass(frozen=True)
class LocalReach:
    """The disks hang off this machine."""

    dut: Dut
    kind: DutKind = "local"
    name: str = "this machine"

    def command(self, within: float = CONNECT_WITHIN) -> list[str]:
        return boot_command(self.dut.python, self.dut.sudo)

    def explain(self, status: int | None, words: str) -> RigError:
        return _explain_python(self, self.dut, status, words) or RigError(
            f"the agent on this machine does not answer: {words or f'exit status {status}'}"
        )


@dataclass(frozen=True)
class _Saying:
    """What ssh says (a regular expression), what that means, how to fix it, and whether it may pass by itself."""

    words: str
    what: str
    hint: str
    passing: bool = False


_SSH_SAYS = (
    _Saying(
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for \S+ has changed",
        "its host key is not the one ssh knows",
        "if the machine was installed again: ssh-keygen -R {host}, then connect once by hand",
    ),
    _Saying(
        r"Host key verification failed|No \S+ host key is known",
        "ssh does not know its host key",
        "connect once by hand and compare the key: ssh {host}",
    ),
    _Saying(
        r"Permission denied \(|Too many authentication failures|no mutual signature",
        "it refused the key",
        "ssh {host} has to work without a password: ssh-copy-id {host}, or name the key in your ssh configuration",
    ),
    _Saying(
        r"Could not resolve hostname|Name or service not known",
        "there is no machine of that name",
        "check `host` in [dut]: it is a name or an address for ssh, or a Host of your ssh configuration",
    ),
    _Saying(
        r"Connection refused",
        "nothing listens there",
        "is sshd running on it, and is the port right (ssh_options, or your ssh configuration)?",
        passing=True,
    ),
    _Saying(
        r"Connection timed out|No route to host|Network is unreachable|Operation timed out",
        "it cannot be reached",
        "check that it is switched on, and the network between it and this machine",
        passing=True,
    ),
    _Saying(
        r"[Bb]ad configuration option|Unsupported option|terminating, \d+ bad|Can't open user config file|^usage: ssh",
        "ssh refuses its configuration",
        "see what ssh says above; ssh_options in [dut] are given to it as they are",
    ),
    _Saying(
        r"Timeout, server \S+ not responding|Connection (?:reset|closed)|Broken pipe|client_loop|closed by remote host",
        "the connection broke",
        "is the machine still up? If it is, look at its network",
        passing=True,
    ),
)


@dataclass(frozen=True)
class SshReach:
    """A machine behind ssh: the system's OpenSSH with the user's own configuration."""

    dut: Dut
    kind: DutKind = "ssh"

    @property
    def name(self) -> str:
        return f"ssh {self.dut.host}"

    def command(self, within: float = CONNECT_WITHIN) -> list[str]:
        options = {
            "BatchMode": "yes",  # there is no terminal to answer a question
            "ConnectTimeout": str(max(1, round(within))),
            "ServerAliveInterval": str(ALIVE_EVERY),
            "ServerAliveCountMax": str(ALIVE_COUNT),
            "ControlPath": "none",  # a shared connection may end with another process, or outlive this one
            "ClearAllForwardings": "yes",
            "ForwardX11": "no",
            "ForwardAgent": "no",
            "RemoteCommand": "none",  # one of the user's configuration would be in the way of ours
            "PermitLocalCommand": "no",
            "RequestTTY": "no",
            "LogLevel": "INFO",  # with less, ssh does not say that the DUT stopped answering
        }
        given = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        remote = quoted(boot_command(self.dut.python, self.dut.sudo))
        # The user's own options come first: of several settings ssh takes the first.
        return ["ssh", *self.dut.ssh_options, *given, "--", str(self.dut.host), remote]

    def explain(self, status: int | None, words: str) -> RigError:
        found = _explain_python(self, self.dut, status, words)
        if found is not None:
            return found
        for saying in _SSH_SAYS:
            if re.search(saying.words, words, re.MULTILINE):
                error = Unreachable if saying.passing else RigError
                return error(f"{self.name}: {saying.what}: {_last(words)}", hint=saying.hint.format(host=self.dut.host))
        if status is None:
            return Unreachable(
                f"{self.name}: the agent does not answer: {_last(words) or 'no reason given'}",
                hint="is the machine very busy? What does its shell print when it starts?",
            )
        return RigError(f"{self.name}: ended with status {status}: {_last(words) or 'no reason given'}")


def _explain_python(reach: Reach, dut: Dut, status: int | None, words: str) -> RigError | None:
    """What both ways have in common: the interpreter, and sudo."""
    oldest = ".".join(map(str, OLDEST))
    if status == TOO_OLD:
        found = words.rpartition("python ")[2].split("\n")[0]
        return RigError(
            f"{reach.name}: {dut.python} is Python {found}, and the agent needs {oldest} or later",
            hint='name another interpreter of the DUT: python = "/usr/local/bin/python3" in [dut]',
        )
    if re.search(r"sudo: .*(?:password|terminal|not in the sudoers|not allowed)", words):
        return RigError(
            f"{reach.name}: sudo wants a password: {_last(words)}",
            hint="allow it without one in the DUT's sudoers, or log in as root",
        )
    missing = re.search(r"(?:not found|No such file or directory|Unknown command)", words)
    if status == NO_PYTHON or (status is not None and missing and dut.python in words):
        return RigError(
            f"{reach.name}: there is no {dut.python}: {_last(words)}",
            hint='install python3 on the DUT, or say where it is: python = "..." in [dut]',
        )
    return None


def _last(words: str) -> str:
    """The last line that is not blank."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def reach_of(dut: Dut) -> Reach:
    """The way to a real DUT."""
    return SshReach(dut) if dut.kind == "ssh" else LocalReach(dut)
