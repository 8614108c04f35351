"""The study of filesystems: the phases of bonnie++, on a disk and on arrays of more disks."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from study_benches import kinds
from task_benches import MB, TaskBench, judged

from plugpull.checks import Judgement
from plugpull.history import events as ev
from plugpull.load import filesystem_counts, filesystem_tasks
from plugpull.load.tasks import FioTask
from plugpull.studies import filesystem_rates

RATES = {"write": 2.0, "rewrite": 1.0, "read": 2.5}
"""MB/s of one disk; a rewrite moves twice as much."""
AMOUNT = 4 << 20


def _measured(
    factors: Mapping[int, float] | None = None,
    *,
    counts: tuple[int, ...] = (1, 2, 4),
    noise: float = 0.01,
    seed: int = 0,
) -> Judgement:
    """``factors``: the rate with so many disks, as a multiple of that of one disk."""
    disks = ("disk1", "disk2", "disk3", "disk4")
    bench = TaskBench(disks, (), lambda *_: ev.FioFigures())
    at = 10.0
    for count in counts:
        name = "disk1" if count == 1 else f"array{count}"
        if count > 1:
            bench.events.append(
                ev.ArrayMade(
                    at=at, array=name, kname="md127", uuid="u", level="raid0", members=disks[:count], spare=0,
                    size=64 << 20, chunk=65536,
                )
            )  # fmt: skip
        factor = (factors or {1: 1.0, 2: 2.0, 4: 4.0}).get(count, 1.0)

        def figures(
            task: FioTask[str], disk: str, repeat: int, draw: random.Random, factor: float = factor
        ) -> ev.FioFigures:
            phase, noisy = task.name.removeprefix("ext4 "), draw.gauss(1.0, noise)
            if phase == "seeks":
                return ev.FioFigures(bytes=8192 * 500, seconds=2.0, requests=round(500 * noisy))
            moved = AMOUNT * (2 if phase == "rewrite" else 1)
            seconds = AMOUNT / (RATES[phase] * factor * MB * noisy)
            return ev.FioFigures(bytes=moved, seconds=seconds, requests=moved // 8192)

        part = TaskBench(disks, filesystem_tasks(name), figures, begin=at + 1, length=1.0, seed=seed * 9 + count)
        late = [one for one in part.events if (one.at or 0.0) > at]
        bench.events += late
        at = max(event.at or 0.0 for event in late) + 1.0
    return judged(bench, filesystem_rates("ext4"))


def test_the_phases_have_their_rates_on_every_number_of_disks() -> None:
    found = _measured()
    assert (found.findings, found.unknowns, found.conclusions) == ((), (), ())
    rates = {(one.name, one.parameters["disks"]): one for one in found.measurements}
    assert len(rates) == 12
    assert rates["write filesystem", 1].value == pytest.approx(2.0 * MB, rel=0.03)
    assert rates["rewrite filesystem", 2].value == pytest.approx(2.0 * MB, rel=0.03), "what is rewritten counts once"
    assert rates["read filesystem", 4].value == pytest.approx(10.0 * MB, rel=0.03)
    seeks = rates["seeks filesystem", 1]
    assert (seeks.unit, seeks.better) == ("seeks/s", "up")
    assert seeks.value == pytest.approx(250, rel=0.03)
    assert seeks.subject == "ext4 on disk1"
    assert rates["write filesystem", 2].subject == "ext4 on raid0 of 2 disks, 64 KiB chunks"


def test_a_filesystem_that_collapses_with_more_disks_is_named_with_their_number() -> None:
    """R05."""
    found = _measured({1: 1.0, 2: 2.0, 4: 0.5})
    assert kinds(found) == [("collapse", "ext4 on raid0 of 4 disks, 64 KiB chunks")] * 3
    one = found.conclusions[0]
    assert one.value == pytest.approx(-0.75, abs=0.03)
    assert one.text.startswith("The write rate of ext4 drops with 4 disks: ")
    assert one.unit == "of the rate with 2 disks"


def test_a_filesystem_that_stays_as_fast_does_not_collapse() -> None:
    assert _measured({1: 1.0, 2: 1.0, 4: 0.97}).conclusions == ()


def test_thirty_filesystems_that_do_not_grow_have_at_most_one_collapse() -> None:
    flat = {1: 1.0, 2: 1.0}
    false = [n for n in range(30) if _measured(flat, counts=(1, 2), noise=0.03, seed=n).conclusions]
    assert len(false) <= 1, false


def test_an_odd_repeat_is_not_compared() -> None:
    """The phase of one round stalled."""
    disks = ("disk1",)

    def figures(task: FioTask[str], disk: str, repeat: int, draw: random.Random) -> ev.FioFigures:
        slow = 10 if (task.name, repeat) == ("ext4 read", 3) else 1
        return ev.FioFigures(bytes=AMOUNT, seconds=2.0 * slow * draw.gauss(1, 0.01), requests=512)

    found = judged(TaskBench(disks, filesystem_tasks("disk1"), figures), filesystem_rates("ext4"))
    assert found.unknowns[0].startswith("the ext4 read on disk1: a repeat is unlike the others")
    assert found.conclusions == ()


def test_a_filesystem_is_tried_on_one_disk_and_on_arrays() -> None:
    assert filesystem_counts(1) == (1,)
    assert filesystem_counts(3) == (1, 2, 3)
    assert filesystem_counts(9) == (1, 2, 4, 9)


def test_only_the_last_phase_removes_the_file() -> None:
    assert [any("unlink" in word for word in task.options) for task in filesystem_tasks("disk1")] == [
        *[False] * 3,
        True,
    ]
