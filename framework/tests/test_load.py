"""What fio is told and what it says, with the fio that is installed; and which blocks a cut load leaves certain."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.load.fio_report import FioReport, parse_report
from plugpull.load.load import certain_ranges
from plugpull.load.patterns import (
    SMALLEST_SPAN,
    UNKNOWN_RATE_SPAN,
    Pattern,
    fill_arguments,
    load_arguments,
    sequential_read,
    sequential_write,
    span_of,
    verify_arguments,
)
from plugpull.load.runner import Job
from plugpull.load.running import RunningJobs
from plugpull.rig.model import Disk

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
PATIENCE = 120.0
SPAN = 1 << 20
BLOCK = 64 << 10


def command(file: Path, arguments: list[str]) -> list[str]:
    # A file in memory takes no O_DIRECT on every kernel; what fio does otherwise stays the same.
    told = ["--direct=0" if argument == "--direct=1" else argument for argument in arguments]
    return ["fio", *(argument.replace("{file}", str(file)) for argument in told)]


def fio(file: Path, arguments: list[str]) -> tuple[int, str]:
    """Exit status and output, which the agent takes together too."""
    done = subprocess.run(
        command(file, arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=file.parent,
    )
    return done.returncode, done.stdout


def moved_by(pid: int) -> int:
    """Bytes a process has had read and written by the disk (proc_pid_io(5))."""
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["read_bytes"]) + int(fields["write_bytes"])


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    file = tmp_path / "medium"
    file.write_bytes(bytes(SPAN))
    status, output = fio(file, fill_arguments(sequential_write, SPAN))
    assert status == 0, output
    return file


def flip(file: Path, offset: int) -> None:
    with file.open("r+b") as medium:
        medium.seek(offset)
        value = medium.read(1)[0]
        medium.seek(offset)
        medium.write(bytes([value ^ 1]))


# --- fio's own words --------------------------------------------------------------------------------------------------


@needs_fio
def test_a_healthy_fill_and_its_verification(tmp_path: Path) -> None:
    file = tmp_path / "medium"
    file.write_bytes(bytes(SPAN))
    status, output = fio(file, fill_arguments(sequential_write, SPAN))
    report = parse_report(output)
    assert (status, report.errno, report.written_bytes, report.complete, report.bad) == (0, 0, SPAN, True, ())
    status, output = fio(file, verify_arguments(sequential_write, ((0, SPAN),)))
    report = parse_report(output)
    assert (status, report.errno, report.read_bytes, report.complete, report.bad) == (0, 0, SPAN, True, ())
    assert report.message == ""


@needs_fio
def test_the_slowest_request_is_known(tmp_path: Path) -> None:
    file = tmp_path / "medium"
    file.write_bytes(bytes(SPAN))
    _, output = fio(file, fill_arguments(sequential_write, SPAN))
    longest = parse_report(output).longest
    assert longest is not None
    assert 0 < longest < 10
    jobs = json.loads(output[output.index("{\n") : output.rindex("}") + 1])["jobs"]
    assert longest == jobs[0]["write"]["clat_ns"]["max"] / 1e9
    assert parse_report('{\n"jobs": [{"read": {"io_bytes": 0}, "write": {"io_bytes": 0}}]}').longest is None


@needs_fio
@pytest.mark.parametrize(
    "where",
    [
        pytest.param(5 * BLOCK, id="the magic number of a block"),
        pytest.param(5 * BLOCK + 8, id="the header of a block"),
        pytest.param(5 * BLOCK + 12_345, id="the middle of a block"),
        pytest.param(6 * BLOCK - 1, id="the last byte of a block"),
    ],
)
def test_a_flipped_bit_is_found_at_its_block(filled: Path, where: int) -> None:
    flip(filled, where)
    _, output = fio(filled, verify_arguments(sequential_write, ((0, SPAN),)))
    report = parse_report(output)
    assert report.errno != 0
    assert report.complete
    assert {(offset, length) for offset, length, _ in report.bad} == {(5 * BLOCK, BLOCK)}, output
    assert all(why for _, _, why in report.bad)


@needs_fio
def test_every_bad_block_is_reported_not_just_the_first(filled: Path) -> None:
    for number in (2, 9):
        flip(filled, number * BLOCK + 4_000)
    _, output = fio(filled, verify_arguments(sequential_write, ((0, SPAN),)))
    assert {offset for offset, _, _ in parse_report(output).bad} == {2 * BLOCK, 9 * BLOCK}, output


@needs_fio
def test_only_the_ranges_asked_for_are_compared(filled: Path) -> None:
    flip(filled, 8 * BLOCK + 100)
    ranges = ((0, 8 * BLOCK), (9 * BLOCK, SPAN - 9 * BLOCK))
    status, output = fio(filled, verify_arguments(sequential_write, ranges))
    report = parse_report(output)
    assert (status, report.bad, report.read_bytes) == (0, (), SPAN - BLOCK), output


@needs_fio
def test_a_fio_that_was_killed_left_no_report(filled: Path, tmp_path: Path) -> None:
    before = filled.stat().st_mtime_ns
    with (tmp_path / "output").open("wb") as out:
        process = subprocess.Popen(
            command(filled, load_arguments(sequential_write, SPAN)),
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd=tmp_path,
        )
        deadline = time.monotonic() + PATIENCE
        while filled.stat().st_mtime_ns == before and time.monotonic() < deadline:
            time.sleep(0.01)  # until it writes
        process.kill()
        assert process.wait(PATIENCE) == -signal.SIGKILL
    assert not parse_report((tmp_path / "output").read_text()).complete


@needs_fio
@pytest.mark.parametrize("pattern", [sequential_write, sequential_read])
def test_a_load_that_is_asked_to_end_tells_all_it_did(filled: Path, tmp_path: Path, pattern: Pattern) -> None:
    with (tmp_path / "output").open("wb") as out:
        argv = command(filled, [*load_arguments(pattern, SPAN), "--rate=8m"])
        process = subprocess.Popen(argv, stdout=out, stderr=out, start_new_session=True, cwd=tmp_path)
        try:
            # That it outlives several passes is what is looked at.
            deadline = time.monotonic() + PATIENCE
            while moved_by(process.pid) < 4 * SPAN and time.monotonic() < deadline:
                time.sleep(0.05)  # what a process has moved is told by nobody
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()
    report = parse_report((tmp_path / "output").read_text())
    assert report.complete
    moved = report.written_bytes if pattern.mode == "write" else report.read_bytes
    assert moved > 0
    assert moved % BLOCK == 0
    assert report.bad == ()
    assert {path.name for path in tmp_path.iterdir()} == {"medium", "output"}, "fio left something behind"


@needs_fio
def test_text_before_and_after_the_report_is_no_hindrance(filled: Path) -> None:
    _, output = fio(filled, verify_arguments(sequential_write, ((0, SPAN),)))
    alone = parse_report(output)
    bad = "verify: bad magic header 0, wanted acca at file /proc/self/fd/7 offset 65536, length 65536 (requested)"
    for text in (f"fio: something\n{output}", f"{output}\nfio: something\n", f"fio: something\n{output}\nand more\n"):
        assert parse_report(text) == replace(alone, message="fio: something")
    surrounded = parse_report(f"{bad}\n{output}\n{bad.replace('65536,', '131072,', 1)}\n")
    assert [(offset, length) for offset, length, _ in surrounded.bad] == [(65536, 65536), (131072, 65536)]
    assert surrounded.read_bytes == alone.read_bytes


GONE = """\
fio: io_u error on file /proc/self/fd/9: No such device: write offset=1507328, buflen=65536
fio: io_u error on file /proc/self/fd/9: No such device: write offset=1572864, buflen=65536
fio: io_u error on file /proc/self/fd/9: No such device: write offset=1638400, buflen=65536
fio: io_u error on file /proc/self/fd/9: No such device: write offset=1703936, buflen=65536
fio: pid=158, err=19/file:io_u.c:1876, func=io_u error, error=No such device
{
  "fio version" : "fio-3.33",
  "jobs" : [
    {
      "jobname" : "load",
      "error" : 19,
      "read" : {
        "io_bytes" : 0
      },
      "write" : {
        "io_bytes" : 1507328
      },
      "usr_cpu" : 2.540579,
      "sys_cpu" : 3.387438
    }
  ]
}
"""
"""What fio 3.33 said when a usb-storage disk was unplugged under it, with four writes in flight; shortened."""


def test_a_disk_that_went_away_is_no_bad_block() -> None:
    report = parse_report(GONE)
    assert (report.errno, report.written_bytes, report.read_bytes) == (19, 1507328, 0)
    assert report.complete
    assert report.bad == ()
    assert report.message.startswith("fio: io_u error on file /proc/self/fd/9: No such device")
    ranges, why_not = certain_ranges(report.written_bytes, 4 << 20, sequential_write, whole=False)
    assert not why_not
    in_flight = {1507328 + number * BLOCK for number in range(4)}
    assert not any(begin <= offset < begin + length for begin, length in ranges for offset in in_flight)


def test_no_report_at_all() -> None:
    assert parse_report("") == FioReport(complete=False)
    assert parse_report("fio: no such disk\n") == FioReport(message="fio: no such disk", complete=False)
    assert not parse_report('{\n  "jobs" : [\n').complete
    assert not parse_report('{\n"fio version" : "3.33"\n}').complete
    assert not parse_report('{\n"jobs" : 7\n}').complete
    assert not parse_report('{\n"jobs" : [{"error": 0}]\n}').complete


# --- what fio is told -------------------------------------------------------------------------------------------------


@needs_fio
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(load_arguments(sequential_write, SPAN), id="write"),
        pytest.param(load_arguments(sequential_read, SPAN), id="read"),
        pytest.param(load_arguments(sequential_write, SPAN, in_file=True), id="write in a file"),
        pytest.param(fill_arguments(sequential_write, SPAN), id="fill"),
        pytest.param(verify_arguments(sequential_write, ((0, SPAN),)), id="verify"),
        pytest.param(verify_arguments(sequential_write, ((0, BLOCK), (2 * BLOCK, BLOCK))), id="verify two ranges"),
    ],
)
def test_fio_takes_our_arguments(tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "medium"
    file.write_bytes(bytes(SPAN))
    status, output = fio(file, ["--parse-only", *arguments])
    assert status == 0, output
    assert file.read_bytes() == bytes(SPAN)


@needs_fio
@pytest.mark.parametrize("arguments", [load_arguments(sequential_write, SPAN), fill_arguments(sequential_write, SPAN)])
def test_no_file_is_made_where_a_disk_was(tmp_path: Path, arguments: list[str]) -> None:
    status, output = fio(tmp_path / "gone", arguments)
    assert status != 0, output
    assert not (tmp_path / "gone").exists()


def disk(size: int, rate: int | None) -> Disk:
    return Disk(name="disk1", at="usb.1", serial="S", size=size, rate=rate)


@settings(deadline=None)
@given(
    size=st.integers(2 << 20, 1 << 44),
    rate=st.none() | st.integers(1, 1 << 31),
    block=st.sampled_from([512, 4096, BLOCK, 1 << 20]),
)
def test_a_span_is_whole_blocks_on_the_disk(size: int, rate: int | None, block: int) -> None:
    span = span_of(disk(size, rate), Pattern("p", "write", block))
    assert span % block == 0
    assert block <= span <= size // 2
    assert span <= max(SMALLEST_SPAN, UNKNOWN_RATE_SPAN if rate is None else rate)


# --- what is certain --------------------------------------------------------------------------------------------------


def written_by(count: int, depth: int, blocks: int, choose: random.Random) -> tuple[set[int], set[int]]:
    """A sequential writer that wraps around, cut off once ``count`` writes were completed: (blocks that were completed,
    blocks in flight). The disk completes what is in its queue in an order of its own, but no write is overtaken by
    more than ``depth`` later ones."""
    flying: list[int] = []
    overtaken: dict[int, int] = {}
    done: set[int] = set()
    submitted = completed = 0
    while True:
        while len(flying) < depth:
            flying.append(submitted)
            overtaken[submitted] = 0
            submitted += 1
        if completed == count:
            # The queue may have been less than full at the moment of the cut.
            return done, {number % blocks for number in flying}
        waiting_longest = [number for number in flying if overtaken[number] >= depth]
        number = min(waiting_longest) if waiting_longest else choose.choice(flying)
        flying.remove(number)
        for other in flying:
            overtaken[other] += other < number
        done.add(number % blocks)
        completed += 1


@st.composite
def progress(draw: st.DrawFn) -> tuple[int, int, int]:
    """(writes completed, queue depth, blocks in the span), mostly close to the end of a pass: there lie the edges."""
    depth, blocks = draw(st.integers(1, 8)), draw(st.integers(1, 40))
    near = st.builds(lambda passes, off: max(0, passes * blocks + off), st.integers(0, 3), st.integers(-9, 25))
    return draw(near | st.integers(0, 120)), depth, blocks


@settings(deadline=None, max_examples=400)
@given(
    at=progress(),
    block=st.sampled_from([512, 4096, BLOCK]),
    torn=st.integers(0, 511),
    choose=st.randoms(use_true_random=False),
)
def test_what_is_certain_was_completed_and_not_in_flight(
    at: tuple[int, int, int], block: int, torn: int, choose: random.Random
) -> None:
    count, depth, blocks = at
    pattern = Pattern("p", "write", block, depth)
    ranges, why_not = certain_ranges(count * block + torn, blocks * block, pattern, whole=False)
    done, flying = written_by(count, depth, blocks, choose)
    certain: list[int] = []
    for begin, length in ranges:
        assert begin % block == 0
        assert length % block == 0
        assert length > 0
        assert 0 <= begin < begin + length <= blocks * block
        certain += range(begin // block, (begin + length) // block)
    assert len(certain) == len(set(certain)), "ranges overlap"
    assert set(certain) <= done
    assert not set(certain) & flying
    assert bool(why_not) == (not ranges)


@settings(deadline=None)
@given(count=st.integers(0, 200), blocks=st.integers(1, 40), torn=st.integers(0, BLOCK - 1))
def test_after_an_orderly_end_all_that_was_written_is_certain(count: int, blocks: int, torn: int) -> None:
    ranges, why_not = certain_ranges(count * BLOCK + torn, blocks * BLOCK, sequential_write, whole=True)
    assert sum(length for _, length in ranges) == min(count, blocks) * BLOCK
    assert bool(why_not) == (count == 0)


@settings(deadline=None)
@given(passes=st.integers(1, 5), position=st.integers(0, 99), depth=st.integers(1, 8))
def test_little_is_left_out_after_the_first_pass(passes: int, position: int, depth: int) -> None:
    pattern = Pattern("p", "write", BLOCK, depth)
    ranges, _ = certain_ranges((100 * passes + position) * BLOCK, 100 * BLOCK, pattern, whole=False)
    assert sum(length for _, length in ranges) == (100 - 3 * depth) * BLOCK


# --- the baseline -----------------------------------------------------------------------------------------------------


class Watching(RunningJobs):
    """A load whose samples are made up: bytes per tenth of a second."""

    def __init__(self, rate: Callable[[int], int]) -> None:
        super().__init__(Mock(), (Mock(),))
        self._jobs = {"disk1": Job("load1-disk1", "disk1", "sda", SPAN)}
        self.rate, self.number, self.total = rate, 0, 0

    def _next_sample(self) -> ev.Sampled:
        self.total += self.rate(self.number)
        self.number += 1
        return ev.Sampled(at=self.number / 10, disks={"sda": Counters(1, 0, self.total, 0, 0, 0, 0, 0)})

    def _begin(self) -> None: ...

    def _stop_jobs(self, running: Iterable[Job]) -> dict[str, Any]:
        return {}

    def verify(self) -> None: ...

    def _first_bytes(self, disk: str) -> int:
        return 1


def watched_for(rate: Callable[[int], int]) -> float:
    load = Watching(rate)
    begin = load._next_sample()
    return (load._watch_steadily(begin, 2.1).at or 0.0) - (begin.at or 0.0)


def test_a_steady_load_is_watched_no_longer_than_asked() -> None:
    assert watched_for(lambda number: 100_000) == pytest.approx(2.1, abs=0.11)
    assert watched_for(lambda number: 100_000 + 3_000 * (number % 2)) == pytest.approx(2.1, abs=0.11)


def test_a_load_that_varies_is_watched_until_its_mean_is_known() -> None:
    drawn = random.Random(5)
    noise = [drawn.gauss(1, 0.15) for _ in range(100)]
    took = watched_for(lambda number: int(100_000 * noise[number // 5]))
    assert 2.3 < took < 6


def test_a_load_that_never_settles_is_not_watched_for_ever() -> None:
    assert watched_for(lambda number: 200_000 * (number // 5 % 2)) == pytest.approx(6.1, abs=0.2)
