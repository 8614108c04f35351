"""The agent as an ordinary process on this machine, spoken with over its own protocol; its end."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from agents import PATIENCE, STARTING, Agent, agent, alive, pid_in, wait_dead

from plugpull.dut import agent as agent_package
from plugpull.dut.agent import AGENT_VERSION
from plugpull.dut.agent.wire import MAX_LINE
from plugpull.dut.conversation.link import AgentGone, GuardRefused
from plugpull.errors import RigError


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
    first, second = running.wait_reported("sample"), running.wait_reported("sample")
    running.link.call("sample.stop", PATIENCE)
    assert second["at"] > first["at"]
    assert first["cpu"].startswith("cpu ")


def steps_become(running: Agent, wanted: Callable[[float], bool]) -> bool:
    """Whether the median of the times between five samples in a row is one that is wanted. Those that were made before
    may wait to be read, and some may be made late."""
    times = [running.wait_reported("sample")["at"] for _ in range(6)]
    deadline = time.monotonic() + PATIENCE
    while not wanted(median(later - earlier for earlier, later in pairwise(times))):
        if time.monotonic() > deadline:
            return False
        times = [*times[1:], running.wait_reported("sample")["at"]]
    return True


def test_the_interval_of_samples_can_be_changed(running: Agent) -> None:
    running.link.call("sample", PATIENCE, interval=0.02)
    running.wait_reported("sample")
    running.link.call("sample", PATIENCE, interval=0.3)
    running.wait_reported("sample")  # this one was due before
    assert steps_become(running, lambda step: step >= 0.25), "one may come late"
    running.link.call("sample", PATIENCE, interval=0.02)
    assert steps_become(running, lambda step: step < 0.25)
    running.link.call("sample.stop", PATIENCE)


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
        assert time.monotonic() - begun < 30, "at once, not when somebody's patience ends"


def test_what_nobody_asked_to_end_is_ended_in_the_end(tmp_path: Path) -> None:
    stubborn = f"trap '' INT; echo $$ > {tmp_path}/stubborn; while :; do sleep 1; done"
    with agent(program=STARTING) as started:
        assert started.link.call("jobs.stop", PATIENCE, jobs=None, grace=0.1) == {}
        started.link.call("start", PATIENCE, job="unknown", argv=["sleep", "1000"])
        started.link.call("start", PATIENCE, job="stubborn", argv=["sh", "-c", stubborn])
        pid_in(tmp_path / "stubborn")
        assert started.link.call("jobs.stop", PATIENCE, jobs=["stubborn"], grace=0.0)["stubborn"]
        ended = started.link.call("jobs.stop", PATIENCE, jobs=None, grace=PATIENCE)
        assert ended == {"unknown": {"stuck": False}}
        assert "sleep 1000" not in str(started.link.call("jobs.alive", PATIENCE))


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
        assert started.wait_reported("link.lost")
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
        broken = started.wait_reported("watcher.broken", what="the kernel log")
        assert "Permission" in broken["why"] or "permitted" in broken["why"]
        assert started.link.call("hello", PATIENCE)["uid"] == 65534
