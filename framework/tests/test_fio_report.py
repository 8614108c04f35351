"""What is read from fio's report, with the fio that is installed."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fios import BLOCK, PATIENCE, SPAN, command, fio, flip, moved_by, needs_fio

from plugpull.load.fio_report import FioReport, parse_report
from plugpull.load.load import certain_ranges
from plugpull.load.patterns import (
    Pattern,
    fill_arguments,
    load_arguments,
    sequential_read,
    sequential_write,
    verify_arguments,
)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    file = tmp_path / "medium"
    file.write_bytes(bytes(SPAN))
    status, output = fio(file, fill_arguments(sequential_write, SPAN))
    assert status == 0, output
    return file


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
                time.sleep(0.05)  # there is no event for the bytes that a process has moved
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
