"""How fast a disk is read that was plugged in again."""

from __future__ import annotations

import msgspec
import pytest
from stories import DISKS, RIG, VICTIM, healthy

from plugpull.checks import returned
from plugpull.checks.base import Judgement
from plugpull.history import events as ev
from plugpull.history.story import Story

RATE = 1 << 20
SIZE = 2 << 20
BEGUN = 26.0
REQUESTS = 64


def read_back(seconds: float, of_others: float = 2.0, status: int = 0, **disk: object) -> Judgement:
    """2 MiB of each disk are read, at 1 MiB/s, after the victim came back. It keeps each disk busy for so long."""
    bench, took = healthy(until=32.0), {"sdb": seconds, "sdc": of_others, "sdd": of_others}
    for name, busy in zip(DISKS, took.values(), strict=True):
        job = f"readback-{name}"
        bench.add(ev.ReadBackBegun(at=BEGUN, disk=name, job=job, session=1, extents=((0, SIZE // 512),)))
        bench.add(ev.ReadBackEnded(at=BEGUN + busy, disk=name, job=job, received=0, status=status))
    story = bench.story()
    events = tuple(_read_by(event, took) if isinstance(event, ev.Sampled) else event for event in story.events)
    tables = [one | {"rate": RATE} | (disk if one["name"] == VICTIM else {}) for one in RIG["disk"]]
    return returned(VICTIM).judge(Story(story.begun, events, rig=RIG | {"disk": tables}))


def _read_by(sample: ev.Sampled, took: dict[str, float]) -> ev.Sampled:
    rows = {}
    for kname, row in sample.disks.items():
        passed = min(max(0.0, (sample.at or 0.0) - BEGUN), took[kname])
        read = row.read_bytes + int(SIZE * passed / took[kname])
        requests = row.reads + int(REQUESTS * passed / took[kname])
        rows[kname] = row._replace(read_bytes=read, reads=requests, busy_ms=row.busy_ms + int(1000 * passed))
    return msgspec.structs.replace(sample, disks=rows)


def test_a_disk_that_is_read_at_its_rate_is_fine() -> None:
    assert read_back(2.3).findings == ()


def test_a_disk_that_is_slower_since_it_came_back_is_named() -> None:
    (finding,) = read_back(4.0).findings
    assert finding.summary == (
        "disk1 was read at 0.52 MB/s after it came back, and its rate is 1.05 MB/s: 2.0 times slower (limit 1.8)"
    )
    assert finding.evidence == ("2097152 bytes kept it busy for 4.00 s",)


@pytest.mark.parametrize(
    ("seconds", "others", "status", "disk"),
    [
        pytest.param(4.0, 3.8, 0, {}, id="a slow host slows them all"),
        pytest.param(4.0, 2.0, 1, {}, id="it was not read to its end"),
        pytest.param(4.0, 2.0, 0, {"rate": None}, id="it has no rate"),
        pytest.param(4.0, 2.0, 0, {"latency": 0.03}, id="each of its requests takes a while by itself"),
    ],
)
def test_what_else_makes_reading_slow(seconds: float, others: float, status: int, disk: dict[str, object]) -> None:
    assert read_back(seconds, others, status, **disk).findings == ()


def test_a_disk_with_a_latency_that_is_slower_still_is_named() -> None:
    (finding,) = read_back(8.0, latency=0.03).findings
    assert "disk1 was read at 0.26 MB/s after it came back, and its rate is 0.5" in finding.summary
