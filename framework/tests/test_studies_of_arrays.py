"""Studies of arrays: rates against what the members allow, and rebuilds without a load and with one."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from study_benches import MB, StudyBench, a_rig, judged, kinds, only
from task_benches import TaskBench

from plugpull.checks import Judgement
from plugpull.checks.collector import Collector
from plugpull.history import events as ev
from plugpull.load import array_baseline, array_cells, array_tasks
from plugpull.load.array_designs import ArrayCell, member_size
from plugpull.load.tasks import FioTask
from plugpull.studies import array_rates, rebuilds
from plugpull.studies.arrays import data_members
from plugpull.studies.stripes import stripe_knee
from plugpull.targets.array import RaidLevel

Truth = Mapping[tuple[str, str], float]
"""By level and mode: the share of the expected rate that an array has."""


def _arrays(
    truth: Truth | None = None,
    *,
    disks: int = 4,
    limit: float | None = None,
    noise: float = 0.01,
    seed: object = 0,
    baseline: bool = True,
    table: dict[str, Any] | None = None,
    states: Mapping[str, Mapping[str, str]] | None = None,
) -> Judgement:
    """Disks of 2 MB/s, below a limit in MB/s that they share, and one array of each level and number of them."""
    rig = a_rig([2.0] * disks, *([(range(disks), limit)] if limit else []), noise=noise, seed=seed)
    bench = StudyBench(rig, array_baseline(rig.names) if baseline else (), repeats=3, table=table or {})
    at = max(event.at or 0.0 for event in bench.events) + 5.0
    draw = random.Random(f"{seed}")
    for number, cell in enumerate(array_cells(disks), 1):
        name = f"array{number}"
        bench.events.append(_made(name, cell, rig.names[: cell.members], at))
        values = {"array_state": "clean", "sync_action": "idle", "degraded": "0"} | dict(
            (states or {}).get(cell.level, {})
        )
        bench.events.append(ev.ArrayState(at=at + 0.5, array=name, kname="md127", values=values, members={}))
        share = min(2.0, (limit or 1e9) / cell.members) * MB

        def figures(
            task: FioTask[str], disk: str, repeat: int, _: random.Random, cell: ArrayCell = cell, share: float = share
        ) -> ev.FioFigures:
            part = (truth or {}).get((cell.level, task.mode), 1.0)
            rate = part * share * data_members(cell.level, cell.members) * draw.gauss(1.0, noise)
            return ev.FioFigures(bytes=4 << 20, seconds=(4 << 20) / rate, requests=64)

        tasks = TaskBench(rig.names, array_tasks(name, cell), figures, begin=at + 1.0, length=1.0)
        late = [one for one in tasks.events if (one.at or 0.0) > at]
        bench.events += late
        at = max(event.at or 0.0 for event in late) + 1.0
    return judged(bench, array_rates(rig.names))


def _made(name: str, cell: ArrayCell, members: tuple[str, ...], at: float) -> ev.ArrayMade:
    return ev.ArrayMade(
        at=at, array=name, kname="md127", uuid="u", level=cell.level, members=members, spare=0, size=64 << 20,
        component=4 << 20, chunk=cell.chunk,
    )  # fmt: skip


def test_arrays_that_are_as_fast_as_their_members_allow_are_not_named() -> None:
    found = _arrays()
    assert (found.findings, found.unknowns, found.conclusions) == ((), (), ())
    cells = {
        (one.parameters["level"], one.parameters["members"], one.parameters["chunk"]) for one in found.measurements
    }
    assert cells == {(cell.level, cell.members, cell.chunk) for cell in array_cells(4)}
    assert {one.name for one in found.measurements} == {"write array", "read array"}


def test_an_array_that_reads_far_too_slowly_is_below_expectation() -> None:
    """R09: a RAID 10 that reads at a fraction of what one of its disks does."""
    found = _arrays({("raid10", "read"): 0.1})
    assert {kind for kind, _ in kinds(found)} == {"below-expectation"}
    assert {subject for _, subject in kinds(found)} == {
        "raid10 of disk1, disk2, disk3",
        "raid10 of disk1, disk2, disk3, disk4",
    }
    assert found.findings == (), "what is the matter with it is not known"
    one = found.conclusions[0]
    assert one.value == pytest.approx(-0.9, abs=0.02)
    assert "reads" in one.text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"sync_action": "resync"}, "md did a resync of array"),
        ({"sync_action": "recover"}, "md did a recover of array"),
        ({"sync_action": "check"}, "md did a check of array"),
        ({"degraded": "1"}, "was degraded while the"),
    ],
)
def test_an_array_that_is_rebuilt_in_the_background_is_not_below_expectation(values: dict[str, str], said: str) -> None:
    """A third of the rate is then no fault of the array."""
    slow = {("raid5", "read"): 0.3, ("raid5", "write"): 0.3}
    assert {one.kind for one in _arrays(slow).conclusions} == {"below-expectation"}
    found = _arrays(slow, states={"raid5": values})
    assert found.conclusions == ()
    assert found.unknowns
    assert all(said in doubt for doubt in found.unknowns), found.unknowns
    assert not [one for one in found.measurements if one.parameters["level"] == "raid5"]


def test_an_array_at_rest_is_measured_as_usual() -> None:
    found = _arrays(states={"raid5": {"sync_action": "frozen"}})
    assert (found.findings, found.unknowns, found.conclusions) == ((), (), ())


def test_an_array_behind_a_bottleneck_is_as_fast_as_that_allows() -> None:
    """A02: four disks behind one adapter. A RAID 5 of them cannot be faster than three quarters of the adapter."""
    assert {kind for kind, _ in kinds(_arrays(limit=2.5))} == {"knee", "ceiling"}


@pytest.mark.parametrize(("disks", "limit"), [(6, 5.0), (6, 7.6), (4, 4.4), (3, 2.6)])
def test_a_stripe_of_more_and_more_disks_has_its_knee_with_each_chunk(disks: int, limit: float) -> None:
    """F02: disks of 2 MB/s behind one adapter; the rate of RAID 0 grows up to it."""
    found = _arrays(disks=disks, limit=limit)
    knees = [one for one in found.conclusions if one.kind == "knee"]
    assert [one.subject for one in knees] == [f"raid0, {chunk} KiB chunks" for chunk in (16, 64, 256)] * 2
    assert [one.value for one in knees] == pytest.approx([limit / 2.0] * 6, rel=0.1)
    ceilings = [one.value for one in found.conclusions if one.kind == "ceiling"]
    assert ceilings == pytest.approx([limit * MB] * 6, rel=0.05)
    assert knees[0].evidence[0].startswith("1 disk, without an array: ")


def test_an_array_that_costs_the_dut_more_and_more_has_no_knee() -> None:
    """Each disk adds a tenth less than the one before."""
    alone = [[2 * MB, 2.01 * MB, 1.99 * MB]] * 6
    falling = {
        count: [2 * MB * sum(0.9**n for n in range(count)) * (1 + n / 100) for n in range(3)] for count in (2, 3, 4, 6)
    }
    said = Collector(array_rates(("disk1",)), ("disk1",))
    stripe_knee("write", 65536, alone, falling, said)
    assert not said.conclusions
    different = [[2 * MB] * 3, [1 * MB] * 3, [2 * MB] * 3]
    flat = {2: [2 * MB] * 3, 3: [2 * MB] * 3}
    stripe_knee("write", 65536, different, flat, said)
    assert not said.conclusions, "it is the slow member"
    stripe_knee("write", 65536, [[2 * MB, 2.01 * MB]] * 3, flat, said)
    assert [one.kind for one in said.conclusions] == ["knee", "ceiling"]


def test_a_stripe_that_is_slow_and_still_grows_has_no_knee() -> None:
    """Requests of 16 KiB that take 60 ms each, as measured. One disk without an array has longer requests, and so is
    faster than two: no hinge has that shape."""
    rates = {count: [rate * MB * (1 + n / 100) for n in range(3)] for count, rate in ((2, 1.0), (4, 2.0))}
    said = Collector(array_rates(("disk1",)), ("disk1",))
    stripe_knee("write", 16384, [[1.4 * MB, 1.41 * MB, 1.39 * MB]] * 4, rates, said)
    assert not said.conclusions


@pytest.mark.parametrize(
    ("expected", "accused"),
    [
        ({"level": "raid0", "members": 2, "expect": {"write_at_least": 6 * MB}}, 3),
        ({"level": "raid0", "members": 2, "expect": {"write_at_least": 3 * MB, "read_at_most": 5 * MB}}, 0),
        ({"level": "raid0", "members": 3, "expect": {"write_at_least": 9 * MB}}, 0),
        ({"level": "raid1", "expect": {"read_at_most": 1 * MB}}, 1),
    ],
)
def test_the_rig_file_can_expect_rates_of_arrays(expected: dict[str, Any], accused: int) -> None:
    """Each of two disks has 2 MB/s, and a RAID 0 has three chunk sizes."""
    found = _arrays(disks=2, table={"array": [expected]})
    assert len(found.findings) == accused
    assert all(expected["level"] in one.subject for one in found.findings)


def test_members_that_were_not_measured_promise_nothing() -> None:
    found = _arrays({("raid10", "read"): 0.1}, baseline=False)
    assert found.conclusions == ()
    assert "nothing was measured" in found.unknowns


def test_a_parity_array_that_is_somewhat_slower_is_no_surprise() -> None:
    assert _arrays({("raid5", "write"): 0.6, ("raid6", "write"): 0.6}).conclusions == ()


def test_thirty_healthy_rigs_have_no_array_below_expectation() -> None:
    assert not [number for number in range(30) if _arrays(disks=2, noise=0.03, seed=("arrays", number)).conclusions]


@pytest.mark.parametrize(
    ("level", "count", "members"),
    [("raid0", 4, 4), ("raid1", 2, 1), ("raid10", 4, 2), ("raid10", 3, 1.5), ("raid5", 4, 3), ("raid6", 4, 2)],
)
def test_members_worth_of_data(level: str, count: int, members: float) -> None:
    assert data_members(level, count) == members


def test_the_cells_of_a_rig_have_each_level_and_a_chunk_sweep() -> None:
    cells = array_cells(6)
    assert {cell.level for cell in cells} == set(RaidLevel)
    striped = {(cell.members, cell.chunk >> 10) for cell in cells if cell.level is RaidLevel.STRIPED}
    assert striped == {(count, chunk) for count in (2, 3, 4, 6) for chunk in (16, 64, 256)}
    assert array_cells(1) == ()
    assert ArrayCell(RaidLevel.PARITY, 4, 64 << 10).stripe == 3 * 64 << 10
    assert ArrayCell(RaidLevel.MIRRORED, 2, 0).stripe == 64 << 10


def test_an_array_uses_of_its_members_what_is_copied_in_seconds() -> None:
    class Disk:
        size, rate = 64 << 20, 4 << 20

    class Unknown:
        size, rate = 1 << 30, None

    assert member_size([Disk()]) == "8 MiB"
    assert member_size([Unknown()]) == "256 MiB"


# --- rebuilds --------------------------------------------------------------------------------------------------------


def _rebuilt(alone: float, loaded: float, repeats: int = 5, noise: float = 0.01) -> Judgement:
    """A member is added again and again: rebuilds take so many seconds without a load and with one."""
    rig = a_rig([2.0] * 3)
    bench = StudyBench(rig, ())
    draw, at = random.Random(7), 20.0
    values: dict[str, Any] = {"array": "array1", "kname": "md127", "members": {}}
    more: list[ev.Event] = [_made("array1", ArrayCell(RaidLevel.PARITY, 3, 65536), rig.names, at)]
    # As the array was made, it was synchronised: that is not a rebuild.
    more += [_state(at + step, action, values) for step, action in ((0.1, "resync"), (2.0, "idle"))]
    for number in range(repeats):
        for busy in (False, True):
            at += 10.0
            length = (loaded if busy else alone) * draw.gauss(1.0, noise)
            known: dict[str, Any] = {"disk": "array1", "job": f"measure{number}"}
            if busy:
                begun = ev.LoadBegun(at=at - 1, mode="write", block=65536, depth=4, span=1 << 20, **known)
                more += [begun, ev.LoadEnded(at=at + length + 1, asked=True, **known)]
            more += [
                ev.ArrayActed(at=at, array="array1", action="add", disks=("disk3",), ok=True, seconds=0.1),
                _state(at + 0.1, "recover", values),
                _state(at + 0.1 + length, "idle", values),
            ]
    bench.events += more
    last = at + 20.0
    steps = range(round(last / 0.1))
    bench.events += [ev.Sampled(at=round(10.0 + step * 0.1, 6), disks={}) for step in steps if step * 0.1 < last - 10]
    return judged(bench, rebuilds(1 if repeats == 1 else 3))


def _state(at: float, action: str, values: dict[str, Any]) -> ev.ArrayState:
    return ev.ArrayState(at=at, values={"sync_action": action, "array_state": "clean"}, **values)


def test_a_rebuild_that_takes_longer_under_load_is_a_difference() -> None:
    found = _rebuilt(2.0, 5.0)
    one = only(found, "difference")
    assert one.subject == "raid5 of disk1, disk2, disk3"
    assert one.value == pytest.approx(1.5, abs=0.1)
    assert [(one.name, one.n, one.unit) for one in found.measurements] == [
        ("rebuild", 5, "s"),
        ("rebuild under load", 5, "s"),
    ]
    assert [one.value for one in found.measurements] == [pytest.approx(2.0, rel=0.05), pytest.approx(5.0, rel=0.05)]
    assert found.unknowns == ()


def test_rebuilds_that_take_as_long_have_no_difference() -> None:
    found = _rebuilt(2.0, 2.0, noise=0.005)
    assert (found.conclusions, found.unknowns, found.findings) == ((), (), ())


def test_three_rebuilds_are_too_few_to_claim_a_difference() -> None:
    found = _rebuilt(2.0, 5.0, repeats=3)
    assert found.conclusions == ()
    assert "3 repeats are too few to say whether a load makes the rebuild" in found.unknowns[0]
    assert found.unknowns[0].endswith("measure with --repeats 4")


def test_too_few_rebuilds_are_a_doubt() -> None:
    found = _rebuilt(2.0, 5.0, repeats=2)
    assert found.conclusions == ()
    assert (
        "only 2 of 3 measurements of the rebuild of the raid5 of 3 disks, 64 KiB chunks without a load"
        in found.unknowns[0]
    )


def test_one_rebuild_is_an_estimate_if_no_more_were_planned() -> None:
    found = _rebuilt(2.0, 5.0, repeats=1)
    assert [one.n for one in found.measurements] == [1, 1]
    assert (found.conclusions, found.unknowns) == ((), ())


def test_a_rebuild_unlike_the_others_is_not_compared() -> None:
    found = _rebuilt(2.0, 5.0, noise=0.5)
    assert found.conclusions == ()
    assert found.unknowns
