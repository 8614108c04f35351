"""What md's states and its log show together: superblocks not written, members not rebuilt, arrays that do not work."""

from __future__ import annotations

import pytest
from array_stories import ARRAY, CHECKED, NOTICED, READDED, STOPPED, mirror, state
from msgspec.structs import replace
from stories import CUT, GONE, SURVIVORS, VICTIM, Bench, healthy

from plugpull.checks import array_survived
from plugpull.checks.raid.arrays_sound import arrays_sound
from plugpull.history import events as ev

EARLY = GONE - 6.0
"""Before the cut, with the array at rest."""


def made(*lines: tuple[float, str]) -> Bench:
    bench = healthy()
    mirror(bench)
    bench.add(*(ev.KernelMessage(at=at, text=text, level=6, seq=1 + n) for n, (at, text) in enumerate(lines)))
    return bench


def said(bench: Bench) -> list[str]:
    return [one.summary for one in bench.judge(arrays_sound()).findings]


SUPERBLOCK = "md: super_written gets error=-5"
WHAT = f"the kernel failed to write a superblock of {ARRAY} while all its members were there: {SUPERBLOCK}"


def test_a_superblock_that_was_not_written_while_all_members_were_there() -> None:
    assert said(made((EARLY, SUPERBLOCK))) == [WHAT]


def test_a_superblock_that_died_with_its_disk() -> None:
    assert said(made((GONE + 0.05, SUPERBLOCK))) == []


def test_a_superblock_of_another_member_than_the_one_that_was_missed_long_before() -> None:
    bench = made((NOTICED + 6.0, SUPERBLOCK))
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", at=NOTICED + 13.0)
    bench.replace(ev.DiskAttached, lambda event: event.disk == VICTIM and event.at > CUT, at=NOTICED + 12.5)
    assert said(bench) == [WHAT]


def incomplete(bench: Bench, what: str) -> Bench:
    """A record in which a member may have left unseen: a uevent, or the time of the cut, is not there."""
    if what == "a uevent":
        bench.drop(ev.Uevent)
        for at, number in ((12.0, 7), (20.0, 11)):
            bench.add(ev.Uevent(at=at, action="change", subsystem="usb", devpath="/x", seqnum=number, others=0))
    else:
        bench.drop(ev.Edge, keep=lambda event: (event.state, event.phase) != ("off", "commanded"))
    return bench


@pytest.mark.parametrize("what", ["a uevent", "the time of the cut"])
def test_a_member_that_may_have_left_unseen_explains_a_superblock(what: str) -> None:
    judgement = incomplete(made((EARLY, SUPERBLOCK)), what).judge(arrays_sound())
    assert WHAT not in [one.summary for one in judgement.findings]
    assert WHAT in judgement.unknowns


@pytest.mark.parametrize("what", ["a uevent", "the time of the cut"])
def test_a_member_that_may_have_left_unseen_explains_a_broken_array(what: str) -> None:
    bench = made()
    bench.add(state(EARLY, word="broken"), state(EARLY + 0.01))
    judgement = incomplete(bench, what).judge(arrays_sound())
    words = f"{ARRAY} was broken at {EARLY:.2f} s, and was to do without its missing members"
    assert words not in [one.summary for one in judgement.findings]
    assert words in judgement.unknowns


def added(rebuilt: bool, *lines: tuple[float, str]) -> Bench:
    """The member is put back as a new one; ``rebuilt``: a state shows its rebuild."""
    bench = made(*lines)
    bench.replace(ev.ArrayActed, lambda event: event.action == "readd", action="add")
    if not rebuilt:
        bench.replace(ev.ArrayState, lambda event: event.at == READDED, values=state(READDED, degraded=1).values)
    return bench


def test_a_new_member_that_was_never_rebuilt() -> None:
    (what,) = said(added(False))
    assert what.startswith(f"{VICTIM} is in sync in {ARRAY} since ")
    assert what.endswith(" s, and md did not rebuild it")


def test_a_rebuild_that_md_seemed_to_begin_when_the_member_failed_is_not_its_own() -> None:
    bench = added(False)
    bench.add(state(READDED - 0.3, "recover", degraded=1, disk1="faulty"))
    (what,) = said(bench)
    assert what.endswith(" s, and md did not rebuild it")


@pytest.mark.parametrize(
    "logged",
    ["", "md: recovery of RAID array md127", "md: recover of RAID array md127"],
    ids=["by a state", "by the log", "by the log of later kernels"],
)
def test_a_new_member_that_was_rebuilt(logged: str) -> None:
    assert said(added(not logged, *([(READDED + 0.1, logged)] if logged else []))) == []


def test_a_new_member_whose_rebuild_may_be_missing_in_the_log() -> None:
    bench = added(False)
    bench.add(ev.LogLost(at=READDED, count=3))
    assert said(bench) == []


@pytest.mark.parametrize("missing", [0, 3])
def test_a_member_whose_removal_may_be_missing_among_the_uevents(missing: int) -> None:
    bench = made()
    bench.add(state(GONE - 3.0, degraded=1, **{SURVIVORS[0]: "faulty"}), state(GONE - 2.9))
    bench.drop(ev.Uevent)
    for at, number in ((12.0, 7), (20.0, 8 + missing)):
        bench.add(ev.Uevent(at=at, action="change", subsystem="usb", devpath="/devices/x", seqnum=number, others=0))
    judgement = bench.judge(array_survived(ARRAY))
    found = [one.summary for one in judgement.findings], judgement.unknowns
    assert [any("although its disk had not left" in what for what in one) for one in found] == [
        not missing,
        bool(missing),
    ]


@pytest.mark.parametrize(("at", "accused"), [(EARLY, 1), (CUT + 0.05, 0)], ids=["before its cut", "after it"])
def test_a_member_is_faulty_after_it_was_cut_and_not_before(at: float, accused: int) -> None:
    bench = made()
    bench.add(state(at, degraded=1, **{VICTIM: "faulty"}), state(at + 0.01))
    what = f"{ARRAY} set {VICTIM} aside as faulty (faulty, slot none) though nothing had taken it"
    assert said(bench) == [what] * accused


@pytest.mark.parametrize("at", [EARLY, NOTICED + 1.0], ids=["whole", "without a member"])
@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("broken", "and was to do without its missing members"),
        ("inactive", "and nobody had stopped it"),
        ("clear", "and nobody had stopped it"),
    ],
)
def test_an_array_that_does_not_work_though_it_could(word: str, what: str, at: float) -> None:
    bench = made()
    bench.add(state(at, degraded=int(at > CUT), word=word), state(at + 0.01, degraded=int(at > CUT)))
    assert said(bench) == [f"{ARRAY} was {word} at {at:.2f} s, {what}"]


def test_an_array_that_is_being_stopped_does_not_work() -> None:
    bench = made()
    bench.add(state(STOPPED - 0.02, word="inactive"))
    assert said(bench) == []
    bench.drop(ev.ArrayActed, keep=lambda event: event.action != "stop")
    assert said(bench) == [], "the step is not on record, and the array is gone"


def test_nobody_asked_md_to_reshape_an_array() -> None:
    bench = made()
    bench.add(state(EARLY, action="reshape"))
    assert bench.judge(arrays_sound()).unknowns == (
        f"{ARRAY} was reshaped at {EARLY:.2f} s, and nobody had asked for that",
    )


@pytest.mark.parametrize("before", [0.9, 0.1])
@pytest.mark.parametrize(
    ("resynced", "counts", "found"), [(8, ("8", "0", "0"), 0), (0, ("8", "0", "0"), 8), (8, ("8", "0", "16"), 16)]
)
def test_a_check_counts_from_nought_though_its_first_state_has_the_count_before(
    resynced: int, counts: tuple[str, ...], found: int, before: float
) -> None:
    bench = made()
    bench.replace(ev.ArrayMade, level="raid5")
    bench.drop(ev.ArrayState, keep=lambda event: not CHECKED - 1.0 < event.at < CHECKED + 1.0)

    def counted(at: float, action: str, count: str) -> ev.ArrayState:
        one = state(at, action)
        return replace(one, values=one.values | {"mismatch_cnt": count})

    bench.add(counted(CHECKED - before, "idle", str(resynced)))
    bench.add(*(counted(CHECKED - 0.05 + 0.1 * number, "check", count) for number, count in enumerate(counts)))
    bench.add(counted(CHECKED + 0.5, "idle", counts[-1]))
    what = [
        one.summary for one in bench.judge(array_survived(ARRAY)).findings if "parity does not match" in one.summary
    ]
    assert what == [f"a check of {ARRAY} found {found} sectors whose parity does not match"] * bool(found)
