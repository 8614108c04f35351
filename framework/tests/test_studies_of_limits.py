"""The study of more and more disks: knees, ceilings, collapses, and who shares what."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from study_benches import MB, StudyBench, a_rig, judged, kinds, only
from synthetic_rigs import SyntheticRig

from plugpull.checks.base import Judgement
from plugpull.load import sequential_write
from plugpull.load.designs import Condition, leave_one_out, more_and_more, part_by_part, scaling_design
from plugpull.studies import alone, scaling

HUBBED = {
    "controller": [{"name": "usb", "ports": 15}],
    "hub": [{"name": "hub1", "at": "usb.2", "ports": 4}],
    "disk": [
        {"name": "disk1", "at": "usb.1", "serial": "S-disk1", "scratch": True},
        {"name": "disk2", "at": "hub1.1", "serial": "S-disk2", "scratch": True},
        {"name": "disk3", "at": "hub1.2", "serial": "S-disk3", "scratch": True},
    ],
}


def test_four_disks_on_a_capped_controller_have_their_knee_and_ceiling() -> None:
    """A controller just under 29 MB/s shared by four disks, a tenth as fast."""
    rig = a_rig([2.67] * 4, (range(4), 2.85))
    found = judged(StudyBench(rig, scaling_design(rig.names)), scaling(rig.names))
    assert (found.findings, found.unknowns) == ((), ())
    assert sorted({kind for kind, _ in kinds(found)}) == ["ceiling", "knee", "shared-bottleneck"]
    for one in found.conclusions:
        if one.kind == "knee":
            assert one.value == pytest.approx(2.85 / 2.67, rel=0.10)
            assert one.subject == "controller usb"
        else:
            assert one.value == pytest.approx(2.85 * MB, rel=0.05)
        assert one.kind != "ceiling" or "each has an equal share" in one.text
    assert "they are the disks below controller usb" in only(found, "shared-bottleneck").text
    names = [(one.name, one.parameters["disks"]) for one in found.measurements if one.name == "read together"]
    assert names == [("read together", 2), ("read together", 3), ("read together", 4)]


def test_two_disks_behind_a_hub_share_it_and_the_third_does_not() -> None:
    rig = a_rig([2.0, 1.5, 1.5], ((1, 2), 2.0))
    found = judged(StudyBench(rig, scaling_design(rig.names), table=HUBBED), scaling(rig.names))
    one = only(found, "shared-bottleneck")
    assert one.subject == "disk2, disk3"
    assert one.value == pytest.approx(2.0 * MB, rel=0.05)
    assert "they are the disks below hub hub1, as the rig file has it" in one.text
    limits = [each for each in found.conclusions if each.kind in ("knee", "ceiling")]
    assert {each.subject for each in limits} == {"hub hub1"}
    assert len(limits) == 4, "writing and reading"
    for each in limits:
        assert each.value == pytest.approx(2.0 / 1.5 if each.kind == "knee" else 2.0 * MB, rel=0.05)


def test_a_bottleneck_that_the_rig_file_does_not_explain_is_named_so() -> None:
    rig = a_rig([2.0, 2.0, 2.0], ((0, 2), 2.5))
    found = judged(StudyBench(rig, scaling_design(rig.names), table=HUBBED), scaling(rig.names))
    one = only(found, "shared-bottleneck")
    assert one.subject == "disk1, disk3"
    assert (
        "the rig file does not explain that: controller usb has them all, but disk2 below it is not slowed" in one.text
    )


def test_a_limit_of_a_dut_that_was_busy_all_the_time_is_not_that_of_its_controller() -> None:
    rig = a_rig([2.0] * 4, (range(4), 4.0))
    found = judged(StudyBench(rig, scaling_design(rig.names), cpus=(0.2, 1.9)), scaling(rig.names))
    assert found.conclusions == ()
    assert "the DUT's processors were 95% busy then: they may be the limit" in found.unknowns[0]
    half = judged(StudyBench(rig, scaling_design(rig.names), cpus=(0.2, 1.0)), scaling(rig.names))
    assert {kind for kind, _ in kinds(half)} == {"knee", "ceiling", "shared-bottleneck"}
    assert half.unknowns == ()


@pytest.mark.parametrize(("disks", "members"), [(4, (0, 1, 2, 3)), (5, (1, 2, 4))])
def test_a_bottleneck_that_only_reading_reaches_is_named_too(disks: int, members: tuple[int, ...]) -> None:
    writing_rig, reading_rig = a_rig([1.0] * disks), a_rig([2.0] * disks, (members, 3.0), seed=1)

    class ByMode(StudyBench):
        def _trial(self, number: int, planned: int, repeat: int, condition: Condition[str], *rest: Any) -> Any:
            self.rig = reading_rig if condition.pattern.mode == "read" else writing_rig
            return super()._trial(number, planned, repeat, condition, *rest)

    found = judged(ByMode(writing_rig, scaling_design(writing_rig.names)), scaling(writing_rig.names))
    one = only(found, "shared-bottleneck")
    assert one.subject == ", ".join(writing_rig.names[i] for i in members)
    assert one.value == pytest.approx(3.0 * MB, rel=0.05)
    assert "share a bottleneck: together they read " in one.text
    assert "write at once as fast as one by one" in only(found, "no-bottleneck").text


def test_a_limit_of_reading_that_two_sets_of_disks_may_share_is_unknown() -> None:
    """disk1 has a larger share of the hub, and loses nothing. When reading, no disk is left out to see whose limit it
    is; when writing, it shows."""
    names = [f"disk{number}" for number in range(1, 6)]
    disks = [PlacedDisk.at(name, *(["hub1"] if number < 3 else []), "usb") for number, name in enumerate(names)]
    table = {
        "hub": [{"name": "hub1", "at": "usb.10", "ports": 8}],
        "disk": [
            {"name": disk, "at": f"{disk.above[0]}.{n}", "serial": f"S-{disk}", "scratch": True}
            for n, disk in enumerate(disks, 1)
        ],
    }
    fair = a_rig([2.0] * 5)
    rig = SyntheticRig([2.0 * MB] * 5, [(range(3), 4.0 * MB)], noise=0.01, seed="whose", weights=[2, 1, 1, 1, 1])

    class OnlyReading(StudyBench):
        def _trial(self, number: int, planned: int, repeat: int, condition: Condition[str], *rest: Any) -> Any:
            self.rig = rig if condition.pattern.mode == "read" else fair
            return super()._trial(number, planned, repeat, condition, *rest)

    found = judged(OnlyReading(fair, scaling_design(disks), table=table), scaling(names))
    assert kinds(found) == [("no-bottleneck", "disk1, disk2, disk3, disk4, disk5")], "of writing"
    (doubt,) = found.unknowns
    assert "disk2, disk3 slow each other down when they read, but it cannot be said what shares a limit" in doubt
    assert doubt.endswith(": these alone, or disk1, disk2, disk3 with unequal shares")
    both = judged(StudyBench(rig, scaling_design(disks), table=table), scaling(names))
    assert {one.subject for one in both.conclusions} == {"hub hub1", "disk1, disk2, disk3"}
    assert both.unknowns == ()


@pytest.mark.parametrize(("fast", "seconds"), [(2.0, 1.3), (0.4, 1.2)])
def test_nothing_is_concluded_from_rates_that_change_in_each_measurement(fast: float, seconds: float) -> None:
    """The drives' caches take the beginning of each write at twice the rate, or the disks start slowly."""
    rig = a_rig([2.0] * 4, (range(4), 5.2))
    changing = StudyBench(rig, scaling_design(rig.names), pace=lambda disk, at: fast if at < seconds - 0.5 else 1.0)
    for check in (scaling(rig.names), alone(rig.names)):
        found = judged(changing, check)
        assert found.conclusions == ()
        doubts = [one for one in found.unknowns if " changes in each measurement, from " in one]
        assert [one.split()[1] for one in doubts] == ["write", "read"]
    before = StudyBench(rig, scaling_design(rig.names), pace=lambda disk, at: fast if at < -0.1 else 1.0)
    assert {kind for kind, _ in kinds(judged(before, scaling(rig.names)))} == {"knee", "ceiling", "shared-bottleneck"}


def test_disks_that_share_nothing_have_no_bottleneck() -> None:
    rig = a_rig([2.0, 1.5, 1.5])
    found = judged(StudyBench(rig, scaling_design(rig.names), repeats=3), scaling(rig.names))
    assert kinds(found) == [("no-bottleneck", "disk1, disk2, disk3")]
    assert found.unknowns == ()


def test_noise_makes_it_unknown() -> None:
    rig = a_rig([2.0, 2.0], noise=0.12, seed=4)
    found = judged(StudyBench(rig, scaling_design(rig.names), repeats=3), scaling(rig.names))
    assert found.unknowns
    assert not {kind for kind, _ in kinds(found)} & {"knee", "ceiling", "shared-bottleneck", "collapse"}


def test_one_disk_does_not_scale() -> None:
    rig = a_rig([2.0])
    assert scaling(rig.names).judge(StudyBench(rig, more_and_more(rig.names)).story()).unknowns


class PlacedDisk(str):
    """The name of a disk that knows the hubs and the controller above it."""

    above: tuple[str, ...] = ()

    @classmethod
    def at(cls, name: str, *above: str) -> PlacedDisk:
        disk = cls(name)
        disk.above = above
        return disk


def test_a_hub_inside_a_controller_is_measured_by_itself_and_has_a_limit_of_its_own() -> None:
    """The controller's 2.6 MB/s hide the hub's 1.5 MB/s, except where the hub's disks work and the others rest."""
    disks = [PlacedDisk.at(f"disk{n}", *(["hub1"] if n > 2 else []), "usb") for n in (1, 2, 3, 4)]
    parts = {one.disks for one in part_by_part(disks, sequential_write)}
    assert parts == {("disk3", "disk4"), ("disk1", "disk2")}
    table = {
        "hub": [{"name": "hub1", "at": "usb.3", "ports": 4}],
        "disk": [
            {"name": disk, "at": f"hub1.{n}" if n > 2 else f"usb.{n}", "serial": f"S-{disk}", "scratch": True}
            for n, disk in enumerate(disks, 1)
        ],
    }
    rig = a_rig([1.0] * 4, (range(4), 2.6), ((2, 3), 1.5))
    found = judged(StudyBench(rig, scaling_design(disks), table=table), scaling(rig.names))
    shared = {one.subject: one.value for one in found.conclusions if one.kind == "shared-bottleneck"}
    assert list(shared) == ["disk1, disk2, disk3, disk4", "disk3, disk4"]
    assert list(shared.values()) == pytest.approx([2.6 * MB, 1.5 * MB], rel=0.03)
    knees = [(one.subject, one.value) for one in found.conclusions if one.kind == "knee"]
    assert [subject for subject, _ in knees] == ["controller usb", "hub hub1"] * 2, "written and read"
    assert [value for _, value in knees] == pytest.approx([2.6, 1.5] * 2, rel=0.05)


def test_three_limits_inside_each_other_are_found_although_a_wrong_set_explains_more_at_first() -> None:
    """Of seven disks four are below a hub, and two of these below another one."""
    rates = [9.95, 10.22, 10.24, 9.76, 9.92, 10.01, 10.31]
    above = {0: ["hub2", "hub1"], 1: ["hub1"], 2: ["hub2", "hub1"], 6: ["hub1"]}
    disks = [PlacedDisk.at(f"disk{n + 1}", *above.get(n, []), "usb") for n in range(7)]
    table = {
        "hub": [{"name": "hub1", "at": "usb.10", "ports": 8}, {"name": "hub2", "at": "hub1.8", "ports": 8}],
        "disk": [
            {"name": disk, "at": f"{disk.above[0]}.{n}", "serial": f"S-{disk}", "scratch": True}
            for n, disk in enumerate(disks, 1)
        ],
    }
    limits = [((0, 1, 2, 3, 4, 5, 6), 47.5), ((0, 1, 2, 6), 27.65), ((0, 2), 14.36)]
    rig = a_rig(rates, *limits, seed=("hub3 write", 0, 5))
    found = judged(StudyBench(rig, scaling_design(disks), table=table), scaling(rig.names))
    ceilings = [one for one in found.conclusions if one.kind == "ceiling"]
    assert [one.subject for one in ceilings] == ["controller usb", "hub hub1", "hub hub2"] * 2
    assert [one.value for one in ceilings] == pytest.approx([47.5 * MB, 27.65 * MB, 14.36 * MB] * 2, rel=0.05)


def test_disks_that_do_not_share_fairly_have_their_bottleneck_too() -> None:
    """disk1 takes what it wants of 3 MB/s, and the others have the rest."""
    rig = a_rig([2.0] * 3)
    rates = {1: [2.0], 2: [2.0, 1.0], 3: [2.0, 0.5, 0.5]}
    draw = random.Random("greedy")

    def run(working: Sequence[int]) -> dict[str, float]:
        shares = rates[len(working)] if 0 in working else [min(2.0, 3.0 / len(working))] * len(working)
        return {
            rig.names[i]: share * MB * draw.gauss(1, 0.01) for i, share in zip(sorted(working), shares, strict=True)
        }

    rig.run = run  # type: ignore[method-assign]
    found = judged(StudyBench(rig, scaling_design(rig.names)), scaling(rig.names))
    one = only(found, "shared-bottleneck")
    assert one.subject == "disk1, disk2, disk3"
    assert one.value == pytest.approx(3.0 * MB, rel=0.03)
    assert [each.value for each in found.conclusions if each.kind == "ceiling"] == [pytest.approx(3 * MB, rel=0.05)] * 2


@pytest.mark.parametrize("repeats", [3, 5])
def test_a_disk_that_has_more_of_a_ceiling_than_each_of_the_others_shares_it_too(repeats: int) -> None:
    """When all read, disk1 loses only 4 %, and the others half: it has two shares of the ceiling, and they one each."""
    rates = [10.0 * MB] * 4
    rig = SyntheticRig(rates, [(range(4), 24.0 * MB)], noise=0.015, seed="heavy", weights=[2, 1, 1, 1])
    found = judged(StudyBench(rig, scaling_design(rig.names), repeats=repeats), scaling(rig.names))
    assert only(found, "shared-bottleneck").subject == "disk1, disk2, disk3, disk4"
    limits = [one for one in found.conclusions if one.kind == "ceiling"]
    assert [one.value for one in limits] == [pytest.approx(24.0 * MB, rel=0.05)] * 2, "writing and reading"
    assert all("their shares range from 4." in one.text for one in limits)
    assert [one.value for one in found.conclusions if one.kind == "knee"] == [pytest.approx(2.4, rel=0.10)] * 2


@pytest.mark.parametrize("seed", [5, 6])
@pytest.mark.parametrize("repeats", [3, 5])
def test_unequal_shares_are_not_taken_for_limits_inside_each_other(repeats: int, seed: int) -> None:
    """When reading, no disk of the hub is left out: several sets of disks inside each other explain unequal shares."""
    names = [f"disk{number}" for number in range(1, 6)]
    disks = [PlacedDisk.at(name, *(["hub1"] if number < 4 else []), "usb") for number, name in enumerate(names)]
    table = {
        "hub": [{"name": "hub1", "at": "usb.10", "ports": 8}],
        "disk": [
            {"name": disk, "at": f"{disk.above[0]}.{n}", "serial": f"S-{disk}", "scratch": True}
            for n, disk in enumerate(disks, 1)
        ],
    }
    rates = [10.0 * MB, 10.1 * MB, 9.9 * MB, 10.0 * MB, 6.0 * MB]
    rig = SyntheticRig(rates, [(range(4), 24.0 * MB)], noise=0.015, seed=("shares", seed), weights=[1.7, 1, 1, 1, 1])
    found = judged(StudyBench(rig, scaling_design(disks), repeats=repeats, table=table), scaling(rig.names))
    ceilings = [one for one in found.conclusions if one.kind == "ceiling"]
    assert [one.subject for one in ceilings] == ["hub hub1"] * 2
    assert [one.value for one in ceilings] == [pytest.approx(24.0 * MB, rel=0.05)] * 2


def with_four_at_once_slow(rig: SyntheticRig) -> Judgement:
    original = rig.run
    rig.run = lambda working: {  # type: ignore[method-assign]
        name: rate * (0.375 if len(working) > 3 else 1.0) for name, rate in original(working).items()
    }
    return judged(StudyBench(rig, scaling_design(rig.names)), scaling(rig.names))


def test_from_a_collapse_on_no_limit_is_concluded() -> None:
    """Three disks reach 6 MB/s, and four only 3: what four reach is not a ceiling that three share."""
    rig = a_rig([2.0] * 4)
    found = with_four_at_once_slow(rig)
    assert {kind for kind, _ in kinds(found)} == {"collapse"}
    assert {one.value for one in found.conclusions} == {4}
    text = re.search(r"with 4 disks at once: from ([\d.]+) MB/s to ([\d.]+) MB/s", found.conclusions[0].text)
    assert text is not None
    assert [float(rate) for rate in text.groups()] == pytest.approx([6.0, 3.0], rel=0.02)


def test_the_ceiling_before_a_collapse_has_not_the_shares_of_after_it() -> None:
    """Four disks of 2 MB/s have 4 MB/s together, of which three take all; four at once have 1.5 MB/s."""
    rig = a_rig([2.0] * 4, (range(4), 4.0))
    found = with_four_at_once_slow(rig)
    ceilings = [one for one in found.conclusions if one.kind == "ceiling"]
    assert [one.value for one in ceilings] == pytest.approx([4 * MB] * 2, rel=0.03)
    assert not [one for one in ceilings if "share" in one.text]
    assert [one.value for one in found.conclusions if one.kind == "knee"] == pytest.approx([2.0] * 2, rel=0.05)


# --- designs -------------------------------------------------------------------------------------------------


def test_the_design_of_a_scaling_study_has_no_condition_twice() -> None:
    design = scaling_design(("a", "b", "c"))
    assert len(design) == len(set(design)) == 12
    assert {(frozenset(one.disks), one.pattern.mode) for one in leave_one_out(("a", "b", "c"))} >= {
        (frozenset("ab"), "write"),
        (frozenset("bc"), "read"),
        (frozenset("c"), "write"),
    }
