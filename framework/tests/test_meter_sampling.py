"""Meters while a scenario runs: when they are read, what is recorded, and that a meter's failure ends nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from desks import PATIENCE, desk
from meter_doubles import hwmon_tree, opened_meter, wait_until
from rig_builder import a_rig

from plugpull.errors import RigError
from plugpull.history import events as ev
from plugpull.history.counters import Counters
from plugpull.history.reader import read_history
from plugpull.metering import MeterWatch
from plugpull.meters.activity import RecordedActivity
from plugpull.meters.base import Meter, MeterCapabilities, NoReading, PowerReading, PowerValue
from plugpull.meters.sampling import MeterSampling
from plugpull.rig.model import DeclaredMeter
from plugpull.switches.base import Identity

AHEAD, ERROR = 1000.0, 0.003
"""The DUT's clock is so far ahead of the controller's, within this error."""


CAPABILITIES = MeterCapabilities(rate=50.0, age=0.5, resolution=0.1)
IDENTITY = Identity("plug", "a plug", place="the desk")
POWER = PowerValue(14.2, 230.0, 0.06, 100.0)


@dataclass
class Plug:
    """A meter whose readings a test chooses."""

    name: str = "plug"
    capabilities: MeterCapabilities = CAPABILITIES
    identity: Identity = IDENTITY
    power: PowerValue | None = POWER
    why: str = ""
    error: Exception | None = None
    closed: int = 0

    def read(self) -> PowerReading:
        if self.error is not None:
            raise self.error
        return PowerReading(time.monotonic(), 0.51, self.power, self.why)

    def close(self) -> None:
        self.closed += 1


@dataclass
class Record:
    """What was recorded."""

    events: list[ev.Event] = field(default_factory=list)
    grown: threading.Condition = field(default_factory=threading.Condition)

    def add(self, event: ev.Event) -> None:
        with self.grown:
            self.events.append(event)
            self.grown.notify_all()

    def power(self) -> list[ev.PowerSampled]:
        return [event for event in self.events if isinstance(event, ev.PowerSampled)]

    def wait(self, enough: Callable[[], bool]) -> None:
        with self.grown:
            assert self.grown.wait_for(enough, PATIENCE)


def moment(at: float) -> tuple[float, float]:
    return at + AHEAD, ERROR


def declared(**keys: object) -> DeclaredMeter:
    table = {"name": "plug", "driver": "plug", "side": "mains", "disks": ["disk1"], **keys}
    return DeclaredMeter.model_validate(table)


@contextmanager
def sampled(open_one: Callable[[DeclaredMeter], Meter], record: Record, **keys: object) -> Iterator[MeterSampling]:
    sampling = MeterSampling([declared(**keys)], open_one, record.add, moment)
    sampling.start()
    try:
        yield sampling
    finally:
        sampling.stop()
        sampling.stop()


def test_readings_are_recorded_on_the_clock_of_the_dut() -> None:
    plug, record = Plug(), Record()
    begun = time.monotonic()
    with sampled(lambda one: plug, record):
        record.wait(lambda: len(record.power()) >= 3)
    opened = record.events[0]
    assert isinstance(opened, ev.MeterOpened)
    assert (opened.meter, opened.disks, opened.side, opened.rate) == ("plug", ("disk1",), "mains", 50.0)
    assert (opened.device, opened.age, opened.resolution, opened.synthetic) == ("a plug at the desk", 0.5, 0.1, False)
    one = record.power()[0]
    assert (one.watts, one.volts, one.amps, one.joules, one.why) == (14.2, 230.0, 0.06, 100.0, "")
    assert one.at is not None
    assert begun + AHEAD <= one.at <= time.monotonic() + AHEAD
    assert one.uncertainty == pytest.approx(0.51 + ERROR), "of the reading and of the clocks"
    assert plug.closed == 1


def test_they_are_read_as_often_as_the_rig_file_says() -> None:
    record = Record()
    with sampled(lambda one: Plug(), record, rate=4.0):
        record.wait(lambda: len(record.power()) >= 3)
    times = [one.at or 0.0 for one in record.power()]
    assert times[1] - times[0] >= 0.2
    assert isinstance(record.events[0], ev.MeterOpened)
    assert record.events[0].rate == 4.0


def test_a_missing_reading_is_recorded_as_none() -> None:
    record = Record()
    with sampled(lambda one: Plug(power=None, why="it did not answer"), record):
        record.wait(lambda: bool(record.power()))
    one = record.power()[0]
    assert (one.watts, one.why) == (None, "it did not answer")


def test_a_meter_that_cannot_be_opened_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugpull.meters.sampling.RETRY", 0.01)
    tries = []

    def open_one(one: DeclaredMeter) -> Meter:
        tries.append(one)
        if len(tries) < 3:
            raise RigError("cannot open /dev/rfcomm0: it is asleep")
        return Plug()

    record = Record()
    with sampled(open_one, record):
        record.wait(lambda: any(one.watts for one in record.power()))
    assert [one.why for one in record.power()[:2]] == ["cannot open /dev/rfcomm0: it is asleep"] * 2
    assert not any(one.watts is not None for one in record.power()[:2])


def test_a_driver_that_fails_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugpull.meters.sampling.RETRY", 0.01)
    plugs = [Plug(error=ZeroDivisionError("in the driver")), Plug()]
    left, record = list(plugs), Record()
    with sampled(lambda one: left.pop(0), record):
        record.wait(lambda: any(one.watts for one in record.power()))
    assert "its driver failed: ZeroDivisionError" in record.power()[0].why
    assert [plug.closed for plug in plugs] == [1, 1]


def test_a_history_that_cannot_be_written_ends_the_reading() -> None:
    plug = Plug()

    def full(event: ev.Event) -> None:
        raise RigError("cannot write the history")

    sampling = MeterSampling([declared()], lambda one: plug, full, moment)
    sampling.start()
    sampling.stop()
    assert not any(thread.is_alive() for thread in sampling._threads)


# --- in a scenario ------------------------------------------------------------------------------------------------


def test_the_meters_of_a_rig_are_in_the_history(tmp_path: Path) -> None:
    real = hwmon_tree(tmp_path, 0, "ina226", "6-0040", power1_input=2_000_000, update_interval=100)
    rig = a_rig("desk", "local").controller().disk("disk1", serial="S-1", scratch=True)
    rig = rig.table(
        "meter",
        name="chip",
        driver="hwmon",
        side="usb",
        disks=["disk1"],
        chip="ina226",
        root=str(tmp_path / "class/hwmon"),
    )
    with desk(tmp_path, rig=rig.text) as bench:
        watch = MeterWatch(bench.context)
        watch.start(virtual=False)
        assert bench.wait_for(ev.PowerSampled).watts == 2.0
        (real / "power1_input").write_text("")
        bench.wait_for(ev.PowerSampled, of=lambda event: event.watts is None)
        watch.stop()
        watch.stop()
        count = len(bench.recorded(ev.PowerSampled))
    text = (tmp_path / "history.jsonl").read_text()
    assert '"type":"power"' in text
    assert '"watts":0' not in text, "a missing value is left out, and is not 0"
    assert read_history(tmp_path / "history.jsonl").skipped_lines == 0
    assert count == text.count('"type":"power"')


def test_a_rig_without_meters_is_left_alone(tmp_path: Path) -> None:
    with desk(tmp_path) as bench:
        watch = MeterWatch(bench.context)
        watch.start(virtual=True)
        watch.stop()
        assert bench.recorded(ev.MeterOpened) == []
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("meter ")]


# --- the synthetic meter ------------------------------------------------------------------------------------------


def attached(disk: str, kname: str) -> ev.DiskAttached:
    return ev.DiskAttached(
        at=1.0, disk=disk, kname=kname, diskseq=7, devt="8:0", serial="S", place="0000:00:05.0/1:0", size=1 << 24
    )


def sample(at: float, **written: int) -> ev.Sampled:
    counters = {kname: Counters(7, 0, count, 0, count // 4096, 0, 0, 0) for kname, count in written.items()}
    return ev.Sampled(at=at, disks=counters)


WATTS: dict[str, Any] = {"idle": 4.0, "active": 3.0, "per_rate": 0.5, "startup": 10.0, "startup_seconds": 0.2}


def test_watts_are_computed_from_what_the_disks_do() -> None:
    activity = RecordedActivity()
    for event in (attached("disk1", "sdb"), attached("disk2", "sdc"), sample(1.0, sdb=0, sdc=0)):
        activity.hear(event)
    wait_until(time.monotonic() + 0.25)
    activity.hear(sample(1.5, sdb=1_000_000, sdc=0))
    with opened_meter("virtual", activity=activity, disks=("disk1", "disk2", "disk3"), **WATTS) as meter:
        reading = meter.read()
        assert reading.power is not None
        # disk1 writes 2 MB/s, disk2 does nothing, disk3 is not attached.
        assert reading.power.watts == pytest.approx((4.0 + 3.0 + 0.5 * 2.0) + 4.0 + 0.0)
        assert meter.capabilities.synthetic
        assert "synthetic" in str(meter.identity)
        activity.hear(ev.DiskDetached(at=2.0, disk="disk1", kname="sdb", diskseq=7))
        activity.hear(sample(2.0, sdc=0))
        after = meter.read().power
        assert after is not None
        assert after.watts == pytest.approx(4.0), "disk2 is left, idle"


def test_a_disk_that_was_just_attached_starts() -> None:
    activity = RecordedActivity()
    for event in (sample(1.0), sample(1.1), attached("disk1", "sdb")):
        activity.hear(event)
    with opened_meter("virtual", activity=activity, **WATTS) as meter:
        first = meter.read().power
        assert first is not None
        assert first.watts == pytest.approx(14.0)
        wait_until(time.monotonic() + 0.25)
        later = meter.read().power
        assert later is not None
        assert later.watts == pytest.approx(4.0)


def test_silence_is_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugpull.meters.virtual.STALE", 0.05)
    activity = RecordedActivity()
    with opened_meter("virtual", activity=activity) as meter:
        assert "have not been heard of" in meter.read().why
        activity.hear(sample(1.0))
        activity.hear(sample(1.0))
        assert "have the same time" in meter.read().why
        activity.hear(sample(1.1))
        assert meter.read().power == PowerValue(0.0), "nothing is attached"
        wait_until(time.monotonic() + 0.1)
        assert "last heard of" in meter.read().why


def test_another_disk_of_the_same_name_starts_from_nothing() -> None:
    activity = RecordedActivity()
    activity.hear(attached("disk1", "sdb"))
    activity.hear(sample(1.0, sdb=5_000_000))
    counters = {"sdb": Counters(8, 0, 9_000_000, 0, 1, 0, 0, 0)}
    activity.hear(ev.Sampled(at=1.1, disks=counters))
    _, rates = activity.rates(("disk1",))
    assert rates == {"disk1": (0.0, False)}


def test_a_slow_disk_is_busy_between_two_completed_requests() -> None:
    activity = RecordedActivity()
    activity.hear(attached("disk1", "sdb"))
    for at in (1.0, 1.1):
        activity.hear(ev.Sampled(at=at, disks={"sdb": Counters(7, 0, 4096, 0, 1, 0, 4, 0)}))
    with opened_meter("virtual", activity=activity, **{**WATTS, "startup": 0.0}) as meter:
        power = meter.read().power
        assert power is not None
        assert power.watts == pytest.approx(4.0 + 3.0), "four requests are in flight, and none was completed"


def test_without_a_run_there_is_nothing_to_compute() -> None:
    with pytest.raises(RigError, match="exist only during a run"), opened_meter("virtual"):
        pass
    with pytest.raises(NoReading):
        RecordedActivity().rates(("disk1",))
