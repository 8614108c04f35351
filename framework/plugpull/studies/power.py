"""The power that disks draw: idle, while 1, 2, 4 and more of them are written and read, at start-up, and per GB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from plugpull.checks.base import Check, Disks, Judgement, disk_names
from plugpull.checks.claims import Claim
from plugpull.checks.collector import Collector
from plugpull.history.events import LoadBegun, PowerSampled
from plugpull.history.story import Story
from plugpull.judging.results import Conclusion, Measurement
from plugpull.measure.steady import LEAST
from plugpull.studies.figures import figure
from plugpull.studies.measured import MeasuredRates, Series, claims_of, missing_of, series_of
from plugpull.studies.power_readings import MeterRecord, meter_records

IDLE = 5.0
"""Seconds before the first load that show what the disks draw while idle. A scenario waits longer before it."""
STARTING = 0.5
"""Seconds before that, in which fio may be starting already."""
BEFORE, AFTER = 15.0, 5.0
"""Seconds around an attachment in which a disk starts: it is announced when it can be used, after it has spun up."""
OFF = 0.5
"""A start was seen only if the power was below this share of its peak before."""
SAME, LOADS = 20, 3
"""A meter is not believed that has the same reading so many times in a row, while so many loads begin and end."""
GIGABYTE = 1e9


@dataclass(frozen=True)
class BusyDisks:
    """The measurements of one mode with the same disks of one meter at work."""

    mode: str
    disks: tuple[str, ...]
    readings: tuple[MeasuredRates, ...]
    planned: int

    @property
    def what(self) -> str:
        return f"{self.mode}, {len(self.disks)} {'stream' if len(self.disks) == 1 else 'streams'}"


class PowerDrawn(Check, frozen=True, tag="power_drawn"):
    """The power that ``disks`` draw is known, as far as meters were read. Watts are figures: they accuse nobody."""

    disks: tuple[str, ...]

    def judge(self, story: Story) -> Judgement:
        said = Collector(self, self.disks)
        said.doubt(missing_of(story))
        records = meter_records(story, self.disks)
        if not records:
            said.doubt(_unopened(story))
        for record in records:
            lie = record.contradiction() or _stuck(story, record)
            said.doubt(f"{record.name} cannot be believed: {lie}" if lie else "")
            if not lie:
                self._meter(story, record, said)
        return said.judgement("; ".join(_short(one) for one in said.conclusions))

    def claims(self, story: Story) -> Iterable[Claim]:
        return claims_of(story)

    def _meter(self, story: Story, record: MeterRecord, said: Collector) -> None:
        about = _about(record)
        idle = _idle(story, record, about, said)
        words = [] if idle is None else [f"idle {idle:.3g} W"]
        for one in _streams(story, record):
            words += _working(record, one, about | ({} if idle is None else {"idle": round(idle, 3)}), said)
        start = _start(story, record)
        if start is not None:
            said.measure(_plain("start-up watts at most", record.name, start, about))
            words.append(f"start-up at most {start:.3g} W")
        if words:
            said.conclude(_conclusion(record, words, said))


def power_drawn(disks: Disks) -> PowerDrawn:
    """The power that these disks draw must be known. Measure it with ``rig.measure(power_design(disks))``, after
    ``rig.wait(seconds=8)`` without a load."""
    return PowerDrawn(disk_names(disks))


# --- one meter ----------------------------------------------------------------------------------------------------


def _about(record: MeterRecord) -> dict[str, str | float]:
    """The conditions of all figures of a meter."""
    about: dict[str, str | float] = {"side": record.meter.side, "behind": ", ".join(record.meter.disks)}
    return about | {"synthetic": "yes"} if record.meter.synthetic else about


def _idle(story: Story, record: MeterRecord, about: dict[str, str | float], said: Collector) -> float | None:
    """The watts in the last seconds before the first load; ``None`` if they are not known."""
    begun = min((event.at for event in story.of(LoadBegun) if event.at is not None), default=None)
    if begun is None:
        return None
    span = record.over(begun - STARTING - IDLE, begun - STARTING)
    if span.reason:
        said.doubt(f"what {record.name} reads without a load is not known: {span.reason}")
        return None
    said.measure(_plain("idle watts", record.name, span.mean, about))
    return span.mean


def _stuck(story: Story, record: MeterRecord) -> str:
    """Why its readings say nothing of its disks: they stay the same from load to load. Empty if they vary."""
    begun = {event.at or 0.0 for event in story.of(LoadBegun) if event.disk in record.meter.disks}
    good = [(one.at or 0.0, one.watts) for one in record.readings if one.watts is not None]
    for watts, run in groupby(good, key=lambda one: one[1]):
        times = [at for at, _ in run]
        if len(times) >= SAME and sum(times[0] < at < times[-1] for at in begun) >= LOADS:
            always = f"it reads {watts:.3g} W for {times[-1] - times[0]:.0f} s whether its disks work or not"
            return f"{always}: it is stuck, its steps are too coarse, or the disks are not behind it"
    return ""


def _streams(story: Story, record: MeterRecord) -> Iterator[BusyDisks]:
    """The measurements in which disks behind the meter were at work, by mode and disks."""
    for series in series_of(story):
        found: dict[tuple[str, ...], list[MeasuredRates]] = {}
        for reading in series.readings:
            behind = tuple(disk for disk in reading.event.disks if disk in record.meter.disks)
            if behind:
                found.setdefault(behind, []).append(reading)
        for disks in sorted(found, key=len):
            yield BusyDisks(series.mode, disks, tuple(found[disks]), _planned(series))


def _planned(series: Series) -> int:
    return min(series.repeats, LEAST)


def _working(record: MeterRecord, one: BusyDisks, about: dict[str, str | float], said: Collector) -> list[str]:
    """Put the watts and the energy per GB of some streams on record; returns them in words."""
    means, highest, energies = [], [], []
    reasons = [reading.spoilt for reading in one.readings if reading.spoilt]
    for reading in one.readings:
        if reading.spoilt:
            continue
        span = record.over(reading.event.begin, reading.event.at or reading.event.begin)
        if span.reason:
            reasons.append(span.reason)
            continue
        means.append(span.mean)
        highest.append(span.highest)
        moved = sum(reading.rates[disk] for disk in one.disks)
        if moved > 0:
            energies.append(span.mean * GIGABYTE / moved)
    if len(means) < one.planned:
        why = f": {reasons[-1]}" if reasons else ""
        said.doubt(f"only {len(means)} measurements of what {record.name} reads ({one.what}) count{why}")
    if not means:
        return []
    parameters = about | {"streams": len(one.disks)}
    mean = figure(f"watts, {one.what}", record.name, means, parameters, "W")
    said.measure(mean)
    said.measure(_plain(f"watts at most, {one.what}", record.name, max(highest), parameters, highest))
    if energies:
        said.measure(figure(f"energy, {one.what}", record.name, energies, parameters, "J/GB"))
    per = f" ({fmean(energies):,.0f} J/GB)" if energies else ""
    return [f"{one.what} {mean.value:.3g} W{per}"]


def _start(story: Story, record: MeterRecord) -> float | None:
    """The highest power around the start of a disk; ``None`` if none was seen to start by a meter that is fast enough.

    A disk that was on already when it was announced did not start. So the power has to rise from much less."""
    peaks = []
    loads = sorted(event.at for event in story.of(LoadBegun) if event.at is not None)
    for attached in story.all_attachments:
        at = attached.at
        if at is None or attached.disk not in record.meter.disks:
            continue
        end = min([at + AFTER, *(begun for begun in loads if begun > at)])
        good = [one for one in record.within(at - BEFORE, end) if one.watts is not None]
        if not good or not record.fast(at - BEFORE, end):
            continue
        peak = max(good, key=lambda one: one.watts or 0.0)
        before = [one.watts or 0.0 for one in good if (one.at or 0.0) < (peak.at or 0.0)]
        if before and min(before) < OFF * (peak.watts or 0.0):
            peaks.append(peak.watts or 0.0)
    return max(peaks, default=None)


# --- words --------------------------------------------------------------------------------------------------------


def _plain(
    name: str, subject: str, value: float, parameters: dict[str, str | float], samples: Sequence[float] = ()
) -> Measurement:
    """A figure without an interval."""
    return Measurement(
        name=name,
        subject=subject,
        value=round(value, 3),
        unit="W",
        n=max(1, len(samples)),
        samples=tuple(round(one, 3) for one in samples),
        parameters=dict(parameters),
    )


def _conclusion(record: MeterRecord, words: Sequence[str], said: Collector) -> Conclusion:
    meter = record.meter
    side = "before the power supply, with its losses" if meter.side == "mains" else "on the USB side"
    how = f"computed from what the disks do, not measured ({meter.driver} meter)" if meter.synthetic else side
    watts = [one for one in said.measurements if one.subject == record.name and one.name.startswith("watts, ")]
    highest = max(watts, key=lambda one: one.value, default=None)
    return Conclusion(
        kind="power",
        subject=", ".join(meter.disks),
        text=f"{', '.join(meter.disks)} by {record.name}, {how}: {'; '.join(words)}.",
        value=None if highest is None else highest.value,
        unit="" if highest is None else "W",
        evidence=(
            f"{meter.device or meter.driver}: {meter.rate:g} readings per second, values up to {meter.age:g} s old"
            + (f", in steps of {meter.resolution:g} W" if meter.resolution else ""),
        ),
    )


def _unopened(story: Story) -> str:
    """Why no meter was read."""
    why = next((one for one in reversed(story.of(PowerSampled)) if one.why), None)
    return "no meter was read" + (f": {why.meter}: {why.why}" if why is not None else "")


def _short(one: Conclusion) -> str:
    return f"at most {one.value:g} W on average" if one.value is not None else one.kind
