"""Timeouts of the kernel that are shortened for a scenario, and restored: each change has to be on record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
from msgspec.structs import replace
from stories import BACK, DISKS, VICTIM, Bench, healthy
from test_on_record import without

from plugpull.checks.record.disk_record import disk_doubts
from plugpull.checks.record.on_record import on_record
from plugpull.checks.victims.timeouts import other_timeouts
from plugpull.history import events as ev
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict


def timed(kind: str = "virtual", came_with: str = "30") -> Bench:
    """A DUT whose timeouts are shortened: as the scenario begins, and those of each disk as it comes."""
    bench = healthy()
    bench.events = [
        replace(event, records=("timers",), kind=kind) if isinstance(event, ev.DutReady) else event
        for event in bench.events
    ]
    bench.add(
        ev.TimersSet(at=10.0, moment="begin", changed=(("/proc/sys/kernel/hung_task_timeout_secs", "120", "20"),))
    )
    for event in [event for event in bench.events if isinstance(event, ev.DiskAttached)]:
        path = event.sysfs.partition("/block/")[0] + "/timeout"
        at = (event.at or 0.0) + 0.1
        bench.add(ev.TimersSet(at=at, moment="attached", changed=((path, "30", "15"),)))
        key: dict[str, Any] = {"disk": event.disk, "kname": event.kname, "diskseq": event.diskseq}
        bench.add(ev.DiskProperties(at=at, moment="attached", values={"timeout": came_with}, **key))
    if kind != "virtual":
        bench.add(ev.TimersSet(at=25.8, moment="restored", changed=()))
    return bench


def moment(name: str) -> Callable[[Any], bool]:
    return lambda event: isinstance(event, ev.TimersSet) and event.moment == name


@pytest.mark.parametrize("kind", ["virtual", "ssh"])
def test_timeouts_that_are_shortened_and_restored_are_on_record(kind: str) -> None:
    assert timed(kind).judge(on_record()).unknowns == ()


def test_timeouts_of_the_kernel_that_are_not_on_record_are_noticed() -> None:
    whole = timed("ssh").story()
    assert on_record().judge(without(whole, moment("begin"))).unknowns == (
        "that the timeouts of the kernel were shortened is not on record",
    )
    assert on_record().judge(without(whole, moment("restored"))).unknowns == (
        "that the timeouts of the kernel were restored is not on record",
    )


@pytest.mark.parametrize(("after", "doubted"), [("20", False), ("0", True), ("600", True)])
def test_a_timeout_that_is_off_or_longer_than_before_reports_nothing_in_time(after: str, doubted: bool) -> None:
    bench = timed()
    path = "/proc/sys/kernel/hung_task_timeout_secs"
    bench.replace(ev.TimersSet, lambda event: event.moment == "begin", changed=((path, "120", after),))
    assert any(path in doubt for doubt in bench.judge(on_record()).unknowns) is doubted


@pytest.mark.parametrize("looked_again", [False, True])
def test_a_disk_whose_timeouts_were_not_shortened_is_noticed(looked_again: bool) -> None:
    bench = timed()
    for event in [event for event in bench.events if isinstance(event, ev.DiskProperties) and looked_again]:
        bench.add(replace(event, at=11.5, moment="begin", values={"timeout": "15"}))
    other = DISKS.index("disk2") + 1
    bench.drop(ev.TimersSet, keep=lambda event: not any(f"host{other}/" in path for path, *_ in event.changed))
    (said,) = bench.judge(on_record()).unknowns
    assert said.startswith("that the timeouts of disk2 were shortened at 10.5")


@pytest.mark.parametrize("kind", ["virtual", "ssh"])
def test_a_disk_whose_timeout_could_not_be_set_is_noticed(kind: str) -> None:
    bench = timed(kind)
    (path,) = {
        path
        for event in bench.events
        if isinstance(event, ev.TimersSet)
        for path, *_ in event.changed
        if "host2/" in path
    }
    bench.replace(
        ev.TimersSet,
        lambda event: any(one == path for one, *_ in event.changed),
        changed=(),
        failed={path: "Permission denied"},
    )
    doubts = bench.judge(on_record()).unknowns
    assert any("could not be shortened (Permission denied)" in doubt for doubt in doubts) is (kind == "virtual")


def test_a_disk_that_came_with_a_shorter_timeout_needs_no_other() -> None:
    bench = timed()
    bench.drop(ev.TimersSet, keep=lambda event: not any("host2/" in path for path, *_ in event.changed))
    bench.replace(ev.DiskProperties, lambda event: event.disk == "disk2", values={"timeout": "10"})
    assert bench.judge(on_record()).unknowns == ()


def test_a_disk_that_left_at_once_was_not_attended_to() -> None:
    bench = timed()
    new = "/sys/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1.1/1-1.1:1.0/host9/block/sdb"
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, sysfs=new)
    assert bench.judge(on_record()).unknowns == (
        f"that the timeouts of disk1 were shortened at {BACK:.2f} s is not on record",
    )
    bench.detach(VICTIM, BACK + 0.4)
    assert bench.judge(on_record()).unknowns == ()


def test_an_old_record_without_timers_is_judged_as_ever() -> None:
    assert healthy().judge(on_record()).unknowns == ()
    assert judge_story(healthy().story()).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("why", "kind", "many"),
    [
        ("Permission denied", "virtual", 1),
        ("No such file or directory", "virtual", 0),
        ("Permission denied", "ssh", 0),
    ],
)
def test_a_timeout_of_the_kernel_that_could_not_be_shortened(why: str, kind: str, many: int) -> None:
    bench = timed(kind)
    file = "/proc/sys/kernel/hung_task_timeout_secs"
    bench.replace(ev.TimersSet, lambda event: event.moment == "begin", failed={file: why})
    bench.add(ev.Residue(at=25.5))
    said = [what for what in bench.judge(on_record()).unknowns if file in what]
    assert len(said) == many


@pytest.mark.parametrize("moment", ["begin", "end"])
@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("timeout", "15", ""),
        ("timeout", "30", ""),
        ("timeout", "22", "the command timeout of disk2 is 22 s at the beginning, and nobody set it to that"),
        ("eh_timeout", "5", ""),
        (
            "eh_timeout",
            "12",
            "the error handler's timeout of disk2 is 12 s at the beginning, and nobody set it to that",
        ),
    ],
)
def test_a_timeout_is_what_the_disk_came_with_or_what_it_was_set_to(
    name: str, value: str, what: str, moment: Literal["begin", "end"]
) -> None:
    bench = timed()
    came = next(event for event in bench.events if isinstance(event, ev.DiskProperties) and event.disk == "disk2")
    bench.replace(ev.DiskProperties, values={"timeout": "30", "eh_timeout": "10"})
    bench.add(ev.TimersSet(at=11.0, moment="attached", changed=(("/sys/x/eh_timeout", "10", "5"),)))
    bench.add(replace(came, at=25.0, moment=moment, values={name: value}))
    said = [what] if what and moment == "begin" else []
    assert [one for one in disk_doubts(bench.story()) if "timeout" in one] == said
    accused = [one.summary for one in other_timeouts(bench.story())]
    at_the_end = {
        "timeout": ["disk2 has a command timeout of 22 s instead of 15 s at the end, and nobody set it to that"],
        "eh_timeout": [
            "disk2 has 12 s instead of 5 s for a command of the error handler at the end, and nobody set it to that"
        ],
    }
    assert accused == (at_the_end[name] if what and moment == "end" else [])
    assert not [*other_timeouts(timed("ssh").story())]
