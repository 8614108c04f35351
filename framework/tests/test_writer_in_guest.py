"""The writer on a real kernel and an emulated disk: through the agent, cut in the middle, and read back."""

from __future__ import annotations

import base64
from collections import Counter

import pytest
from guests import Guest, guest
from rig_builder import a_rig
from writers import found_of, records_of

from plugpull.history import events as ev
from plugpull.integrity.oracle import ledger, readback
from plugpull.integrity.oracle.stamp import device_number
from plugpull.integrity.patterns import Writing
from plugpull.integrity.writing.session import StampRunner
from plugpull.targets.disk import RigDisk

pytestmark = pytest.mark.bench

RIG = (
    a_rig("stamped")
    .switch(ports=1)
    .stock_controller()
    .disk("disk1", serial="STAMP-1", size="16 MiB", scratch=True, cable="cables.1")
    .text
)
EXTENTS = ((0, 8192), (32760, 8))
RUN, DEVICE = 0x1234567890ABCDEF, device_number("STAMP-1")


def stream(dut: Guest, kind: type[ev.LedgerPart] | type[ev.ReadBackPart]) -> bytes:
    parts = [event for event in dut.recorder.since() if isinstance(event, kind)]
    data = b""
    for part in parts:
        assert part.offset == len(data), "a gap"
        data += base64.b64decode(part.data)
    return data


def test_a_cable_is_cut_while_stamps_are_written() -> None:
    with guest(RIG) as dut:
        runner, disk = StampRunner(dut.context), RigDisk("disk1", dut.context.topology)
        how = Writing(block=8, depth=16, order="random", flush_writes=64, fua=5)
        job = runner.write(disk, EXTENTS, how, run=RUN, session=1, seed=5, fill=2048)
        assert dut.context.wait_for(lambda event: job.tally.writes > 500, 60.0, since=0)
        dut.unplug("cables", "1")
        assert job.ended.wait(60.0)
        records = records_of(stream(dut, ev.LedgerPart), ledger.SIZES)
        counts = Counter(kind for kind, _ in records)
        *_, (last, ended) = records
        assert last == ledger.LedgerKind.ENDED
        _, reason, error, issued, completed, flushes, flushed, _ = ledger.ENDED.unpack(ended)
        assert (reason, error != 0) == (ledger.Reason.ERROR, True)
        assert counts[ledger.LedgerKind.ISSUED] == issued == completed == counts[ledger.LedgerKind.COMPLETED] > 500
        assert counts[ledger.LedgerKind.FLUSH_SUBMITTED] == flushes >= flushed > 5

        dut.plug("cables", "1")
        back = runner.read(disk, EXTENTS, run=RUN, session=1)
        runner.finish([back], 60.0)
        (end,) = [event for event in dut.recorder.since() if isinstance(event, ev.ReadBackEnded)]
        assert (end.status, end.stuck, end.why) == (0, False, "")
        found = found_of(stream(dut, ev.ReadBackPart))
        assert sum(run.sectors for run in found) == 8200
        assert {run.kind for run in found} == {readback.ContentKind.STAMPED}
        assert max(run.number for run in found) <= (1 << 32) + issued
