"""Tasks of studies: fio's arguments for them, and its figures, with the fio that is installed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fios import fio, needs_fio

from plugpull.dut.agent.wire import MAX_LINE
from plugpull.load.fio_figures import parse_figures
from plugpull.load.task_designs import caching_design, latency_design
from plugpull.load.tasks import FioTask, amount_of, length_of_task, rewriting_log, task_arguments

SIZE = 8 << 20
BLOCK = 64 << 10


@dataclass(frozen=True)
class _Target:
    """As much of a target as a task's size depends on."""

    size: int = SIZE
    rate: int | None = None
    in_file: bool = False
    name: str = "disk1"


def target(**known: object) -> Any:
    return _Target(**known)  # type: ignore[arg-type]


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    file = tmp_path / "medium"
    file.write_bytes(bytes(SIZE))
    return file


@needs_fio
@pytest.mark.parametrize("task", [one for one in caching_design(["disk1"]) if one.sized], ids=lambda one: one.name)
def test_a_sized_task_transfers_its_amount_and_reports_its_time(medium: Path, task: FioTask[Any]) -> None:
    status, output = fio(medium, task_arguments(task, target(), virtual=True))
    found = parse_figures(output)
    assert (status, found.error, found.bytes) == (0, "", SIZE // 2)
    assert found.requests == SIZE // 2 // BLOCK
    assert found.seconds > 0


@needs_fio
def test_the_times_of_small_synchronous_writes_are_in_seconds(medium: Path) -> None:
    task: FioTask[Any] = latency_design(["disk1"])[0]
    brief: FioTask[Any] = replace(task, seconds=0.5, direct=False)
    status, output = fio(medium, task_arguments(brief, target(), virtual=True))
    found = parse_figures(output)
    assert (status, found.error) == (0, "")
    assert found.bytes == found.requests * 4096
    assert {float(key) for key in found.percentiles} == {50, 90, 99, 99.9, 99.99}
    assert found.longest is not None
    assert 0 < found.percentiles["50.000000"] <= found.percentiles["99.000000"]
    # fio sorts times into buckets that are at most 1/64 wide (stat.c), and a percentile is the middle of one.
    assert found.percentiles["99.000000"] <= found.longest * 1.02 < 100
    assert 0.3 < found.seconds < 100, "not milliseconds"


@needs_fio
def test_a_rewrite_reads_and_writes_every_block_once(medium: Path, tmp_path: Path) -> None:
    task: FioTask[Any] = FioTask("rewrite", (), "randrw", BLOCK, sized=True, direct=False, rewrites=True)
    log = tmp_path / "log"
    log.write_text(rewriting_log(1 << 20, BLOCK).replace("{file}", str(medium)))
    words = [word.replace("{log}", str(log)) for word in task_arguments(task, target(), virtual=True)]
    status, output = fio(medium, words)
    found = parse_figures(output)
    assert (status, found.error, found.bytes, found.requests) == (0, "", 2 << 20, 2 * (1 << 20) // BLOCK)


def test_the_log_of_a_rewrite_fits_into_a_message_to_the_agent() -> None:
    assert len(rewriting_log(1 << 40, 8 << 10)) < MAX_LINE // 2


def test_an_amount_is_what_the_disk_writes_in_the_time_of_the_task() -> None:
    task: FioTask[Any] = FioTask("buffered", (), "write", BLOCK, seconds=2.0, sized=True)
    assert amount_of(target(size=64 << 20, rate=2 << 20), task) == 4 << 20
    assert amount_of(target(size=64 << 20, rate=100), task) == 1 << 20
    assert amount_of(target(size=4 << 20, rate=50 << 20), task) == 2 << 20
    assert amount_of(target(size=1 << 40), task) == 64 << 20
    assert amount_of(target(size=1 << 40, rate=(2 << 20) + 77), task) % BLOCK == 0


def test_a_task_of_fixed_length_takes_longer_on_a_real_bench() -> None:
    task: FioTask[Any] = FioTask("direct", (), "write", seconds=2.0)
    assert length_of_task(task, virtual=True) == 2.0
    assert length_of_task(task, virtual=False) == 6.0


@pytest.mark.parametrize(
    "output",
    ["", "fio: no such file", "{\n", '{\n"jobs": []\n}', '{\n"jobs": [{"read": {"io_bytes": 0}, "write": {}}]\n}'],
)
def test_without_a_report_there_are_no_figures(output: str) -> None:
    assert parse_figures(output).error
    assert parse_figures(output).bytes == 0


def test_the_error_of_a_job_is_its_only_figure() -> None:
    assert parse_figures('{\n"jobs": [{"error": 5, "read": {"io_bytes": 9}, "write": {"io_bytes": 0}}]\n}').error == (
        "fio ended with errno 5"
    )


@pytest.mark.parametrize(("depth", "virtual", "counts"), [(4, True, True), (1, True, False), (4, False, False)])
def test_of_several_requests_at_once_the_first_ones_count(depth: int, virtual: bool, counts: bool) -> None:
    """After a ramp, fio counts the whole of what was under way at its end: 11 stripes of 8 requests in 3.5 s. Where a
    task takes long, as on real disks, that is little."""
    task: FioTask[Any] = FioTask("sequential write", ("array1",), "write", 512 << 10, depth, 2.0)
    ramp = any(word.startswith("--ramp_time=") for word in task_arguments(task, target(), virtual=virtual))
    assert ramp is not counts
