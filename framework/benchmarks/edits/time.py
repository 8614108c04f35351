"""Puts time into a recorded run: what comes later comes later still, and loads go on at their pace meanwhile."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Self

from benchmarks.edits.changes import ChangedEvents
from benchmarks.edits.events import Event, Which, of, time_of

COUNTERS = (1, 2, 3, 4, 7)
"""Places of the cumulative counters in a sample's row: bytes and requests read and written, milliseconds busy."""


IDLE = 4
"""A disk whose last samples are the same is idle, whatever it did before."""


@dataclass(frozen=True)
class DelayedEvents(ChangedEvents):
    """Samples keep their counters cumulative."""

    def wait(self, since: float, seconds: float, keep: Which = lambda event: False, *, running: bool = True) -> Self:
        """What comes after ``since`` comes ``seconds`` later, apart from what is to be kept. Loads go on at their pace
        meanwhile, and are sampled; unless the DUT is not ``running``, starved by its host: then nothing happens."""
        events, filled = [], False
        fill = self._fill(since, seconds) if running else []
        gained = self._gained_in(since, seconds) if running else _Gained({}, [0.0, 0.0], 0.0, {})
        for event in self.events:
            at = time_of(event)
            if event["type"] in ("scenario.begin", "run.begin") or at is None or at <= since or keep(event):
                events.append(event)
                continue
            if not filled:
                events += fill
                filled = True
            events.append(_later(event, since, seconds, gained))
        return replace(self, events=tuple(events))

    def _gained(self, since: float, seconds: float) -> dict[tuple[str, int], list[float]]:
        """How much each attachment's counters grow in ``seconds`` at the pace they have at ``since``."""
        rows: dict[tuple[str, int], list[tuple[float, list[int]]]] = {}
        for sample in self.all(of("sample")):
            for kname, row in sample["disks"].items():
                rows.setdefault((kname, row[0]), []).append((sample["at"], row))
        gained = {}
        for key, series in rows.items():
            before = [one for one in series if one[0] <= since]
            after = [one for one in series if one[0] > since]
            if not before or not after:
                gained[key] = [0.0] * 8
                continue
            begin = next((one for one in before if one[0] >= since - 1.5), before[-1])
            if all(one[1][:5] == before[-1][1][:5] for one in before[-IDLE:]):
                begin = before[-1]
            end = before[-1] if before[-1] is not begin else after[0]
            span = max(end[0] - begin[0], 1e-9)
            gained[key] = [(two - one) * seconds / span for one, two in zip(begin[1], end[1], strict=True)]
        return gained

    def _live(self, at: float) -> set[tuple[str, int]]:
        """The attachments that are on the kernel's list at ``at``."""
        came = {(e["kname"], e["diskseq"]) for e in self.all(of("disk.attached")) if e["at"] <= at}
        return came - {(e["kname"], e["diskseq"]) for e in self.all(of("disk.detached")) if e["at"] <= at}

    def _fill(self, since: float, seconds: float) -> list[Event]:
        """What the agent would have sent meanwhile: samples, and answers about the clock."""
        samples = self.all(of("sample"))
        before = [event for event in samples if event["at"] <= since]
        if not before:
            return []
        last = before[-1]
        after = next((event for event in samples if event["at"] > since), last)
        live, rates = self._live(since), self._gained(since, 1.0)
        rows = {k: row for k, row in (after["disks"] | last["disks"]).items() if (k, row[0]) in live}
        step = median(two - one for one, two in pairwise(event["at"] for event in samples))
        seconds_of_cpu = self._jiffies(since)
        made: list[Event] = []
        clocks = [event for event in self.all(of("clock")) if event["at"] <= since]
        for i in range(1, int(seconds / step)):
            passed = i * step
            at = round(since + passed, 6)
            row = {kname: _grown(old, rates.get((kname, old[0]), [0.0] * 8), passed) for kname, old in rows.items()}
            whole = i % max(1, round(1.0 / step)) == 0
            cpu = [int(start + rate * passed) for start, rate in seconds_of_cpu] if whole else [0, 0]
            made.append({"type": "sample", "at": at, "disks": row, "cpu": cpu})
            if clocks and whole:
                made.append(clocks[-1] | _clock_later(clocks, passed + since - clocks[-1]["at"]))
        looks = [event for event in self.all(of("dut.activity")) if event["at"] <= since]
        made += [looks[-1] | {"at": round(since + 2.0 * i, 6)} for i in range(1, int(seconds / 2.0)) if looks]
        return sorted(made, key=lambda event: float(event["at"]))

    def _gained_in(self, since: float, seconds: float) -> _Gained:
        clocks = [event for event in self.all(of("clock")) if event["at"] <= since]
        ran = 0.0
        if clocks and clocks[-1].get("ran") is not None:
            ran = _clock_later(clocks, seconds).get("ran", clocks[-1]["ran"]) - clocks[-1]["ran"]
        counters = self._gained(since, seconds)
        live = {event["disk"]: (event["kname"], event["diskseq"]) for event in self.all(of("disk.attached"))}
        live = {disk: key for disk, key in live.items() if key in self._live(since)}
        loads = {disk: (counters[key][1], counters[key][2]) for disk, key in live.items() if key in counters}
        return _Gained(counters, [rate * seconds for _, rate in self._jiffies(since)], ran, loads)

    def _jiffies(self, since: float) -> list[tuple[float, float]]:
        """(at ``since``, per second) of the busy and of all jiffies of the DUT."""
        known = [(event["at"], event["cpu"]) for event in self.all(of("sample")) if any(event.get("cpu", (0, 0)))]
        if len(known) < 2:
            return [(0.0, 0.0), (0.0, 0.0)]
        place = min(max(1, bisect_right([at for at, _ in known], since)), len(known) - 1)
        (at1, cpu1), (at2, cpu2) = known[place - 1], known[place]
        rates = [(two - one) / (at2 - at1) for one, two in zip(cpu1, cpu2, strict=True)]
        return [(one + rate * (since - at1), rate) for one, rate in zip(cpu1, rates, strict=True)]

    def removed_late(self, seconds: float) -> Self:
        """The first victim's removal, and all that comes after it, comes later; the switch answers as it did."""
        return self.wait(self.gone_at(self.victim) - 0.002, seconds, keep=of("edge", state="off", cut=1))

    def returned_late(self, seconds: float) -> Self:
        """What comes after the first cut was restored comes later; the switch answers as it did."""
        return self.wait(self.on_at + 0.05, seconds, keep=of("edge", state="on", cut=1))


def _grown(row: list[int], rates: list[float], seconds: float) -> list[int]:
    return [int(value + rates[i] * seconds) if i in COUNTERS else value for i, value in enumerate(row)]


def _clock_later(clocks: list[Event], seconds: float) -> Event:
    """The fields of an exchange of clocks ``seconds`` after the last of these."""
    one, last = clocks[max(0, len(clocks) - 2)], clocks[-1]
    later = {"at": round(last["at"] + seconds, 6), "controller": round(last["controller"] + seconds, 6)}
    if last.get("ran") is not None and last["at"] > one["at"]:
        later["ran"] = last["ran"] + seconds * (last["ran"] - one["ran"]) / (last["at"] - one["at"])
    return later


@dataclass(frozen=True)
class _Gained:
    """What grew in time that was put in: counters per attachment, jiffies, CPU seconds of the host, and what the load
    on each disk read and wrote."""

    counters: dict[tuple[str, int], list[float]]
    jiffies: list[float]
    ran: float
    loads: dict[str, tuple[float, float]]


def _later(event: Event, since: float, seconds: float, gained: _Gained) -> Event:
    event = dict(event)
    for field in ("at", "asked_at", "sent", "last_heard", "controller"):
        value = event.get(field)
        if isinstance(value, int | float) and (field == "controller" or value > since):
            event[field] = round(value + seconds, 6)
    if event["type"] == "sample":
        rows = {}
        for kname, row in event["disks"].items():
            grown = gained.counters.get((kname, row[0]), [0.0] * 8)
            rows[kname] = [int(value + grown[place]) if place in COUNTERS else value for place, value in enumerate(row)]
        event["disks"] = rows
        if any(event.get("cpu", (0, 0))):
            event["cpu"] = [int(value + more) for value, more in zip(event["cpu"], gained.jiffies, strict=True)]
    elif event["type"] in ("load.end", "outside.counted") and event["disk"] in gained.loads:
        for name, more in zip(("read_bytes", "written_bytes"), gained.loads[event["disk"]], strict=True):
            if event.get(name):
                event[name] += int(more)
    elif event["type"] == "clock" and event.get("ran") is not None:
        event["ran"] = event["ran"] + gained.ran
    elif event["type"] == "scenario.end":
        event["seconds"] = event["seconds"] + seconds
    return event
