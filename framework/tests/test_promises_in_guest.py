"""Power cuts under stamped writes: disks that keep their promises and disks that do not, of each one made elsewhere.

nbdkit's own cache filter, killed, is a witness that owes nothing to this project: with ``cache=writeback`` it keeps
what was flushed, with ``cache=unsafe`` it says so and does not (nbdkit-cache-filter(1)).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from guests import Guest, guest
from rig_builder import a_rig

from plugpull.checks import Judgement, nothing_lost
from plugpull.faults import at_random
from plugpull.finding import Finding
from plugpull.history.reader import read_history
from plugpull.integrity.patterns import Stamped, Writing
from plugpull.scenario import ScenarioRig
from plugpull.virtual.firmware import Firmware

pytestmark = pytest.mark.bench

CUTS = 2
PATTERN = Stamped("4 KiB writes, a flush every 48", Writing(flush_writes=48), span=1 << 20)
HEALTHY, LYING = ("healthy", "witness"), ("unsafe", "reordering")
RIG = (
    a_rig("promises")
    .switch("mains", mechanism="mains")
    .stock_controller()
    .table("defect", kind="reordered", disk="reordering")
    .disks(
        *HEALTHY,
        *LYING,
        serial="PROMISE-{n}",
        size="8 MiB",
        cache="512 KiB",
        eviction="random",
        scratch=True,
        power="mains.{n}",
    )
    .text
)


@pytest.fixture(scope="module")
def dut() -> Iterator[Guest]:
    plugin = Firmware._plugin

    def with_witnesses(self: Firmware) -> list[str]:
        modes = {"witness": "writeback", "unsafe": "unsafe"}
        if self.name not in modes:
            return plugin(self)
        return ["--filter=cache", "file", str(self.medium), f"cache={modes[self.name]}"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Firmware, "_plugin", with_witnesses)
        with guest(RIG) as started:
            yield started


@pytest.fixture(scope="module")
def judgement(dut: Guest) -> Judgement:
    rig = ScenarioRig(dut.context)
    with rig.stamp(rig.disks, PATTERN) as load:
        load.settle()
        for number in range(CUTS):
            with rig.cut(*(disk.power for disk in rig.disks), when=at_random(0.2, 0.8)):
                pass
            if number < CUTS - 1:
                load.next_round()
    (story,) = read_history(dut.directory / "history.jsonl").stories
    return nothing_lost().judge(story)


def of(judgement: Judgement, disk: str) -> list[Finding]:
    return [finding for finding in judgement.findings if finding.subject == disk]


@pytest.mark.parametrize("disk", HEALTHY)
def test_a_disk_that_keeps_its_promises_is_not_accused(judgement: Judgement, disk: str) -> None:
    assert judgement.unknowns == ()
    assert of(judgement, disk) == []
    assert judgement.integrity is not None
    result = next(each for each in judgement.integrity.disks if each.disk == disk)
    assert (result.rounds, result.rounds_lost, result.sectors_unjudged) == (CUTS, 0, 0)
    assert result.flushes > CUTS


@pytest.mark.parametrize("disk", LYING)
def test_a_disk_that_breaks_them_is_found_out_and_shown(judgement: Judgement, disk: str) -> None:
    findings = of(judgement, disk)
    assert findings
    assert "durable lost" in findings[0].summary or "stale" in findings[0].summary or "zeroed" in findings[0].summary
    assert judgement.integrity is not None
    result = next(each for each in judgement.integrity.disks if each.disk == disk)
    assert result.first is not None
    assert result.first.expected_hex != result.first.found_hex
    assert result.first.expected.startswith("write ")


def test_what_so_many_cuts_can_say(judgement: Judgement) -> None:
    integrity = judgement.integrity
    assert integrity is not None
    assert integrity.cuts == CUTS * 4
    assert 0 < integrity.cuts_lost <= CUTS * len(LYING)
    assert integrity.loss_bound is not None
    assert integrity.cuts_lost / integrity.cuts < integrity.loss_bound < 1
    assert integrity.durable_lost > 0
