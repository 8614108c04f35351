"""One fio that works on several disks: what it reports of each, which one is named, and how it is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from queue import Queue
from typing import Any
from unittest.mock import Mock

import pytest
from agents import PATIENCE as AGENT_PATIENCE
from agents import wait_for
from fios import BLOCK, PATIENCE, SPAN, command, needs_fio

from plugpull.dut.agent import fio as agent_fio
from plugpull.dut.agent.disks import Refused
from plugpull.dut.agent.jobs import Jobs
from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.load.fio_report import parse_report
from plugpull.load.patterns import measuring_arguments, sequential_write
from plugpull.load.timed import TimedLoad

DISKS = ("disk1", "disk2", "disk3")
KNAMES = {"disk1": "sda", "disk2": "sdb", "disk3": "sdc"}
ASKED = "fio: terminating on signal 2"

ONE_GONE = """\
fio: io_u error on file /proc/self/fd/9: No such device: write offset=1507328, buflen=65536
fio: pid=158, err=19/file:io_u.c:1876, func=io_u error, error=No such device
{
  "fio version" : "fio-3.33",
  "jobs" : [
    {
      "error" : 0, "job options" : {"filename" : "/proc/self/fd/8"}, "usr_cpu" : 1.5, "sys_cpu" : 2.5,
      "read" : {"io_bytes" : 0}, "write" : {"io_bytes" : 1048576}, "desc" : "disk1"
    },
    {
      "error" : 19, "job options" : {"filename" : "/proc/self/fd/9"}, "usr_cpu" : 2.5, "sys_cpu" : 3.5,
      "read" : {"io_bytes" : 0}, "write" : {"io_bytes" : 1507328}, "desc" : "disk2"
    }
  ]
}
"""
"""The shape of what fio 3.33 says when one of two disks is unplugged under it; shortened."""
HEALTHY = ASKED + "\n" + ONE_GONE[ONE_GONE.index("{\n") :].replace('"error" : 19', '"error" : 0')


def fio_on(files: Sequence[Path], *more: str) -> list[str]:
    """One fio for these files, as it is started for disks."""
    words = ["fio"]
    for name, file in zip(DISKS, files, strict=False):
        words += command(file, [*measuring_arguments(sequential_write, SPAN, together=name), *more])[1:]
    return words


# --- what fio reports -------------------------------------------------------------------------------------------


@needs_fio
def test_an_error_on_one_disk_is_said_of_that_one_and_ends_the_work_on_all(tmp_path: Path) -> None:
    files = [tmp_path / "one", Path("/dev/full"), tmp_path / "three"]
    for file in (files[0], files[2]):
        file.write_bytes(bytes(SPAN))
    done = subprocess.run(
        fio_on(files), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False
    )
    # fio sends itself SIGTERM if another job has not begun yet, which adds 128 (fio_terminate_threads in backend.c).
    assert done.returncode in (1, 129), done.stdout
    reports = {name: parse_report(done.stdout, name) for name in DISKS}
    assert all(report.complete for report in reports.values())
    assert [name for name, report in reports.items() if report.errno] == ["disk2"]
    assert "err=" in reports["disk2"].message
    assert not any("err=" in reports[name].message for name in ("disk1", "disk3"))


def test_an_error_is_said_although_fio_says_before_it_that_it_terminates() -> None:
    error = "fio: pid=0, err=28/file:filesetup.c:303, func=write, error=No space left on device"
    output = "\n".join(["fio: terminating on signal 15", error, ONE_GONE[ONE_GONE.index("{\n") :]])
    assert parse_report(output, "disk2").message == error
    assert parse_report(output, "disk1").message == "fio: terminating on signal 15"


@needs_fio
def test_all_disks_of_one_fio_are_ended_by_one_signal_and_each_tells_what_it_did(tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        file.write_bytes(bytes(SPAN))
    before = [file.stat().st_mtime_ns for file in files]
    with (tmp_path / "output").open("wb") as out:
        process = subprocess.Popen(fio_on(files, "--rate=8m"), stdout=out, stderr=out, start_new_session=True)
        try:
            deadline = time.monotonic() + PATIENCE
            while [file.stat().st_mtime_ns for file in files] == before and time.monotonic() < deadline:
                time.sleep(0.01)  # until it writes; there is no event for that
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()
    output = (tmp_path / "output").read_text()
    reports = [parse_report(output, name) for name in DISKS[:2]]
    assert all(report.complete and not report.errno for report in reports), output
    assert {report.message for report in reports} == {ASKED}
    assert all(report.written_bytes % BLOCK == 0 for report in reports)
    assert sum(report.written_bytes for report in reports) == parse_report(output).written_bytes > 0


def test_each_disk_has_its_own_part_of_the_report() -> None:
    one, two = (parse_report(ONE_GONE, name) for name in DISKS[:2])
    assert (one.errno, one.written_bytes, one.usr_cpu, one.sys_cpu, one.message) == (0, 1048576, 1.5, 2.5, "")
    assert (two.errno, two.written_bytes, two.usr_cpu, two.sys_cpu) == (19, 1507328, 2.5, 3.5)
    assert two.message.startswith("fio: io_u error on file /proc/self/fd/9: No such device")
    assert one.complete
    assert two.complete


@pytest.mark.parametrize("output", [ONE_GONE, ONE_GONE[:300], "fio: killed\n", ""])
def test_a_disk_that_the_report_lacks_is_not_known(output: str) -> None:
    report = parse_report(output, "disk3")
    assert (report.complete, report.written_bytes, report.errno) == (False, 0, 0)


# --- what the controller makes of it ----------------------------------------------------------------------------


class Bench:
    """What a load needs of a scenario's context. fio ends with ``output`` when it is asked to, unless it is stuck."""

    def __init__(self) -> None:
        self.recorded: list[ev.Event] = []
        self.context = Mock()
        self.context.now.return_value = 5.0
        self.context.listener.lost = ""
        self.context.untimed = nullcontext
        self.context.recorder.record.side_effect = self.recorded.append
        self.context.recorder.since.side_effect = lambda mark: list(self.recorded)
        self.context.bench.link.call.side_effect = self._call
        self.handlers: dict[str, Callable[[dict[str, Any]], None]] = {}
        self.context.listener.expect.side_effect = self.handlers.__setitem__
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.stuck: dict[str, Any] = {}
        self.output = HEALTHY

    def _call(self, name: str, timeout: float, **arguments: Any) -> Any:
        self.requests.append((name, arguments))
        if name != "jobs.stop":
            return {"pid": 1, "at": 5.0}
        for job in arguments["jobs"] if not self.stuck else ():
            self.end(job, asked=True, status=128)
        return {job: {"stuck": bool(self.stuck), "process": self.stuck} for job in arguments["jobs"]}

    def end(self, job: str, *, asked: bool, status: int) -> None:
        self.handlers[job]({"status": status, "asked": asked, "at": 6.0, "output": self.output})

    def load(self, names: Sequence[str] = DISKS[:2], *, together: bool = True) -> TimedLoad:
        return TimedLoad(self.context, [_target(name) for name in names], sequential_write, together=together)

    def ends(self) -> dict[str, ev.LoadEnded]:
        return {event.disk: event for event in self.recorded if isinstance(event, ev.LoadEnded)}

    def sampled(self, **in_flight: int) -> None:
        disks = {KNAMES[name]: Counters(1, 0, 0, 0, 0, count, 0, 0) for name, count in in_flight.items()}
        self.recorded.append(ev.Sampled(at=5.5, disks=disks))


def _target(name: str) -> Any:
    target = Mock(disks=(name,), size=SPAN, in_file=False)
    target.name = name
    claim = Mock(kname=KNAMES[name], arguments={"disk": {"kname": KNAMES[name]}})
    target.claim.return_value = claim
    return target


def test_the_disks_of_a_measurement_get_one_fio_and_those_of_other_loads_one_each() -> None:
    bench = Bench()
    with bench.load():
        pass
    (name, asked), stop = bench.requests
    assert name == "fio_together"
    assert [one["disk"]["kname"] for one in asked["each"]] == ["sda", "sdb"]
    assert [one["argv"][-2] for one in asked["each"]] == ["--description=disk1", "--description=disk2"]
    assert stop[1]["jobs"] == [asked["job"]], "one process is asked to end, once"
    assert {disk: end.written_bytes for disk, end in bench.ends().items()} == {"disk1": 1048576, "disk2": 1507328}
    assert all(end.asked and not end.errno and end.exit_status == 128 for end in bench.ends().values())
    for names, together in ((DISKS[:2], False), (DISKS[:1], True)):
        other = Bench()
        with other.load(names, together=together):
            pass
        assert [name for name, _ in other.requests] == ["fio"] * len(names) + ["jobs.stop"]
        assert not any("--exitall_on_error" in asked["argv"] for name, asked in other.requests[:-1])


def test_the_disk_that_failed_is_named_wherever_the_load_is_waited_for() -> None:
    bench = Bench()
    bench.output = ONE_GONE
    with bench.load() as load:
        bench.end(bench.requests[0][1]["job"], asked=False, status=1)
        with pytest.raises(RigError, match="the load on disk2 ended before it was measured: fio: io_u error"):
            load.watch(1.0)
    one, two = (bench.ends()[disk] for disk in DISKS[:2])
    assert (two.errno, two.exit_status, two.asked) == (19, 1, False)
    assert (one.errno, one.exit_status, one.asked) == (0, None, False)
    assert one.message == "fio ended because of its error on disk2"
    assert one.written_bytes == 1048576


def test_an_error_while_it_is_asked_to_end_is_said_of_its_disk_alone() -> None:
    bench = Bench()
    bench.output = f"{ASKED}\n{ONE_GONE}"
    with bench.load():
        pass
    one, two = (bench.ends()[disk] for disk in DISKS[:2])
    assert (one.errno, one.exit_status, one.message, one.asked) == (0, None, ASKED, True)
    assert (two.errno, two.exit_status, two.asked) == (19, 128, True)


def test_a_fio_that_died_leaves_no_figures_of_any_disk() -> None:
    bench = Bench()
    bench.output = ""
    with bench.load() as load:
        bench.end(bench.requests[0][1]["job"], asked=False, status=-9)
        with pytest.raises(RigError, match="ended before it was measured"):
            load.watch(1.0)
    assert [(end.exit_status, end.errno, end.written_bytes) for end in bench.ends().values()] == [(-9, 0, 0)] * 2


@pytest.mark.parametrize(("in_flight", "stuck"), [({"disk1": 0, "disk2": 4}, {"disk2"}), ({}, {"disk1", "disk2"})])
def test_of_a_fio_that_cannot_be_ended_the_disk_with_requests_in_flight_is_stuck(
    in_flight: dict[str, int], stuck: set[str]
) -> None:
    bench = Bench()
    bench.stuck = {"pid": 7, "command": "fio", "state": "D", "stack": ()}
    with bench.load():
        bench.sampled(**in_flight)
    assert {event.disk for event in bench.recorded if isinstance(event, ev.ProcessStuck)} == stuck
    ends = bench.ends()
    assert {disk for disk, end in ends.items() if end.stuck} == stuck
    for disk in set(ends) - stuck:
        assert ends[disk].message == "its fio was not ended: it waits for disk2"


# --- what the agent does ----------------------------------------------------------------------------------------


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The open descriptor of each disk. ``bad`` is refused. fio is a program that says what it was given."""
    opened: dict[str, int] = {}

    def open_target(disk: dict[str, str]) -> int:
        if disk["kname"] == "bad":
            raise Refused("it is not a scratch disk")
        file = tmp_path / disk["kname"]
        file.touch()
        opened[disk["kname"]] = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        return opened[disk["kname"]]

    program = tmp_path / "fio"
    program.write_text('#!/bin/sh\nfor word; do case $word in /*) word=$(readlink $word);; esac; echo "$word"; done\n')
    program.chmod(0o755)
    monkeypatch.setattr(agent_fio, "open_target", open_target)
    monkeypatch.setattr("shutil.which", lambda name: str(program))
    return opened


def each(*knames: str) -> list[dict[str, Any]]:
    return [{"argv": ["--name=measure", "{file}"], "disk": {"kname": kname}} for kname in knames]


def test_every_disk_is_proved_and_held_open_by_the_one_process(disks: dict[str, int], tmp_path: Path) -> None:
    reported: Queue[dict[str, Any]] = Queue()
    jobs = Jobs(reported.put)
    agent_fio.start_fio(jobs, Mock(), "measure1", each("sda", "sdb"))
    end = wait_for(reported, lambda message: message.get("job") == "measure1")
    words = ["--name=measure", str(tmp_path / "sda"), "--name=measure", str(tmp_path / "sdb")]
    assert (end["status"], end["output"].split()) == (0, words)
    assert jobs.stop(["measure1"], AGENT_PATIENCE) == {"measure1": {"stuck": False}}
    assert_closed(disks.values())


def test_one_disk_that_is_refused_starts_nothing_and_leaves_nothing_open(disks: dict[str, int]) -> None:
    jobs = Mock()
    with pytest.raises(Refused, match="it is not a scratch disk"):
        agent_fio.start_fio(jobs, Mock(), "measure1", each("sda", "bad", "sdb"))
    assert jobs.mock_calls == []
    assert list(disks) == ["sda"]
    assert_closed(disks.values())


def assert_closed(fds: Any) -> None:
    for fd in fds:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
