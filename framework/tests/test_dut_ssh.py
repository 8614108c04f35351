"""A DUT behind ssh: the system's ssh, a real sshd on loopback, and everything that can be wrong on the way."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue

import pytest
from rig_builder import a_rig
from sshds import HOST, Sshd, sshd

from fixtures.lab.ssh import make_key
from plugpull.dut.conversation.link import AgentGone, AgentLink, Message
from plugpull.dut.real.connect import connect
from plugpull.dut.real.reach import ALIVE_COUNT, ALIVE_EVERY, CONNECT_WITHIN, Unreachable, reach_of
from plugpull.errors import RigError
from plugpull.rig.model import Dut
from plugpull.run import Options, begin_run

PATIENCE = 60.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    with sshd(tmp_path) as server:
        yield server


@contextmanager
def dialled(dut: Dut, last: Message | None = None) -> Iterator[tuple[AgentLink, Message, Queue[Message]]]:
    reported: Queue[Message] = Queue()
    with ExitStack() as held:
        link, said = connect(reach_of(dut), reported.put, held, last or {})
        yield link, said, reported


def refused(dut: Dut, kind: type[RigError] = RigError) -> RigError:
    """The error that dialling ends with, within the deadlines there are."""
    begun = time.monotonic()
    with pytest.raises(kind) as caught, dialled(dut):
        pass
    assert time.monotonic() - begun < CONNECT_WITHIN + PATIENCE
    assert caught.value.hint, "it does not say how to fix it"
    return caught.value


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    path.parent.chmod(0o755)
    return str(path)


def alive(said: Message) -> bool:
    try:
        fields = Path(f"/proc/{said['pid']}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX" and fields[19] == said["started"]


def eventually(what: Callable[[], bool], within: float = PATIENCE) -> bool:
    deadline = time.monotonic() + within
    while not what() and time.monotonic() < deadline:
        time.sleep(0.02)  # processes that are not ours: there is nothing to wait on
    return what()


# --- there and back ---------------------------------------------------------------------------------------------------


def test_the_agent_is_sent_down_the_pipe_it_speaks_through(server: Sshd, tmp_path: Path) -> None:
    before = set(os.listdir("/tmp"))
    with dialled(server.dut()) as (link, said, _):
        assert said["kernel"] == os.uname().release
        assert link.call("jobs.alive", PATIENCE) == []
        assert link.clock.mapped
        assert alive(said)
        files = [os.readlink(f"/proc/{said['pid']}/fd/{fd}") for fd in os.listdir(f"/proc/{said['pid']}/fd")]
        assert any("memfd:plugpull-agent" in file for file in files)
    assert eventually(lambda: not alive(said)), "the agent outlives its connection"
    left = set(os.listdir("/tmp")) - before
    assert not any("agent" in name for name in left), "something was left on the DUT"


def test_a_talkative_login_shell_does_no_harm(tmp_path: Path) -> None:
    noisy = script(tmp_path / "noisy-python", 'echo "Welcome to bench2!"; echo "{"; exec python3 "$@"')
    with sshd(tmp_path) as server, dialled(server.dut(python=noisy)) as (link, _, _):
        assert link.call("jobs.alive", PATIENCE) == []
        assert link.unreadable == 0


def test_what_the_user_configured_for_this_host_is_not_in_the_way(server: Sshd) -> None:
    with (server.folder / "config").open("a") as config:
        config.write(
            f"  RemoteCommand echo hello\n  RequestTTY force\n  ControlMaster auto\n"
            f"  ControlPath {server.folder}/control\n  LocalForward {server.port} localhost:1\n"
        )
    with dialled(server.dut()) as (link, _, _):
        assert link.call("jobs.alive", PATIENCE) == []
        assert not (server.folder / "control").exists()


# --- what can be wrong ------------------------------------------------------------------------------------------------


def test_a_key_that_is_refused(server: Sshd) -> None:
    (server.folder / "authorized_keys").write_bytes(b"")
    error = refused(server.dut())
    assert "refused the key" in error.what
    assert f"ssh-copy-id {HOST}" in error.hint


def test_a_host_key_that_changed(server: Sshd) -> None:
    make_key(server.folder / "other")
    server.know("other")
    error = refused(server.dut())
    assert "host key is not the one ssh knows" in error.what
    assert f"ssh-keygen -R {HOST}" in error.hint


def test_a_host_that_is_not_known(server: Sshd) -> None:
    server.know("")
    error = refused(server.dut())
    assert "does not know its host key" in error.what
    assert "connect once by hand" in error.hint


def test_nobody_listening(server: Sshd) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server.configure(closed.getsockname()[1])
        error = refused(server.dut(), Unreachable)
    assert "nothing listens there" in error.what
    assert "is sshd running" in error.hint


def test_somebody_listening_who_says_nothing(server: Sshd) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        server.configure(mute.getsockname()[1])
        begun = time.monotonic()
        with pytest.raises(Unreachable) as caught, ExitStack() as held:
            connect(reach_of(server.dut()), lambda message: None, held, {}, 1.0)
        assert time.monotonic() - begun < PATIENCE
        assert caught.value.hint


def test_a_name_nobody_knows(server: Sshd) -> None:
    error = refused(server.dut(host="no-such-machine.invalid"))
    assert "no machine of that name" in error.what


def test_options_that_ssh_does_not_take(server: Sshd) -> None:
    error = refused(server.dut(ssh_options=(*server.options, "-o", "Nonsense=yes")))
    assert "refuses its configuration" in error.what


def test_no_python(server: Sshd) -> None:
    error = refused(server.dut(python="python3.99"))
    assert "there is no python3.99" in error.what
    assert "install python3 on the DUT" in error.hint


def test_a_python_that_is_too_old(server: Sshd) -> None:
    older = 'import sys; sys.version_info = (3, 6, 9, "final", 0); sys.version = "3.6.9 (old)"; exec(sys.argv[-1])'
    error = refused(server.dut(python=script(server.folder / "python36", f"exec python3 -c '{older}' \"$@\"")))
    assert "Python 3.6.9" in error.what
    assert "needs 3.9" in error.what
    assert "python =" in error.hint


def test_a_sudo_that_asks(tmp_path: Path) -> None:
    # Its own words, from a double: whether sudo asks on this machine is not ours to change.
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin" / "sudo", 'echo "sudo: a password is required" >&2; exit 1')
    with sshd(tmp_path, f"SetEnv PATH={tmp_path}/bin:/usr/bin:/bin") as server:
        error = refused(server.dut(sudo=True))
    assert "sudo wants a password" in error.what
    assert "sudoers" in error.hint


def test_ssh_is_not_installed(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(server.folder))
    assert "cannot run ssh" in refused(server.dut()).what


def verdict_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, **keys: object) -> tuple[str, RigError]:
    """What comes of a scenario on such a DUT: the verdict, and the error it stopped with."""
    monkeypatch.setenv("PLUGPULL_CACHE", str(tmp_path / "cache"))
    file = a_rig("loopback", kind, **keys).controller().disk("disk1", serial="NOT-HERE").write(tmp_path)
    run = begin_run(Options(file, tmp_path / "out"), lambda text: None)
    errors = []
    try:
        with run.scenario("nothing") as opened:
            try:
                opened.open()
            except RigError as error:
                opened.failed(error)
                errors.append(error)
    finally:
        outcome = run.finish()
    (stopped,) = errors
    assert outcome is not None
    return outcome[0].verdict, stopped


def ssh_keys(server: Sshd, **more: object) -> dict[str, object]:
    return {"host": HOST, "ssh_options": list(server.options), **more}


NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3"


def test_no_root_there(server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = "python3" if os.getuid() else script(server.folder / "nobodys-python", f'exec {NOBODY} "$@"')
    verdict, error = verdict_of(tmp_path, monkeypatch, "ssh", **ssh_keys(server, python=str(python)))
    assert verdict == "UNKNOWN"
    assert "only root may read the kernel log" in error.what
    assert "log in as root, or write sudo = true" in error.hint


def test_no_root_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = "python3" if os.getuid() else script(tmp_path / "nobodys-python", f'exec {NOBODY} "$@"')
    verdict, error = verdict_of(tmp_path, monkeypatch, "local", python=str(python))
    assert verdict == "UNKNOWN"
    assert "this machine: the agent runs as user" in error.what
    assert "run plugpull as root" in error.hint


@pytest.mark.skipif(os.getuid() != 0, reason="the agent needs root")
def test_no_fio_there(server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poor = script(tmp_path / "poor-python", f'PATH=/nowhere exec {Path(sys.executable).resolve()} "$@"')
    verdict, error = verdict_of(tmp_path, monkeypatch, "ssh", **ssh_keys(server, python=str(poor)))
    assert verdict == "UNKNOWN"
    assert "fio is not installed on the DUT" in error.what
    assert "install the fio package" in error.hint


# --- connections that break -------------------------------------------------------------------------------------------


def test_a_dropped_connection_is_told_with_ssh_s_words_and_the_dut_is_reached_again(server: Sshd) -> None:
    with dialled(server.dut()) as (link, first, reported):
        server.drop()
        while (message := reported.get(timeout=PATIENCE)).get("ev") != "link.lost":
            pass
        assert message["why"].startswith(f"ssh {HOST}: ")
        with pytest.raises(AgentGone):
            link.call("hello", PATIENCE)
        with dialled(server.dut(), first) as (_, second, _):
            assert second["boot_id"] == first["boot_id"]
            assert not alive(first), "its successor did not retire it"
            assert alive(second)


class Wire:
    """A cable between ssh and sshd, which can be cut without either of them noticing."""

    def __init__(self, to: int) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._to = to
        self._forwarder = subprocess.Popen(
            ["python3", "-c", _FORWARD, str(self._listening.fileno()), str(to)], pass_fds=[self._listening.fileno()]
        )

    def cut(self) -> None:
        self._forwarder.send_signal(signal.SIGSTOP)

    def close(self) -> None:
        self._forwarder.kill()
        self._forwarder.wait()
        self._listening.close()


_FORWARD = """
import select, socket, sys
near, _ = socket.socket(fileno=int(sys.argv[1])).accept()
far = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
while True:
    for here, there in ((near, far), (far, near)):
        if here in select.select([near, far], [], [])[0]:
            data = here.recv(65536)
            if not data:
                sys.exit()
            there.sendall(data)
"""


def test_a_connection_that_dies_without_a_word_is_noticed_and_the_agent_left_behind_ends(server: Sshd) -> None:
    wire = Wire(server.port)
    try:
        server.configure(wire.port)
        server.know("")
        (server.folder / "config").write_text(
            (server.folder / "config").read_text().replace("StrictHostKeyChecking yes", "StrictHostKeyChecking no")
        )
        with dialled(server.dut()) as (link, said, reported):
            link.call("expect", PATIENCE, every=1.0)
            wire.cut()
            begun = time.monotonic()
            while (message := reported.get(timeout=PATIENCE)).get("ev") != "link.lost":
                pass
            assert time.monotonic() - begun < ALIVE_EVERY * (ALIVE_COUNT + 1) + PATIENCE / 2
            assert "not responding" in message["why"]
            assert eventually(lambda: not alive(said)), "the agent waits for a controller that is gone"
    finally:
        wire.close()


def test_a_successor_retires_only_the_agent_that_was_meant(server: Sshd) -> None:
    with subprocess.Popen(["sleep", "1000"]) as other, dialled(server.dut()) as (link, _, _):
        assert link.call("retire", PATIENCE, pid=other.pid, started="1") is False
        assert other.poll() is None
        started = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
        assert link.call("retire", PATIENCE, pid=other.pid, started=started) is True
        assert other.wait(PATIENCE) == -signal.SIGTERM


# --- this machine -----------------------------------------------------------------------------------------------------


def test_this_machine_is_reached_by_a_child_process() -> None:
    with dialled(Dut(kind="local")) as (link, said, _):
        assert said["uid"] == os.getuid()
        assert link.call("jobs.alive", PATIENCE) == []
    assert eventually(lambda: not alive(said))


def test_this_machine_without_that_python() -> None:
    error = refused(Dut(kind="local", python="python3.99"))
    assert "python3.99" in error.what
