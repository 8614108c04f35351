"""The agent as an ordinary process on this machine, spoken with over its own protocol; its jobs and its outbox."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from plugpull.dut import agent as agent_package
from plugpull.dut.agent import AGENT_VERSION
from plugpull.dut.agent.jobs import MAX_OUTPUT, Jobs
from plugpull.dut.agent.wire import MAX_LINE, Outbox
from plugpull.dut.conversation.agent_zip import agent_zip
from plugpull.dut.conversation.link import AgentGone, AgentLink, GuardRefused, Message
from plugpull.errors import RigError

PATIENCE = 60.0
"""Seconds for what takes a moment, on a machine that may be busy."""


@dataclass(frozen=True)
class Agent:
    """A running agent, the link to it, the raw socket below the link, and what it told."""

    process: subprocess.Popen[bytes]
    link: AgentLink
    raw: socket.socket
    told: Queue[Message]

    def wait_told(self, kind: str, **having: object) -> Message:
        return wait_for(self.told, lambda m: m.get("ev") == kind and all(m.get(k) == v for k, v in having.items()))


def wait_for(told: Queue[Message], wanted: Callable[[Message], bool]) -> Message:
    """The first message that is wanted; those before it are dropped. Raises queue.Empty when none comes."""
    deadline = time.monotonic() + PATIENCE
    while True:
        message = told.get(timeout=max(0.0, deadline - time.monotonic()))
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
        told: Queue[Message] = Queue()
        link = AgentLink(ours, told.put)
        try:
            yield Agent(process, link, ours, told)
        finally:
            link.close()
            ours.close()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


@pytest.fixture(scope="module")
def running() -> Iterator[Agent]:
    with agent() as started:
        yield started


# --- the protocol -----------------------------------------------------------------------------------------------------


def test_hello_says_who_the_dut_is(running: Agent) -> None:
    hello = running.link.call("hello", PATIENCE)
    assert hello["agent"] == AGENT_VERSION
    assert hello["kernel"] == os.uname().release
    assert hello["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert hello["uid"] == os.getuid()
    assert hello["uevents"] in ("pyudev", "netlink")


def test_its_clock_is_mapped_within_the_bound(running: Agent) -> None:
    # On this machine both clocks are CLOCK_MONOTONIC.
    exchange = running.link.map_clock(PATIENCE)
    moment = time.monotonic()
    mapped, error = running.link.clock.at(moment)
    assert exchange.sent <= exchange.dut <= exchange.received
    assert abs(mapped - moment) <= error


def test_an_operation_it_does_not_know_is_refused(running: Agent) -> None:
    with pytest.raises(GuardRefused, match="knows no operation 'levitate'"):
        running.link.call("levitate", PATIENCE)


def test_an_operation_that_raises_says_why_and_ends_nothing(running: Agent) -> None:
    with pytest.raises(RigError, match=r"could not do 'sample'.*TypeError"):
        running.link.call("sample", PATIENCE, interval=0.1, wrong=1)
    with pytest.raises(RigError, match="KeyError"):
        running.link.call("guard", PATIENCE, disk={})
    assert running.link.call("hello", PATIENCE)["agent"] == AGENT_VERSION


@pytest.mark.parametrize(
    "garbage",
    [
        b"garbage\n",
        b"\xff\xfe\x00\x80\n",
        b"\n\n  \n",
        b"[1, 2]\n",
        b"null\n",
        b'{"id": 1\n',
        b'{"op": ["hello"], "id": 0}\n',
        b'{"op": "hello", "args": 7, "id": 0}\n',
        b'{"id": 0}\n',
        b"[" * 200_000 + b"\n",
        b'{"a":' * 100_000 + b"\n",
    ],
    ids=lambda garbage: repr(garbage[:12]),
)
def test_garbage_is_passed_over(running: Agent, garbage: bytes) -> None:
    running.raw.sendall(garbage)
    assert running.link.call("hello", PATIENCE)["agent"] == AGENT_VERSION


def test_a_request_may_come_in_pieces() -> None:
    with agent() as started:
        for byte in b'{"id": 4711, "op": "clock"}\n':
            started.raw.send(bytes([byte]))
        # The link did not ask this, so it lets the answer pass; that the next one is answered shows nothing is stuck.
        assert started.link.call("hello", PATIENCE)["agent"] == AGENT_VERSION
        assert started.link.unreadable == 0


def test_a_line_longer_than_any_of_ours_is_dropped(running: Agent) -> None:
    running.raw.sendall(b'{"id": 0, "op": "' + b"x" * (5 << 20) + b'"}\n')
    assert MAX_LINE < 5 << 20
    assert running.link.call("hello", PATIENCE)["agent"] == AGENT_VERSION


def test_two_hundred_requests_at_once_are_all_answered(running: Agent) -> None:
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: running.link.call("jobs.alive", PATIENCE), range(200)))
    assert answers == [[]] * 200


def test_long_requests_from_several_threads_do_not_mix(running: Agent) -> None:
    names = [chr(ord("a") + number) * 300_000 for number in range(12)]
    with ThreadPoolExecutor(len(names)) as pool:
        answers = list(pool.map(lambda name: running.link.call("jobs.stop", PATIENCE, jobs=[name], grace=0.1), names))
    assert answers == [{}] * len(names)


def test_disks_of_any_kind_are_listed(running: Agent) -> None:
    # Most machines that run this have disks that hang off no USB.
    listed = {disk["kname"] for disk in running.link.call("disks", PATIENCE)}
    assert listed == {path.parent.name for path in Path("/sys/block").glob("*/device")}


def test_samples_come_and_stop(running: Agent) -> None:
    running.link.call("sample", PATIENCE, interval=0.02)
    first, second = running.wait_told("sample"), running.wait_told("sample")
    running.link.call("sample.stop", PATIENCE)
    assert second["at"] > first["at"]
    assert first["cpu"].startswith("cpu ")


@pytest.mark.parametrize(
    "source", sorted(Path(agent_package.__file__ or "").parent.glob("*.py")), ids=lambda path: path.name
)
def test_a_dut_with_python_3_9_can_read_it(source: Path) -> None:
    ast.parse(source.read_text(), feature_version=(3, 9))


# --- its end ----------------------------------------------------------------------------------------------------------


def test_the_end_of_the_stream_ends_it() -> None:
    with agent() as started:
        started.link.call("hello", PATIENCE)
        begun = time.monotonic()
        started.link.close()
        assert started.process.wait(PATIENCE) == 0
        assert time.monotonic() - begun < 5


def test_the_end_of_the_stream_ends_what_it_started(tmp_path: Path) -> None:
    scripts = {
        "polite": f"echo $$ > {tmp_path}/polite; exec sleep 1000",
        "stubborn": f"trap '' INT TERM HUP; echo $$ > {tmp_path}/stubborn; while :; do sleep 1; done",
        "parent": f"sh -c 'echo $$ > {tmp_path}/parent; sleep 1000; :' >/dev/null 2>&1 & wait",
        "talker": f"echo $$ > {tmp_path}/talker; exec yes",
    }
    with agent(program=STARTING) as started:
        for name, script in scripts.items():
            started.link.call("start", PATIENCE, job=name, argv=["sh", "-c", script])
        pids = [pid_in(tmp_path / name) for name in scripts]
        assert all(alive(pid) for pid in pids)
        assert len(started.link.call("jobs.alive", PATIENCE)) == len(scripts)
        started.link.close()
        assert started.process.wait(PATIENCE) == 0
        assert [pid for pid in pids if not wait_dead(pid)] == []


def test_an_agent_that_dies_wakes_whoever_waits_for_it() -> None:
    with agent() as started, ThreadPoolExecutor(5) as pool:
        os.kill(started.process.pid, signal.SIGSTOP)
        waiting = [pool.submit(started.link.call, "hello", PATIENCE) for _ in range(5)]
        started.process.kill()
        for call in waiting:
            with pytest.raises(AgentGone):
                call.result(PATIENCE)
        assert started.wait_told("link.lost")
        with pytest.raises(AgentGone):
            started.link.call("hello", PATIENCE)


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_without_the_right_to_read_the_kernel_log_it_says_so_and_lives() -> None:
    unprivileged = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    probe = subprocess.run([*unprivileged, "head", "-c0", "/dev/kmsg"], capture_output=True, check=False)
    interpreter = subprocess.run([*unprivileged, sys.executable, "-c", ""], capture_output=True, check=False)
    if probe.returncode == 0 or interpreter.returncode != 0:
        pytest.skip("here everybody may read the kernel log, or nobody else may run this Python")
    with agent(*unprivileged) as started:
        broken = started.wait_told("watcher.broken", what="the kernel log")
        assert "Permission" in broken["why"] or "permitted" in broken["why"]
        assert started.link.call("hello", PATIENCE)["uid"] == 65534


# --- the controller's end of the link ---------------------------------------------------------------------------------


@contextmanager
def link_by_hand() -> Iterator[tuple[AgentLink, socket.socket, Queue[Message]]]:
    """A link whose other end the test speaks for."""
    ours, theirs = socket.socketpair()
    told: Queue[Message] = Queue()
    link = AgentLink(ours, told.put)
    try:
        yield link, theirs, told
    finally:
        link.close()
        ours.close()
        theirs.close()


def request(theirs: socket.socket) -> Message:
    theirs.settimeout(PATIENCE)
    return dict(json.loads(theirs.makefile("rb").readline()))


def test_an_answer_after_its_deadline_is_ignored() -> None:
    with link_by_hand() as (link, theirs, told), ThreadPoolExecutor(1) as pool:
        late = pool.submit(link.call, "slow", 0.05)
        number = request(theirs)["id"]
        with pytest.raises(AgentGone, match=r"did not answer 'slow' within 0\.05 s"):
            late.result(PATIENCE)
        theirs.sendall(json.dumps({"id": number, "ok": True, "r": "late"}).encode() + b"\n")
        prompt = pool.submit(link.call, "quick", PATIENCE)
        number = request(theirs)["id"]
        theirs.sendall(json.dumps({"id": number, "ok": True, "r": "prompt"}).encode() + b"\n")
        assert prompt.result(PATIENCE) == "prompt"
        assert link.lost == ""
        with pytest.raises(Empty):
            told.get_nowait()


def test_the_end_of_the_stream_wakes_all_who_wait() -> None:
    with link_by_hand() as (link, theirs, told), ThreadPoolExecutor(10) as pool:
        waiting = [pool.submit(link.call, "hello", PATIENCE) for _ in range(10)]
        lines = theirs.makefile("rb")
        for _ in waiting:
            lines.readline()
        theirs.shutdown(socket.SHUT_RDWR)
        for call in waiting:
            with pytest.raises(AgentGone, match="stream ended"):
                call.result(PATIENCE)
        assert told.get(timeout=PATIENCE)["ev"] == "link.lost"


def test_it_knows_when_it_last_heard_the_agent() -> None:
    with link_by_hand() as (link, theirs, told):
        before = time.monotonic()
        assert link.heard <= before
        theirs.sendall(b'{"ev": "note"}\n')
        told.get(timeout=PATIENCE)
        assert before <= link.heard <= time.monotonic()


def test_an_agent_that_says_nothing_is_given_up_at_the_deadline() -> None:
    with link_by_hand() as (link, _, told):
        with pytest.raises(AgentGone, match=r"did not answer with its time within 0\.05 s"):
            link.map_clock(0.05)
        assert not link.clock.mapped
        assert link.lost == "", "a slow answer is no broken stream"
        assert told.empty()


def test_a_request_over_a_broken_stream_is_lost_at_once() -> None:
    with link_by_hand() as (link, theirs, told):
        theirs.close()
        assert told.get(timeout=PATIENCE)["ev"] == "link.lost"
        for _ in range(2):
            with pytest.raises(AgentGone):
                link.call("hello", PATIENCE)
        assert told.empty(), "the loss is told once"


def test_lines_that_cannot_be_read_are_counted() -> None:
    unreadable = [b"garbage", b"[1]", b'"text"', b"\xff", b'{"half":', b"[" * 200_000, b'{"id": [1], "ok": true}']
    with link_by_hand() as (link, theirs, told):
        theirs.sendall(b"\n".join(unreadable) + b"\n")
        theirs.sendall(b'{"ev": "note"}\n')
        assert told.get(timeout=PATIENCE) == {"ev": "note"}
        assert link.unreadable == len(unreadable)


# --- jobs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    jobs: Jobs
    told: Queue[Message]

    def end_of(self, name: str) -> Message:
        return wait_for(self.told, lambda message: message.get("job") == name)


@pytest.fixture
def shop() -> Iterator[Ended]:
    told: Queue[dict[str, Any]] = Queue()
    jobs = Jobs(told.put)
    yield Ended(jobs, told)
    jobs.stop_all(5.0)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
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


def test_a_job_that_ends_says_how(shop: Ended) -> None:
    shop.jobs.start("three", ["sh", "-c", "echo out; echo err >&2; exit 3"])
    end = shop.end_of("three")
    assert (end["status"], end["asked"], end["output"]) == (3, False, "out\nerr\n")


def test_a_job_that_is_asked_to_end_gets_sigint_first(shop: Ended, tmp_path: Path) -> None:
    script = f"trap 'echo caught; exit 0' INT; echo $$ > {tmp_path}/ready; while :; do sleep 0.05; done"
    shop.jobs.start("polite", ["bash", "-c", script])
    pid_in(tmp_path / "ready")
    assert shop.jobs.stop(["polite"], PATIENCE) == {"polite": {"stuck": False}}
    end = shop.end_of("polite")
    assert (end["status"], end["asked"]) == (0, True)
    assert "caught" in end["output"]


def test_a_job_that_ignores_sigint_is_killed(shop: Ended, tmp_path: Path) -> None:
    script = f"trap '' INT; echo $$ > {tmp_path}/ready; while :; do sleep 1; done"
    shop.jobs.start("stubborn", ["bash", "-c", script])
    pid = pid_in(tmp_path / "ready")
    assert shop.jobs.stop(["stubborn"], 2.0) == {"stubborn": {"stuck": False}}
    assert shop.end_of("stubborn")["status"] == -signal.SIGKILL
    assert not alive(pid)
    assert shop.jobs.alive() == []


@pytest.mark.parametrize("output", ["", ">/dev/null 2>&1"], ids=["holding its output", "silent"])
def test_what_a_job_started_ends_with_it(shop: Ended, tmp_path: Path, output: str) -> None:
    # A background child of a shell without job control ignores SIGINT.
    script = f"sh -c 'echo $$ > {tmp_path}/child; sleep 1000; :' {output} & wait"
    shop.jobs.start("family", ["sh", "-c", script])
    child = pid_in(tmp_path / "child")
    assert shop.jobs.stop(["family"], 2.0) == {"family": {"stuck": False}}
    shop.end_of("family")
    assert wait_dead(child)


def test_what_a_job_leaves_running_when_it_ends_is_ended(shop: Ended, tmp_path: Path) -> None:
    shop.jobs.start("leaver", ["sh", "-c", f"sh -c 'echo $$ > {tmp_path}/child; sleep 1000; :' >/dev/null 2>&1 &"])
    assert shop.end_of("leaver")["status"] == 0
    with suppress(AssertionError):
        # It may have been ended before it could say its number.
        assert not (tmp_path / "child").exists() or wait_dead(pid_in(tmp_path / "child"))


def test_output_is_bounded_and_its_end_is_kept(shop: Ended) -> None:
    shop.jobs.start("talker", ["sh", "-c", "head -c 3145728 /dev/zero | tr '\\0' x; echo; echo the end"])
    end = shop.end_of("talker")
    assert len(end["output"]) == MAX_OUTPUT
    assert end["output"].endswith("x\nthe end\n")


def test_stopping_what_has_ended_or_never_was_is_harmless(shop: Ended) -> None:
    shop.jobs.start("short", ["true"])
    end = shop.end_of("short")
    assert shop.jobs.stop(["short", "unheard-of"], 0.1) == {"short": {"stuck": False}}
    assert not end["asked"]


def test_jobs_are_stopped_side_by_side(shop: Ended, tmp_path: Path) -> None:
    names = [f"stubborn{number}" for number in range(6)]
    for name in names:
        script = f"trap '' INT; echo $$ > {tmp_path}/{name}; while :; do sleep 1; done"
        shop.jobs.start(name, ["bash", "-c", script])
    for name in names:
        pid_in(tmp_path / name)
    begun = time.monotonic()
    assert shop.jobs.stop(names, 2.0) == {name: {"stuck": False} for name in names}
    # One after another they would take at least the grace times their number.
    assert time.monotonic() - begun < 2.0 * len(names)


@pytest.mark.parametrize("program", ["/no/such/program", "nul\0byte"])
def test_a_job_that_cannot_start_lets_go_of_its_disk(shop: Ended, tmp_path: Path, program: str) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises((OSError, ValueError)):
        shop.jobs.start("nothing", [program], (fd,))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_job_pins_its_descriptor_until_it_ends(shop: Ended, tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    shop.jobs.start("pin", ["sleep", "1000"], (fd,))
    os.fstat(fd)
    shop.jobs.stop(["pin"], PATIENCE)
    shop.end_of("pin")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


# --- the outbox -------------------------------------------------------------------------------------------------------


class Jam:
    """A stream that takes nothing until it is freed."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.entered = threading.Event()
        self.messages: Queue[Message] = Queue()

    def write(self, data: bytes) -> None:
        self.entered.set()
        assert self.free.wait(PATIENCE)
        for line in data.splitlines():
            self.messages.put(json.loads(line))


def test_an_outbox_that_is_full_drops_and_says_how_many() -> None:
    jam = Jam()
    outbox = Outbox(jam.write, limit=100)
    outbox.send({"n": -1})
    assert jam.entered.wait(PATIENCE)  # the first is on its way; nothing more is taken out of the queue

    def send(first: int) -> None:
        for number in range(first, first + 500):
            outbox.send({"n": number})

    threads = [threading.Thread(target=send, args=(500 * worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "sending must never block"
    jam.free.set()
    arrived = [jam.messages.get(timeout=PATIENCE) for _ in range(101)]
    outbox.send({"n": 9999})
    dropped, last = jam.messages.get(timeout=PATIENCE), jam.messages.get(timeout=PATIENCE)
    assert all("n" in message for message in arrived)
    assert (dropped["ev"], dropped["count"]) == ("dropped", 1900)
    assert last == {"n": 9999}


def test_an_outbox_keeps_order() -> None:
    jam = Jam()
    jam.free.set()
    outbox = Outbox(jam.write)
    for number in range(3000):
        outbox.send({"n": number})
    assert [jam.messages.get(timeout=PATIENCE)["n"] for _ in range(3000)] == list(range(3000))


def test_an_outbox_outlives_a_broken_stream() -> None:
    broken, written = threading.Event(), Queue[bytes]()

    def write(data: bytes) -> None:
        if not broken.is_set():
            broken.set()
            raise BrokenPipeError
        written.put(data)

    outbox = Outbox(write)
    outbox.send({"n": 1})
    assert broken.wait(PATIENCE)
    outbox.send({"n": 2})
    assert json.loads(written.get(timeout=PATIENCE)) == {"n": 2}


def test_a_muted_outbox_says_nothing() -> None:
    jam = Jam()
    jam.free.set()
    outbox = Outbox(jam.write)
    outbox.muted = True
    outbox.send({"n": 1})
    outbox.muted = False
    outbox.send({"n": 2})
    assert jam.messages.get(timeout=PATIENCE) == {"n": 2}
