"""Targets: the disks below them, the cuts that reach them, their identity, and their counters."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from plugpull.dut.agent.disks import Refused, open_scratch
from plugpull.dut.conversation.link import AgentGone, GuardRefused
from plugpull.errors import RigError, UsageError
from plugpull.history import events as ev
from plugpull.integrity.patterns import Stamped, Writing, extents_for, flushed_writes
from plugpull.integrity.writing.filled import RunningReads
from plugpull.integrity.writing.load import RunningStamps
from plugpull.integrity.writing.session import StampRunner
from plugpull.load.load import RunningLoad
from plugpull.load.patterns import Pattern, fio_write, sequential_read, sequential_write, span_of
from plugpull.load.runner import FioRunner
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig
from plugpull.rig.part import Part
from plugpull.rig.topology import Topology
from plugpull.scenario import ScenarioRig
from plugpull.targets.array import Array, RaidLevel
from plugpull.targets.disk import RigDisk
from plugpull.targets.filesystem import Filesystem
from plugpull.targets.on_bench import claim_of, is_usable
from plugpull.targets.target import reached_by, targets_of

UUID = "01020304-0506-0708-090a-0b0c0d0e0f10"
MIB = 1 << 20
TOPOLOGY = Topology(load_rig(rigs_dir() / "quick.toml"))
DISKS = tuple(RigDisk(name, TOPOLOGY) for name in ("disk1", "disk2", "disk3"))
HUB = Part("hub1", TOPOLOGY)
KNAMES = {"disk1": "sda", "disk2": "sdb", "disk3": "sdc"}


def bench(*attached: str, **answers: dict[str, Any]) -> Mock:
    """A context on whose bench these disks are attached, and an agent that gives these answers."""

    def identity(name: str) -> dict[str, object]:
        if name not in attached:
            raise RigError(f"{name} is not attached")
        return {"kname": KNAMES[name], "serial": RigDisk(name, TOPOLOGY).identity}

    context = Mock()
    context.identity = identity
    context.bench.disk_table.attached = lambda name: name if name in attached else None
    nothing = {"at": 1.0, "changed": [], "failed": {}}
    usual = {"timers.settle": nothing, "ports": nothing, **answers}
    context.bench.link.call = Mock(side_effect=lambda action, *_, **__: usual.get(action, {"ok": True}))
    context.now = lambda: 1.0
    context.listener.lost = ""
    context.untimed = nullcontext
    return context


def done(**more: object) -> dict[str, object]:
    return {"ok": True, "seconds": 0.5, "detail": "", **more}


# --- a disk -----------------------------------------------------------------------------------------------------------


def test_a_disk_is_a_target_and_a_part() -> None:
    disk = DISKS[0]
    assert (disk.name, str(disk), disk.disks) == ("disk1", "disk1", ("disk1",))
    assert (disk.identity, disk.size, disk.rate, disk.in_file) == ("QUICK-000001", 64 * MIB, 2 * MIB, False)
    assert disk.cable.name == "disk1.cable"
    claim = claim_of(bench("disk1"), disk)
    assert claim.arguments == {"disk": {"kname": "sda", "serial": "QUICK-000001"}}
    assert claim.counters == ("sda",)


def test_a_disk_that_is_away_cannot_be_claimed() -> None:
    assert not is_usable(bench("disk2"), DISKS[0])
    with pytest.raises(RigError, match="disk1 is not attached"):
        claim_of(bench("disk2"), DISKS[0])


def test_a_load_covers_the_same_on_a_target_as_on_the_disk_of_the_rig_file() -> None:
    table = TOPOLOGY.rig.disk[0]
    assert span_of(DISKS[0], sequential_write) == span_of(table, sequential_write)
    assert extents_for(DISKS[0], flushed_writes) == extents_for(table, flushed_writes)


def test_without_anchors_a_load_covers_the_span_that_it_asks_for() -> None:
    small = Stamped("small", Writing(), span=256 << 10, anchors=False)
    assert extents_for(DISKS[0], small) == ((0, 512),)
    assert extents_for(DISKS[0], replace(small, span=1 << 50)) == ((0, DISKS[0].size // 512 // 8 * 8),)
    span = span_of(DISKS[0], Pattern("small", "write", 4096))
    assert extents_for(DISKS[0], replace(small, span=0)) == ((0, span // 512),)


def test_one_target_or_several() -> None:
    assert targets_of(DISKS[0]) == (DISKS[0],)
    assert targets_of(DISKS) == targets_of(iter(DISKS)) == DISKS
    with pytest.raises(UsageError, match="hub1 is a hub"):
        targets_of([*DISKS, HUB])


# --- a filesystem -----------------------------------------------------------------------------------------------------


def mounted(context: Mock) -> Filesystem:
    return Filesystem(context, DISKS[1], "ext4").__enter__()


def test_a_filesystem_rests_on_its_disk_and_is_recognised_by_its_uuid() -> None:
    context = bench("disk2", mkfs=done(uuid=UUID), mount=done())
    volume = mounted(context)
    assert (volume.name, volume.disks, volume.identity, volume.in_file) == ("disk2", ("disk2",), UUID, True)
    assert reached_by(volume, DISKS[1].cable)
    assert reached_by(volume, HUB.cable)
    assert not reached_by(volume, DISKS[0].cable)
    claim = claim_of(context, volume)
    assert claim.kname == "sdb"
    assert claim.arguments == {
        "disk": {"kname": "sdb", "serial": "QUICK-000002"},
        "directory": "disk2",
        "uuid": UUID,
    }


def test_the_agent_mounts_by_the_uuid_that_it_returned() -> None:
    context = bench("disk2", mkfs=done(uuid=UUID), mount=done())
    mounted(context)
    (_, mount) = context.bench.link.call.call_args_list
    assert mount.args[0] == "mount"
    assert mount.kwargs["uuid"] == UUID
    recorded = [call.args[0] for call in context.recorder.record.call_args_list]
    assert [(event.action, event.disk, event.ok) for event in recorded if isinstance(event, ev.Acted)] == [
        ("mkfs", "disk2", True),
        ("mount", "disk2", True),
    ]


def test_a_filesystem_that_is_not_made_has_no_identity() -> None:
    volume = Filesystem(bench("disk2"), DISKS[1], "ext4")
    with pytest.raises(UsageError, match="the ext4 filesystem on disk2 is not made yet"):
        claim_of(bench("disk2"), volume)


@pytest.mark.parametrize("fails", ["mkfs", "mount"])
def test_a_step_that_fails_is_on_record_and_the_bench_s_fault(fails: str) -> None:
    answers = {"mkfs": done(uuid=UUID), "mount": done(), fails: {"ok": False, "seconds": 1.0, "detail": "no space"}}
    context = bench("disk2", **answers)
    with pytest.raises(RigError, match=f"{fails} on disk2 failed: no space"):
        mounted(context)
    last = context.recorder.record.call_args.args[0]
    assert (last.action, last.ok, last.detail) == (fails, False, "no space")


def test_fio_runs_on_a_file_where_the_target_is_a_filesystem() -> None:
    context = bench("disk1", "disk2", mkfs=done(uuid=UUID), mount=done())
    volume = mounted(context)
    runner = FioRunner(context)
    job = runner.start(volume, [], MIB, kind="load")
    asked = context.bench.link.call.call_args.kwargs
    assert (job.disk, job.kname) == ("disk2", "sdb")
    assert (asked["directory"], asked["uuid"]) == ("disk2", UUID)
    runner.start(DISKS[0], [], MIB, kind="load")
    assert {"directory", "uuid"}.isdisjoint(context.bench.link.call.call_args.kwargs)


def test_stamps_are_not_written_below_a_filesystem() -> None:
    context = bench("disk2", mkfs=done(uuid=UUID), mount=done())
    volume = mounted(context)
    with pytest.raises(UsageError, match="the ext4 filesystem on disk2 is a filesystem, and stamps"):
        StampRunner(context).write(volume, ((0, 8),), Writing(), run=1, session=1, seed=1)
    assert [call.args[0] for call in context.bench.link.call.call_args_list] == ["mkfs", "mount"]


# --- an array ---------------------------------------------------------------------------------------------------------

MIRROR = Array("array1", RaidLevel.MIRRORED, DISKS[:2], UUID, "md127")
STRIPES = Array("array1", RaidLevel.STRIPED, DISKS[:2], UUID, "md127")
PARITY = Array("array1", RaidLevel.PARITY, DISKS, UUID, "md127")


def test_a_cut_of_any_member_reaches_an_array() -> None:
    assert MIRROR.disks == ("disk1", "disk2")
    assert reached_by(MIRROR, DISKS[0].cable)
    assert reached_by(MIRROR, HUB.cable)
    assert not reached_by(MIRROR, DISKS[2].cable)


@pytest.mark.parametrize(
    ("array", "size", "rate"),
    [(MIRROR, 64 * MIB, 1.5 * MIB), (STRIPES, 128 * MIB, 3 * MIB), (PARITY, 128 * MIB, 3 * MIB)],
)
def test_how_much_an_array_holds_and_how_fast(array: Array, size: int, rate: float) -> None:
    assert (array.size, array.rate) == (size, rate)


@pytest.mark.parametrize(
    ("array", "there", "usable"),
    [
        (MIRROR, {"disk1"}, True),
        (MIRROR, set(), False),
        (STRIPES, {"disk1"}, False),
        (STRIPES, {"disk1", "disk2"}, True),
        (PARITY, {"disk1", "disk3"}, True),
        (PARITY, {"disk3"}, False),
    ],
)
def test_an_array_can_do_without_as_many_members_as_its_level_says(array: Array, there: set[str], usable: bool) -> None:
    assert is_usable(bench(*there), array) is usable


def test_the_claim_of_an_array_names_its_uuid_to_the_guard_of_each_member() -> None:
    claim = claim_of(bench("disk1", "disk2"), MIRROR)
    assert claim.counters == ("md127", "sda", "sdb")
    members = claim.disk["members"]
    assert isinstance(members, list)
    assert [(member["kname"], member["made"]) for member in members] == [("sda", [UUID]), ("sdb", [UUID])]
    degraded = claim_of(bench("disk2"), MIRROR)
    assert degraded.counters == ("md127", "sdb")
    with pytest.raises(RigError, match="disk1 is not attached"):
        claim_of(bench("disk2"), STRIPES)


def test_a_guard_that_knows_no_arrays_refuses_the_claim() -> None:
    with pytest.raises(Refused, match="it was not said which serial md127 must have"):
        open_scratch(claim_of(bench("disk1", "disk2"), MIRROR).disk)


def test_an_array_that_is_not_made_has_no_identity() -> None:
    with pytest.raises(UsageError, match="the array array1 is not made yet"):
        claim_of(bench("disk1", "disk2"), Array("array1", RaidLevel.MIRRORED, DISKS[:2]))


@pytest.mark.parametrize(
    ("level", "members"), [(RaidLevel.MIRRORED, 1), (RaidLevel.PARITY, 2), (RaidLevel.DOUBLE_PARITY, 3)]
)
def test_an_array_of_too_few_disks_is_refused(level: RaidLevel, members: int) -> None:
    with pytest.raises(UsageError, match=f"of {members} disks, which needs {members + 1}"):
        Array("array1", level, DISKS[:members])


def test_a_filesystem_on_an_array_rests_on_its_members() -> None:
    context = bench("disk1", "disk2", mkfs=done(uuid="F5"), mount=done())
    volume = Filesystem(context, MIRROR, "ext4").__enter__()
    assert (volume.name, volume.disks, volume.identity) == ("array1", ("disk1", "disk2"), "F5")
    claim = claim_of(context, volume)
    assert claim.counters == ("md127", "sda", "sdb")
    assert (claim.disk["uuid"], claim.filesystem) == (UUID, {"directory": "array1", "uuid": "F5"})
    assert is_usable(bench("disk1"), volume)


# --- in a scenario ----------------------------------------------------------------------------------------------------


def scenario(*attached: str) -> ScenarioRig:
    context = bench(*attached, mkfs=done(uuid=UUID), mount=done(), umount=done())
    context.topology, context.rig, context.promised = TOPOLOGY, TOPOLOGY.rig, {}
    context.random.getrandbits = lambda bits: 7
    return ScenarioRig(context, Mock())


def test_a_scenario_s_disks_are_targets() -> None:
    rig = scenario()
    assert rig.disks == DISKS
    assert rig.survivors_of(HUB.cable) == (DISKS[0],)
    assert type(rig.load(rig.disks, sequential_write)) is RunningStamps
    assert type(rig.load(rig.disks[0], sequential_read)) is RunningReads
    assert type(rig.load(rig.disks, fio_write)) is RunningLoad
    assert rig.stamp(rig.disks[1:], flushed_writes).disks == ("disk2", "disk3")
    assert set(rig.context.promised) == {"disk1", "disk2", "disk3"}


@pytest.mark.parametrize("pattern", [sequential_write, sequential_read, fio_write])
def test_fio_loads_a_filesystem_by_whichever_name(pattern: Pattern) -> None:
    rig = scenario("disk2")
    with rig.filesystem(rig.disks[1]) as volume:
        for load in (rig.load(volume, pattern), rig.load_on_volume(rig.disks[1], pattern)):
            assert type(load) is RunningLoad
            assert load._targets == (volume,)
            assert load._devices == ()


def test_a_load_on_a_filesystem_that_was_never_made_is_a_mistake_of_the_scenario() -> None:
    rig = scenario("disk2")
    with pytest.raises(UsageError, match="this scenario made no filesystem on disk2"):
        rig.load_on_volume(rig.disks[1], fio_write)


def test_the_trigger_of_a_load_on_a_filesystem_names_its_disk() -> None:
    rig = scenario("disk2")
    with rig.filesystem(rig.disks[1]) as volume:
        load = rig.load(volume, fio_write)
        assert load.moved(volume, "1 MiB") == load.moved(rig.disks[1], MIB)


# --- steps under way --------------------------------------------------------------------------------------------------


def acted(context: Mock) -> list[tuple[str, bool, str]]:
    recorded = [call.args[0] for call in context.recorder.record.call_args_list]
    return [(event.action, event.ok, event.detail) for event in recorded if isinstance(event, ev.Acted)]


def test_a_step_runs_while_the_block_does_and_is_on_record_at_its_end() -> None:
    context = bench("disk2", mkfs=done(uuid=UUID), mount=done(), umount=done())
    volume = mounted(context)
    with volume.under_way("umount"):
        pass
    assert not volume.mounted
    with volume.under_way("mount"):
        pass
    assert volume.mounted
    assert [step[:2] for step in acted(context)[2:]] == [("umount", True), ("mount", True)]


@pytest.mark.parametrize(
    ("answer", "still"),
    [
        ({"ok": False, "seconds": 0.5, "detail": "Device or resource busy; held by nobody visible"}, True),
        ({"ok": False, "seconds": 0.0, "detail": "not mounted", "mounted": False}, False),
    ],
)
def test_what_could_not_be_unmounted_is_still_mounted(answer: dict[str, object], still: bool) -> None:
    context = bench("disk2", mkfs=done(uuid=UUID), mount=done(), umount=answer)
    with Filesystem(context, DISKS[1], "ext4") as volume:
        assert not volume.unmount()
        assert volume.mounted is still
    # At the end of its block it is tried once more.
    assert [step[0] for step in acted(context)].count("umount") == 1 + still


def test_a_step_that_is_cut_off_is_on_record_and_nobodys_fault() -> None:
    context = bench("disk2", mkfs=done(uuid=UUID), mount=done(), umount=done())
    volume = mounted(context)
    volume.unmount()
    context.bench.link.call = Mock(side_effect=GuardRefused("sda reports two sizes: 0 and 335544320 bytes"))
    with volume.under_way("mount"):
        pass
    assert not volume.mounted
    assert acted(context)[-1] == ("mount", False, "sda reports two sizes: 0 and 335544320 bytes")


def test_a_step_that_is_cut_off_is_recorded_when_that_happens_and_not_when_power_is_back() -> None:
    context = bench("disk2", mkfs=done(uuid=UUID), mount=done(), umount=done())
    volume = mounted(context)
    volume.unmount()
    context.bench.link.call = Mock(side_effect=GuardRefused("sda reports two sizes: 0 and 335544320 bytes"))
    recorded = threading.Event()
    context.recorder.record.side_effect = lambda event: recorded.set()
    with volume.under_way("mount"):
        assert recorded.wait(60)


def test_a_lost_agent_ends_the_scenario_in_the_middle_of_a_step() -> None:
    context = bench("disk2", mkfs=done(uuid=UUID), mount=done())
    volume = mounted(context)
    context.bench.link.call = Mock(side_effect=AgentGone("the DUT died"))
    with pytest.raises(AgentGone), volume.under_way("umount"):
        pass


# --- what fio's data proves after a cut -------------------------------------------------------------------------------


def edge(point: str, state: ev.PortState) -> ev.Edge:
    switch, port = TOPOLOGY.cut_point(point).switch, TOPOLOGY.cut_point(point).port
    return ev.Edge(cut=1, point=point, switch=switch, port=port, state=state, phase="commanded", error=0.0)


@pytest.mark.parametrize(
    ("edges", "unknown"),
    [
        ((), ()),
        ((edge("disk2.cable", "off"), edge("disk2.cable", "on")), ()),
        ((edge("disk2.power", "off"), edge("disk2.power", "on")), ("disk2",)),
        ((edge("disk2.power", "on"),), ()),
    ],
)
def test_what_fio_wrote_to_a_disk_that_lost_its_power_is_not_compared(
    edges: tuple[ev.Edge, ...], unknown: tuple[str, ...]
) -> None:
    """fio does not record what it flushed, so a completed write lost with the power is not an error of the disk."""
    context = bench("disk1", "disk2", "disk3")
    context.topology = TOPOLOGY
    context.recorder.since = lambda mark: edges
    load = RunningLoad(context, DISKS, fio_write)
    load._jobs = {disk.name: Mock(asked=True, report=Mock(complete=True, written_bytes=64 * MIB)) for disk in DISKS}
    why = {disk.name: load._ranges(disk)[1] for disk in DISKS}
    assert tuple(name for name, said in why.items() if "lost its power" in said) == unknown
    assert all(not said for name, said in why.items() if name not in unknown)
