"""The programs that the agent starts: how they end, and what they leave."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from agents import PATIENCE, alive, pid_in, wait_dead, wait_for

from plugpull.dut.agent import jobs as jobs_module
from plugpull.dut.agent.jobs import MAX_OUTPUT, Jobs
from plugpull.dut.agent.streams import Stream
from plugpull.dut.conversation.link import Message


@dataclass(frozen=True)
class Ended:
    jobs: Jobs
    reported: Queue[Message]

    def end_of(self, name: str) -> Message:
        return wait_for(self.reported, lambda message: message.get("job") == name)


@pytest.fixture
def shop() -> Iterator[Ended]:
    reported: Queue[dict[str, Any]] = Queue()
    jobs = Jobs(reported.put)
    yield Ended(jobs, reported)
    jobs.stop_all(5.0)


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


def starting_slowly(folder: Path, then: str) -> list[str]:
    """A load that has just been started, on a slow machine: it does not catch SIGINT yet. In Perl, because a shell
    catches it for itself."""
    program = folder / "fio"
    ready = f'open my $ready, ">", "{folder}/ready"; print $ready "$$\\n"; close $ready;'
    program.write_text(f"#!/usr/bin/perl\n{ready}\nselect undef, undef, undef, 1.5;\n{then}\nsleep 1 while 1;\n")
    program.chmod(0o755)
    return [str(program)]


def test_a_load_that_is_still_starting_is_let_to_report(
    shop: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "STARTING", PATIENCE)
    shop.jobs.start("load", starting_slowly(tmp_path, "$SIG{INT} = sub { print 'caught'; exit 0 };"))
    pid_in(tmp_path / "ready")
    assert shop.jobs.stop(["load"], PATIENCE) == {"load": {"stuck": False}}
    end = shop.end_of("load")
    assert (end["status"], end["output"]) == (0, "caught")


def test_a_load_that_never_catches_sigint_is_ended_by_it(
    shop: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "STARTING", 0.1)
    shop.jobs.start("load", starting_slowly(tmp_path, ""))
    pid_in(tmp_path / "ready")
    assert shop.jobs.stop(["load"], PATIENCE) == {"load": {"stuck": False}}
    assert shop.end_of("load")["status"] == -signal.SIGINT


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


@pytest.mark.parametrize("streamed", [True, False])
def test_a_job_that_ended_keeps_no_pipe(shop: Ended, monkeypatch: pytest.MonkeyPatch, streamed: bool) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*args: Any, **how: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*args, **how))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    shop.jobs.start(
        "short", ["sh", "-c", "echo out; echo err >&2"], stream=Stream("short", shop.reported.put) if streamed else None
    )
    wait_for(shop.reported, lambda message: message.get("ev") == "job.end")
    pipes = [pipe for pipe in (started[0].stdout, started[0].stderr) if pipe is not None]
    assert [pipe.closed for pipe in pipes] == [True] * len(pipes)
