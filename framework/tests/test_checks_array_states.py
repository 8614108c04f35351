"""What contradicts itself in the states of an array is no PASS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from array_stories import ARRAY, CHECKED, NOTICED, READDED, SYNCED, act, mirror, state
from msgspec.structs import replace
from stories import GONE, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import array_survived
from plugpull.checks.record.coherent import coherent
from plugpull.history import events as ev

SECOND = SURVIVORS[0]
EARLY = GONE - 4.0
"""Before the cut, with the array at rest."""


def doubts(bench: Bench) -> str:
    return "; ".join(bench.judge(coherent()).unknowns)


def said(bench: Bench) -> list[str]:
    return [one.summary for one in bench.judge(array_survived(ARRAY)).findings]


def made(**fields: Any) -> Bench:
    bench = healthy()
    mirror(bench)
    bench.replace(ev.ArrayMade, **fields)
    return bench


def with_value(at: float, name: str, value: str, **how: Any) -> ev.ArrayState:
    one = state(at, **how)
    return replace(one, values=one.values | {name: value})


def rebuilding(at: float, sector: int) -> ev.ArrayState:
    return with_value(at, "sync_completed", f"{sector} / 8192", action="recover", degraded=1, disk1="spare")


def kernel(bench: Bench, at: float, text: str) -> None:
    bench.add(ev.KernelMessage(at=at, text=text, level=6, seq=1))


def miscounted(bench: Bench, begin: float, end: float) -> None:
    """``degraded`` does not say that the member is missing."""
    bench.add(state(begin, disk1="faulty"), state(end, degraded=1, disk1="faulty"))


def renamed(bench: Bench) -> None:
    bench.add(replace(state(EARLY), kname="md126"), state(EARLY + 0.1))


def vanished(bench: Bench) -> None:
    bench.add(ev.ArrayState(at=EARLY, array=ARRAY, kname="md127", values={}, members={}), state(EARLY + 0.1))


def foreign(bench: Bench) -> None:
    odd = state(EARLY)
    bench.add(replace(odd, members=odd.members | {"sdz": ("2", "in_sync")}))
    bench.add(state(EARLY + 3.0))


def went_back(bench: Bench) -> None:
    bench.add(rebuilding(READDED + 0.7, 4096), rebuilding(READDED + 0.9, 512))


def begun_again_at_the_end(bench: Bench) -> None:
    bench.add(*(rebuilding(READDED + 0.5 + at / 10, sector) for at, sector in enumerate((7000, 8192, 0, 512))))


def fell_out(bench: Bench) -> None:
    bench.add(state(24.0), state(24.2, degraded=1, disk1="spare"), state(24.4))


def added_without_a_rebuild(bench: Bench) -> None:
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", action="add")
    bench.replace(ev.ArrayState, lambda event: event.at == READDED, values=state(READDED, degraded=1).values)


def added_by_the_states_alone(bench: Bench) -> None:
    """The log has a rebuild, and no state shows one."""
    added_without_a_rebuild(bench)
    kernel(bench, READDED + 0.1, "md: recovery of RAID array md127")


def interrupted(bench: Bench) -> None:
    kernel(bench, READDED + 1.0, "md: md127: recovery interrupted.")


def begun_again_by_itself(bench: Bench) -> None:
    """The step that put the member back began the rebuild; it did not interrupt it."""
    for number, what in enumerate(("recover of RAID array md127", "md127: recover interrupted.") * 2):
        kernel(bench, READDED + 0.2 + number / 5, f"md: {what}")


def interrupted_and_complete(bench: Bench) -> None:
    """Another member is put back soon after, so that it may have been interrupted; but then it would begin again."""
    bench.add(act(READDED + 0.8, "add", SECOND))
    kernel(bench, READDED + 0.2, "md: recover of RAID array md127")
    kernel(bench, READDED + 1.0, "md: md127: recover interrupted.")
    bench.add(rebuilding(READDED + 0.9, 4096))


def rebuild_without_an_end(bench: Bench) -> None:
    kernel(bench, READDED + 1.0, "md: recovery of RAID array md127")


def rebuild_without_an_end_on_later_kernels(bench: Bench) -> None:
    kernel(bench, READDED + 1.0, "md: recover of RAID array md127")


def check_without_an_end(bench: Bench) -> None:
    kernel(bench, CHECKED + 0.1, "md: data-check of RAID array md127")


def check_without_an_end_on_later_kernels(bench: Bench) -> None:
    kernel(bench, CHECKED + 0.1, "md: check of RAID array md127")


def left_out(bench: Bench) -> None:
    kname = next(one.kname for one in bench.events if isinstance(one, ev.DiskAttached) and one.disk == SECOND)
    kernel(bench, EARLY, f"md: kicking non-fresh {kname} from array!")
    bench.add(state(EARLY + 0.1))


def not_started(bench: Bench) -> None:
    kernel(bench, EARLY, "md/raid:md127: cannot start dirty degraded array.")


def too_small(bench: Bench) -> None:
    bench.replace(ev.ArrayMade, size=1 << 20)


ODD: dict[Callable[[Bench], None], str] = {
    lambda bench: miscounted(bench, NOTICED, NOTICED + 2.5): "counts 0 missing members",
    renamed: "was md127 and then md126, although nobody had stopped it",
    vanished: "was gone at",
    foreign: "sdz is a member of array1, which was not made of it",
    went_back: "the recover of array1 went back from sector 4096 to 512",
    begun_again_at_the_end: "the recover of array1 went back from sector 8192 to 0",
    fell_out: "disk1 was in sync in array1 and was not",
    added_by_the_states_alone: "disk1 was in sync in array1 without a rebuild",
    interrupted: "was interrupted, and nothing did that: md: md127: recovery interrupted.",
    begun_again_by_itself: "was interrupted, and nothing did that: md: md127: recover interrupted.",
    interrupted_and_complete: "s that a rebuild of array1 was interrupted, and it is complete",
    rebuild_without_an_end: "began 1 times with a recover of array1, and 0 ended",
    rebuild_without_an_end_on_later_kernels: "the kernel began 1 times with a recover of array1, and 0 ended",
    check_without_an_end: "began 1 times with a check of array1, and 0 ended",
    check_without_an_end_on_later_kernels: "the kernel began 1 times with a check of array1, and 0 ended",
    left_out: "which counts no missing member",
    not_started: f"the kernel did not start array1 at {EARLY:.2f} s, and nothing that was done to it failed",
    too_small: "has 1048576 bytes, and raid1 of its members has 8388608",
}


@pytest.mark.parametrize(("change", "why"), ODD.items(), ids=[why[:30] for why in ODD.values()])
def test_what_contradicts_itself_is_a_doubt(change: Callable[[Bench], None], why: str) -> None:
    bench = made()
    change(bench)
    assert why in doubts(bench)


def short_miscount(bench: Bench) -> None:
    miscounted(bench, NOTICED + 0.1, NOTICED + 1.0)


def stopped_by_the_cut(bench: Bench) -> None:
    """A rebuild of the second member that the cut of the first interrupts."""
    bench.add(state(GONE - 1.0, "recover"))
    kernel(bench, GONE + 0.2, "md: md127: recovery interrupted.")


def died_with_the_disk(bench: Bench) -> None:
    kernel(bench, GONE + 0.05, "md: super_written gets error=-5")


def begun_again_by_an_add(bench: Bench) -> None:
    went_back(bench)
    bench.add(act(READDED + 0.85, "add", SECOND))


def put_back_during_a_repair(bench: Bench) -> None:
    """What ``sync_action`` calls a rebuild is still the repair."""
    went_back(bench)
    kernel(bench, READDED + 0.8, "md: md127: repair done.")


def frozen_by_an_add(bench: Bench) -> None:
    """mdadm freezes what md does before it adds a member. On a busy host that shows in a state."""
    bench.add(rebuilding(READDED + 0.5, 512), with_value(READDED + 0.8, "sync_action", "frozen", degraded=1))
    kernel(bench, READDED + 0.9, "md: md127: recovery interrupted.")
    bench.add(replace(act(READDED + 1.2, "add", SECOND), seconds=0.6))


def added_and_rebuilt(bench: Bench) -> None:
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", action="add")


def progress_of_what_ended_before(bench: Bench) -> None:
    """md sets what it does next before it clears the progress of what it did before."""
    full = rebuilding(READDED + 0.6, 8192)
    first = replace(full, values={**full.values, "sync_action": "resync", "sync_completed": "8192 / 8192"})
    bench.add(first, replace(first, at=READDED + 0.7, values={**first.values, "sync_action": "recover"}))
    bench.add(rebuilding(READDED + 0.9, 0))


def progress_that_is_cleared_at_the_end(bench: Bench) -> None:
    """md clears the progress of a rebuild before it says that it does nothing."""
    bench.add(rebuilding(READDED + 0.7, 8192), rebuilding(READDED + 0.8, 0))
    bench.add(with_value(READDED + 0.81, "sync_action", "idle", degraded=1, disk1="spare"))


def noticed_late(bench: Bench) -> None:
    """Nobody writes to the array for long after its member is gone. The first write fails, and so does a superblock."""
    bench.replace(ev.ArrayState, lambda event: event.at == NOTICED, at=GONE + 7.0)
    bench.drop(ev.ArrayState, keep=lambda event: event.at != READDED)
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", at=GONE + 7.5)
    bench.replace(ev.ArrayState, lambda event: event.at == SYNCED, at=GONE + 8.0)
    kernel(bench, GONE + 6.8, "md: super_written gets error=-5")


def known_by_its_kernel_name(bench: Bench) -> None:
    """A member that the array has not missed yet: the agent does not know the disk any more."""
    odd = state(GONE + 0.1)
    kname = next(one.kname for one in bench.events if isinstance(one, ev.DiskAttached) and one.disk == VICTIM)
    bench.replace(ev.ArrayState, lambda event: event.at == NOTICED, at=NOTICED + 5.0)
    bench.add(replace(odd, members={kname: odd.members[VICTIM], SECOND: odd.members[SECOND]}))


def rebuild_with_its_end(bench: Bench, word: str = "recovery") -> None:
    kernel(bench, READDED + 1.0, f"md: {word} of RAID array md127")
    bench.add(ev.KernelMessage(at=READDED + 1.5, text=f"md: md127: {word} done.", level=6, seq=2))


def rebuild_with_its_end_on_later_kernels(bench: Bench) -> None:
    rebuild_with_its_end(bench, "recover")


def begun_again_when_a_second_one_came(bench: Bench) -> None:
    bench.add(act(READDED + 0.5, "readd", SECOND))
    kernel(bench, READDED + 0.2, "md: recover of RAID array md127")
    kernel(bench, READDED + 0.45, "md: md127: recover interrupted.")
    kernel(bench, READDED + 0.5, "md: recover of RAID array md127")
    kernel(bench, READDED + 1.5, "md: md127: recover done.")


def left_out_and_missing(bench: Bench) -> None:
    """The state that shows the missing member comes after the message."""
    kname = next(one.kname for one in bench.events if isinstance(one, ev.DiskAttached) and one.disk == VICTIM)
    kernel(bench, NOTICED - 0.1, f"md: kicking non-fresh {kname} from array!")


def not_started_at_first(bench: Bench) -> None:
    kernel(bench, READDED - 0.1, "md/raid:md127: cannot start dirty degraded array.")
    bench.add(act(READDED - 0.05, "assemble", ok=False, detail="failed to RUN_ARRAY"), act(READDED - 0.01, "assemble"))


FINE = (
    left_out_and_missing,
    not_started_at_first,
    rebuild_with_its_end,
    rebuild_with_its_end_on_later_kernels,
    begun_again_when_a_second_one_came,
    short_miscount,
    stopped_by_the_cut,
    noticed_late,
    died_with_the_disk,
    begun_again_by_an_add,
    frozen_by_an_add,
    put_back_during_a_repair,
    progress_of_what_ended_before,
    progress_that_is_cleared_at_the_end,
    added_and_rebuilt,
    known_by_its_kernel_name,
)


@pytest.mark.parametrize("change", FINE)
def test_what_md_does_when_a_member_comes_and_goes_is_no_doubt(change: Callable[[Bench], None]) -> None:
    bench = made()
    change(bench)
    assert doubts(bench) == ""


@pytest.mark.parametrize("there", [True, False])
def test_a_member_that_was_not_there_yet_did_not_begin_the_rebuild(there: bool) -> None:
    """The kernel goes on with one member when another one is removed. To put that back interrupts it, and may take
    long, so that it seems to have begun at about the same time."""
    bench = made()
    members = {VICTIM: ("0", "spare")} | ({SECOND: ("1", "spare")} if there else {})
    bench.add(replace(state(READDED + 0.9, "recover", degraded=2), members=members))
    for after, what in (0.7, "recovery of RAID array md127"), (1.1, "md127: recovery interrupted."):
        kernel(bench, READDED + after, f"md: {what}")
    bench.add(replace(act(READDED + 1.3, "add", SECOND), seconds=0.3))
    assert ("nothing did that" in doubts(bench)) is there
