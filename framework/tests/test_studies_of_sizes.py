"""The study of the transfer size: where a disk stalls, and what limits it to the largest size that is safe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from study_benches import kinds, only
from task_benches import rated

from plugpull.checks import Judgement, encode_check
from plugpull.checks.reach import unreached
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.story import Story
from plugpull.load.patterns import Pattern
from plugpull.load.sweep import FAILING, SAFE, between, sizes
from plugpull.load.sweep import Sweep as LoadSweep
from plugpull.load.task_designs import sweep_design
from plugpull.studies import transfer_size

RATE = 2 << 20
STEP = 0.1
Stalls = Callable[[str, int, int], bool]
"""Whether a disk stalls in a mode, with a size in KiB, at an attempt counted from 1."""


class Sweep:
    """The history of a sweep of one disk of 2 MiB/s, with the attempts that ``Sweep`` of the load makes."""

    def __init__(
        self,
        stalls: Stalls = lambda mode, size, attempt: False,
        largest: int = 1024,
        split: int = 1 << 20,
        rate: int = RATE,
    ) -> None:
        self._rate = rate
        self.at, self.done, self.count = 10.0, [0, 0], [0, 0]
        self.events: list[ev.Event] = [
            ev.DutReady(at=9.0, kernel="6.1", kind="virtual", cpus=2, how="restored", took=1.0),
            ev.DiskAttached(
                at=9.5, disk="disk1", kname="sdb", diskseq=1, devt="8:16", serial="S-disk1", driver="usb-storage",
                place="0000:00:05.0/1:0", size=64 << 20, speed="5000",
            ),
        ]  # fmt: skip
        self._split, self._stalls, self._number = split, stalls, 0
        safe, failing, how = 0, 0, ""
        for size in [one >> 10 for one in sizes([largest << 10])]:
            for mode in ("read", "write"):
                if not failing and self._try(mode, size, 1):
                    failing, how = size, mode
            safe = safe if failing else size
        while safe and (size := between(safe << 10, failing << 10) >> 10):
            stalled = next((mode for mode in ("read", "write") if self._try(mode, size, 1)), "")
            safe, failing, how = (safe, size, stalled) if stalled else (size, failing, how)
        if failing and safe:
            for attempt in range(SAFE):
                self._try(how, safe, attempt + 2)
            for attempt in range(FAILING):
                self._try(how, failing, attempt + 2)

    def _try(self, mode: str, size: int, attempt: int) -> bool:
        """Half a second at the disk's rate, and then a stall or as much again."""
        stalls, begin = self._stalls(mode, size, attempt), self.at
        place = ("read", "write").index(mode)
        real, begun = min(size << 10, self._split), self.done[place]
        seconds = max(3.0 if stalls else 1.5, 3 * real / self._rate)
        for step in range(round(seconds / STEP) + 1):
            whole = int(self._rate * step * STEP) // real
            if not (stalls and step > 5):
                self._upto(place, begun + whole * real, real)
            self._sample(place, busy=True)
        self._number += 1
        self.events.append(
            ev.Measured(
                at=round(self.at - STEP, 6),
                begin=begin,
                disks=("disk1",),
                mode=mode,  # type: ignore[arg-type]
                block=size << 10,
                depth=1,
                number=self._number,
                planned=self._number,
                repeat=attempt,
                repeats=1 + SAFE,
            )
        )
        self._sample(place, busy=False)
        return stalls

    def _upto(self, place: int, done: int, real: int) -> None:
        self.count[place] += (done - self.done[place]) // real
        self.done[place] = done

    def _sample(self, place: int, *, busy: bool) -> None:
        (read, written), (reads, writes) = self.done, self.count
        busy_reading, busy_writing = int(busy and place == 0), int(busy and place == 1)
        counters = Counters(1, read, written, reads, writes, busy_reading, busy_writing, 1)
        self.events.append(ev.Sampled(at=round(self.at, 6), disks={"sdb": counters}))
        self.at = round(self.at + STEP, 6)

    def judged(self) -> Judgement:
        check = transfer_size("disk1")
        begun = ev.ScenarioBegun(id="scenarios/test_size.py::test_size", wall="2030-01-01T00:00:01+00:00", seed=7)
        middle = sorted(self.events, key=lambda event: event.at or 0.0)
        asked = ev.Judged(at=self.at, checks=(encode_check(check),))
        ended = ev.ScenarioEnded(at=self.at, id=begun.id, wall="2030-01-01T00:09:00+00:00", seconds=self.at)
        rig: dict[str, Any] = {
            "dut": {"kind": "virtual"}, "controller": [{"name": "usb", "ports": 15}], "disk": rated(["disk1"], RATE),
        }  # fmt: skip
        story = Story(begun, (begun, *middle, asked, ended), rig=rig)
        assert unreached(story, check.claims(story)) == ()
        return check.judge(story)


def test_a_disk_that_never_stalls_has_no_largest_safe_size() -> None:
    found = Sweep().judged()
    assert (found.findings, found.unknowns, found.conclusions) == ((), (), ())
    assert found.worst == "no stall up to 1024 KiB"
    assert [int(one.parameters["block"]) >> 10 for one in found.measurements if one.name == "read by size"] == [
        4, 8, 16, 32, 64, 128, 256, 512, 1024,
    ]  # fmt: skip


@pytest.mark.parametrize("safe", [4, 16, 32, 48, 60, 64, 120, 256, 1020])
def test_the_largest_safe_size_is_exact(safe: int) -> None:
    found = Sweep(lambda mode, size, attempt: size > safe).judged()
    one = only(found, "largest-safe-size")
    assert (one.subject, one.value, one.unit) == ("disk1", safe << 10, "bytes")
    assert (found.findings, found.unknowns) == ((), ())
    assert f'ATTR{{queue/max_sectors_kb}}="{safe}"' in one.text
    assert 'ENV{ID_SERIAL_SHORT}=="S-disk1"' in one.text
    assert one.evidence == (f"{safe + 4} KiB: 3 of 3 attempts failed", f"{safe} KiB: none of 5 attempts failed")


def test_a_high_speed_disk_that_stalls_at_its_largest_size_gets_a_quirk() -> None:
    """X19: 240 sectors stall, 128 do not."""
    one = only(Sweep(lambda mode, size, attempt: size > 64, largest=120).judged(), "largest-safe-size")
    assert one.value == 64 << 10
    assert "usb-storage.quirks=VID:PID:m" in one.text
    assert one.text.startswith("The largest safe transfer size of disk1 is 64 KiB. With 68 KiB it fails (read: no requ")


def test_a_disk_that_stalls_only_when_written_is_found_too() -> None:
    one = only(Sweep(lambda mode, size, attempt: mode == "write" and size > 64).judged(), "largest-safe-size")
    assert one.value == 64 << 10
    assert "(write: " in one.text


def test_a_disk_that_stalls_earlier_when_written_than_when_read_is_safe_for_both() -> None:
    """Both fail with 64 KiB: then reading is seen first."""
    limits = {"read": 52, "write": 40}
    one = only(Sweep(lambda mode, size, attempt: size > limits[mode]).judged(), "largest-safe-size")
    assert one.value == 40 << 10
    assert "With 44 KiB it fails (write: " in one.text


@pytest.mark.parametrize(
    ("stalls", "why"),
    [
        (lambda mode, size, attempt: size == 64 and attempt == 1, "and not when it was tried again"),
        (lambda mode, size, attempt: size >= 64 or (size == 60 and attempt > 1), "not the size"),
        (lambda mode, size, attempt: size >= 4, "fails with the smallest size"),
    ],
    ids=["once", "smaller too", "always"],
)
def test_stalls_that_do_not_depend_on_the_size_are_doubts(stalls: Stalls, why: str) -> None:
    found = Sweep(stalls).judged()
    assert kinds(found) == []
    assert why in found.unknowns[0]


def test_a_size_that_the_counters_do_not_show_is_not_proved() -> None:
    found = Sweep(split=128 << 10).judged()
    assert "requests of 256 KiB to disk1 were transferred as 128 KiB on average when read" in found.unknowns[0]
    assert len(found.unknowns) == 6


def test_a_slow_disk_does_not_stall_because_its_large_requests_take_long() -> None:
    """At 256 KiB/s, a request of 1 MiB takes 4 s."""
    found = Sweep(rate=256 << 10).judged()
    assert (found.findings, found.unknowns, found.conclusions) == ((), (), ())


class DrySweep(LoadSweep):
    """Tries sizes on disks that each stall above a size in KiB; 0: never."""

    def __init__(self, limits: dict[str, int]) -> None:
        self._most, self.tried = limits, list[tuple[tuple[str, ...], str, int, int]]()

    def _limit(self, disk: str) -> int:
        return 256 << 10

    def _try(self, targets: Sequence[Any], pattern: Pattern, size: int, repeat: int) -> frozenset[str]:
        names = tuple(one.name for one in targets)
        if names:
            self.tried.append((names, pattern.mode, size >> 10, repeat))
        return frozenset(name for name in names if 0 < self._most[name] < size >> 10)


@dataclass(frozen=True)
class _Named:
    name: str


def test_the_sweep_narrows_down_each_disk_that_stalls_and_confirms_it() -> None:
    sweep = DrySweep({"disk1": 48, "disk2": 200, "disk3": 0})
    targets: list[Any] = [_Named(name) for name in ("disk1", "disk2", "disk3")]
    sweep.run(targets)
    for disk, safe in (("disk1", 48), ("disk2", 200)):
        alone = [(mode, size, repeat) for names, mode, size, repeat in sweep.tried if names == (disk,)]
        assert alone[-SAFE - FAILING :] == [
            *(("read", safe, again) for again in (2, 3, 4)),
            *(("read", safe + 4, again) for again in (2, 3)),
        ]
        assert ("write", safe, 1) in alone, "a size is safe only for both"
    assert {size for names, _, size, _ in sweep.tried if "disk3" in names} == {4, 8, 16, 32, 64, 128, 256}


def test_a_sweep_without_attempts_is_unknown() -> None:
    sweep = Sweep()
    sweep.events = [one for one in sweep.events if not isinstance(one, ev.Measured)]
    assert "no transfer size was tried on disk1" in sweep.judged().unknowns


def test_the_announced_time_of_a_sweep_grows_with_the_size() -> None:
    class _Disk:
        rate = 2 << 20

    design = sweep_design([_Disk()])
    assert len(design) == 18
    assert (design[0].seconds, design[-1].seconds) == (1.0, 5.0)
