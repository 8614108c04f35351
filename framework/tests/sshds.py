"""An sshd of the test's own on loopback, run by the user who runs the tests, and what they would have in ``~/.ssh``."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from namespaces import require_mounts

from fixtures.lab.ssh import make_key
from fixtures.lab.sshd import find_sshd
from plugpull.cache import Cache
from plugpull.errors import PlugpullError
from plugpull.rig.model import Dut

PATIENCE = 60.0
HOST = "plugpull-dut"
"""An alias in the client's configuration, as a user would have one."""


@dataclass
class Sshd:
    """``options`` are what a rig file gives to ssh. ``extra`` are more lines of the server's configuration."""

    folder: Path
    extra: tuple[str, ...] = ()
    port: int = 0
    programs: dict[str, Path] = field(default_factory=dict)
    libraries: tuple[Path, ...] = ()
    _process: subprocess.Popen[bytes] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        return ("-F", str(self.folder / "config"))

    def dut(self, **keys: object) -> Dut:
        return Dut.model_validate({"kind": "ssh", "host": HOST, "ssh_options": self.options, **keys})

    def prepare(self) -> None:
        for name in ("id", "host_key"):
            make_key(self.folder / name)
        (self.folder / "authorized_keys").write_bytes((self.folder / "id.pub").read_bytes())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.know("host_key")
        self.configure()

    def know(self, key: str) -> None:
        """The user has met a host with this key, and no other; empty for none at all."""
        kind, public, *_ = (self.folder / f"{key}.pub").read_text().split() if key else ("", "")
        known = f"[127.0.0.1]:{self.port} {kind} {public}\n" if key else ""
        (self.folder / "known_hosts").write_text(known)

    def configure(self, port: int = 0) -> None:
        """The user's configuration, for the server's port or another one."""
        (self.folder / "config").write_text(
            f"Host {HOST}\n  HostName 127.0.0.1\n  Port {port or self.port}\n"
            f"  IdentityFile {self.folder}/id\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
            "  StrictHostKeyChecking yes\n  UpdateHostKeys no\n"
        )

    def start(self) -> None:
        lines = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.folder}/host_key",
            f"AuthorizedKeysFile {self.folder}/authorized_keys",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "PermitRootLogin prohibit-password",
            "PidFile none",
            "UseDNS no",
            "PrintMotd no",
        ]
        for name, key in (("sshd-session", "SshdSessionPath"), ("sshd-auth", "SshdAuthPath")):
            parts = [path for path in self.programs.values() if path.name == name]
            lines += [f"{key} {path}" for path in parts]
            if parts and name == "sshd-session":  # since 9.8 a client that breaks off is turned away for a while
                lines.append("PerSourcePenalties no")
        (self.folder / "sshd_config").write_text("\n".join([*lines, *self.extra]) + "\n")
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # as the service of the distribution does before it starts it
        (program,) = (path for path in self.programs.values() if path.name == "sshd")
        line = [str(program), "-D", "-e", "-f", str(self.folder / "sshd_config")]
        if os.getuid() == 0 and not _is_user("sshd"):
            line = [*self._known_user(), *line]
        places = ":".join(sorted({str(path.parent) for path in self.libraries}))
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                line,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **({"LD_LIBRARY_PATH": places} if places else {})},
            )
        deadline = time.monotonic() + PATIENCE
        while not self._greets():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.02)  # there is no event for its beginning to listen

    def _known_user(self) -> list[str]:
        """What runs a command with a user sshd, which root's sshd gives up its rights to: installing the server would
        add it to the machine, and here it is in a mount namespace of its own."""
        require_mounts()
        users = self.folder / "passwd"
        users.write_text(Path("/etc/passwd").read_text() + "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
        return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', str(users)]

    def _greets(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as line:
            line.settimeout(5)
            return line.recv(4) == b"SSH-"
        return False

    def sessions(self) -> list[int]:
        """The processes that each hold one connection."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def drop(self) -> None:
        """Break every connection; new ones can be made."""
        for pid in self.sessions():
            # The monitor and its child without privileges, which holds the socket.
            for each in (*_children(pid, "sshd"), pid):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)

    def stop(self) -> None:
        if self._process is not None:
            sessions = self.sessions() if self._process.poll() is None else []
            self._process.terminate()
            self._process.wait(PATIENCE)
            for pid in sessions:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            self._process = None


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _children(pid: int, name: str) -> list[int]:
    found = []
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text().startswith(name):
                found.append(int(child))
    return found


@contextmanager
def sshd(folder: Path, *extra: str) -> Iterator[Sshd]:
    """A server that lets the user in; ``extra`` are lines of its configuration. Skips the test where there is none."""
    try:
        found = find_sshd(Cache.default())
    except PlugpullError as why:
        pytest.skip(f"no sshd: {why}")
    server = Sshd(folder, extra, programs=found.programs, libraries=tuple(found.libraries.values()))
    server.prepare()
    server.start()
    try:
        yield server
    finally:
        server.stop()
