"""One recorded run as a list of plain JSON events, and the small edits that mutations are composed of.

``Tape`` is immutable: every edit returns a new one. Times are DUT seconds. Kernel messages are numbered again after an
edit, so that only an edit that means to leaves a gap in ``seq``; samples keep their counters cumulative.
"""

from __future__ import annotations

import json
import lzma
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

Event = dict[str, Any]
Which = Callable[[Event], bool]

COUNTERS = (1, 2, 3, 4, 7)
"""Places of the cumulative counters in a sample's row: bytes and requests read and written, milliseconds busy."""
INFLIGHT = {"read": 5, "write": 6}
SEALS = ("seal",)
"""Events that only say that the lines before them are as they were written."""


def of(kind: str, **fields: Any) -> Which:
    """The events of a type whose fields have these values. A missing field counts as ``None``."""
    return lambda event: event["type"] == kind and all(event.get(name) == value for name, value in fields.items())


def either(*which: Which) -> Which:
    return lambda event: any(one(event) for one in which)


def time_of(event: Event) -> float | None:
    at = event.get("at")
    return at if isinstance(at, int | float) else None


def between(begin: float, end: float) -> Which:
    """The events with a time in [begin, end)."""
    return lambda event: (at := time_of(event)) is not None and begin <= at < end


def both(*which: Which) -> Which:
    return lambda event: all(one(event) for one in which)


@dataclass(frozen=True)
class Names:
    """What the kernel called one attachment of a disk."""

    kname: str
    diskseq: int
    usb: str
    """``2-2``, the port's path."""
    address: str
    """``1:0:0:0``, the SCSI address."""
    devpath: str
    """The USB device's path below ``/sys``."""


@dataclass(frozen=True)
class Tape:
    """The events of a whole run, from ``run.begin`` to ``run.end``."""

    events: tuple[Event, ...]

    # --- what is on it ------------------------------------------------------------------------------------------------

    def all(self, which: Which) -> list[Event]:
        return [event for event in self.events if which(event)]

    def first(self, which: Which) -> Event:
        return next(event for event in self.events if which(event))

    def last(self, which: Which) -> Event:
        return next(event for event in reversed(self.events) if which(event))

    @property
    def rig(self) -> dict[str, Any]:
        rig: dict[str, Any] = self.first(of("run.begin"))["rig"]
        return rig

    @property
    def disks(self) -> tuple[str, ...]:
        return tuple(disk["name"] for disk in self.rig["disk"])

    @property
    def victims(self) -> tuple[str, ...]:
        """All disks that any cut takes away."""
        return tuple(dict.fromkeys(disk for cut in self.all(of("cut.armed")) for disk in cut["victims"]))

    @property
    def victim(self) -> str:
        return self.victims[0]

    @property
    def survivors(self) -> tuple[str, ...]:
        return tuple(disk for disk in self.disks if disk not in self.victims)

    @property
    def survivor(self) -> str:
        return self.survivors[0]

    def edge(self, state: str, phase: str = "commanded", cut: int = 1) -> Event:
        return self.first(of("edge", state=state, phase=phase, cut=cut))

    @property
    def off_at(self) -> float:
        return float(self.edge("off")["at"])

    @property
    def on_at(self) -> float:
        return float(self.edge("on")["at"])

    def attached(self, disk: str, nth: int = 0) -> Event:
        return self.all(of("disk.attached", disk=disk))[nth]

    def detached(self, disk: str, nth: int = 0) -> Event:
        return self.all(of("disk.detached", disk=disk))[nth]

    def gone_at(self, disk: str) -> float:
        return float(self.detached(disk)["at"])

    @property
    def quiet_at(self) -> float:
        """Just after the first cut was made: its victims gone, its switch read back."""
        done = either(of("disk.detached"), of("edge", state="off", cut=1))
        return max(float(e["at"]) for e in self.all(done) if self.off_at <= e["at"] < self.off_at + 1.0) + 0.02

    def back_at(self, disk: str) -> float:
        return float(self.attached(disk, 1)["at"])

    @property
    def settled_at(self) -> float:
        return float(self.first(of("load.settled"))["at"])

    @property
    def judged_at(self) -> float:
        """When the scenario asked for its judgement; where it did not, when it was over."""
        asked = self.all(of("judge")) or self.all(either(of("residue"), of("scenario.end")))
        return float(asked[-1]["at"])

    @property
    def stop_at(self) -> float:
        """When the first load was asked to end."""
        return min(float(event["asked_at"]) for event in self.all(of("load.end")) if event.get("asked_at"))

    def names(self, disk: str, nth: int = 0) -> Names:
        event = self.attached(disk, nth)
        parts = event["sysfs"].split("/")
        usb = [part for part in parts if "-" in part and ":" not in part and part[0].isdigit()][-1]
        address = next(part for part in parts if part.count(":") == 3)
        return Names(event["kname"], event["diskseq"], usb, address, "/".join(parts[2 : parts.index(usb) + 1]))

    def declared(self, disk: str) -> dict[str, Any]:
        return next(one for one in self.rig["disk"] if one["name"] == disk)

    # --- general edits ------------------------------------------------------------------------------------------------

    def drop(self, which: Which) -> Tape:
        return Tape(tuple(event for event in self.events if not which(event)))._numbered(self)

    def lose(self, which: Which) -> Tape:
        """Like ``drop``, with gaps where kernel messages were."""
        return Tape(tuple(event for event in self.events if not which(event)))

    def change(self, which: Which, **fields: Any) -> Tape:
        return self.map(which, lambda event: event | fields)

    def map(self, which: Which, edit: Callable[[Event], Event]) -> Tape:
        return Tape(tuple(edit(dict(event)) if which(event) else event for event in self.events))

    def double(self, which: Which) -> Tape:
        events: list[Event] = []
        for event in self.events:
            events += [event, dict(event)] if which(event) else [event]
        return Tape(tuple(events))

    def insert(self, *events: Event) -> Tape:
        """Each behind the last event that is not later, inside the first scenario."""
        tape = list(self.events)
        for event in events:
            begin = next(i for i, one in enumerate(tape) if one["type"] == "scenario.begin") + 1
            end = next((i for i, one in enumerate(tape) if one["type"] == "scenario.end"), len(tape))
            at = float(event["at"])
            place = next((i for i in range(begin, end) if (time_of(tape[i]) or -1.0) > at), end)
            tape.insert(place, event)
        return Tape(tuple(tape))._numbered(self)

    def append(self, *events: Event, before: str = "run.end") -> Tape:
        """Between two scenarios, or behind the last: before the last event of a type."""
        place = max(i for i, event in enumerate(self.events) if event["type"] == before)
        return Tape((*self.events[:place], *events, *self.events[place:]))

    def retime(self, which: Which, by: float) -> Tape:
        """Moves events in time and to their new place."""
        moved = [event | {"at": event["at"] + by} for event in self.events if which(event)]
        return Tape(tuple(event for event in self.events if not which(event))).insert(*moved)._numbered(self)

    def end_at(self, at: float) -> Tape:
        """Nothing the agent sent is on record after ``at``; what the controller did is."""
        sent = ("sample", "kernel", "uevent", "disk.attached", "disk.detached", "clock")
        return self.drop(lambda event: event["type"] in sent and (time_of(event) or 0.0) > at)

    def _numbered(self, before: Tape) -> Tape:
        """Kernel messages numbered without a gap, if they were before."""
        seqs = [event["seq"] for event in before.events if event["type"] == "kernel" and "seq" in event]
        whole = all(two - one in (1, 0) or two < one for one, two in pairwise(seqs))
        if not seqs or not whole:
            return self
        events, last, restart = [], None, None
        for event in self.events:
            if event["type"] == "scenario.begin":
                last, restart = None, None
            if event["type"] == "kernel" and "seq" in event:
                restart = event["seq"] if restart is None else restart
                last = restart if last is None else last + 1
                event = event | {"seq": last}
            events.append(event)
        return Tape(tuple(events))

    # --- the kernel log -----------------------------------------------------------------------------------------------

    def say(self, at: float, *texts: str, level: int = 6, **fields: Any) -> Tape:
        """The kernel prints these lines, a tenth of a millisecond apart."""
        lines = [
            {"type": "kernel", "at": round(at + i / 1e4, 6), "text": text, "level": level, "seq": 0} | fields
            for i, text in enumerate(texts)
        ]
        return self.insert(*lines)

    def hush(self, text: str, begin: float = float("-inf"), end: float = float("inf")) -> Tape:
        """The kernel did not print the lines with ``text`` in them."""
        return self.drop(
            lambda event: event["type"] == "kernel" and text in event["text"] and begin <= event["at"] < end
        )

    # --- time ---------------------------------------------------------------------------------------------------------

    def wait(self, since: float, seconds: float, keep: Which = lambda event: False, *, running: bool = True) -> Tape:
        """What comes after ``since`` comes ``seconds`` later, apart from what is to be kept. Loads go on at their pace
        meanwhile, and are sampled; unless the DUT is not ``running``, starved by its host: then nothing happens."""
        events, filled = [], False
        fill = self._fill(since, seconds) if running else []
        gained = self._gained_in(since, seconds) if running else _Gained({}, [0.0, 0.0], 0.0)
        for event in self.events:
            at = time_of(event)
            if event["type"] in ("scenario.begin", "run.begin") or at is None or at <= since or keep(event):
                events.append(event)
                continue
            if not filled:
                events += fill
                filled = True
            events.append(_later(event, since, seconds, gained))
        return Tape(tuple(events))

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
        return made

    def _gained_in(self, since: float, seconds: float) -> _Gained:
        clocks = [event for event in self.all(of("clock")) if event["at"] <= since]
        ran = 0.0
        if clocks and clocks[-1].get("ran") is not None:
            ran = _clock_later(clocks, seconds).get("ran", clocks[-1]["ran"]) - clocks[-1]["ran"]
        return _Gained(self._gained(since, seconds), [rate * seconds for _, rate in self._jiffies(since)], ran)

    def _jiffies(self, since: float) -> list[tuple[float, float]]:
        """(at ``since``, per second) of the busy and of all jiffies of the DUT."""
        known = [(event["at"], event["cpu"]) for event in self.all(of("sample")) if any(event.get("cpu", (0, 0)))]
        if len(known) < 2:
            return [(0.0, 0.0), (0.0, 0.0)]
        place = min(max(1, bisect_right([at for at, _ in known], since)), len(known) - 1)
        (at1, cpu1), (at2, cpu2) = known[place - 1], known[place]
        rates = [(two - one) / (at2 - at1) for one, two in zip(cpu1, cpu2, strict=True)]
        return [(one + rate * (since - at1), rate) for one, rate in zip(cpu1, rates, strict=True)]

    def removed_late(self, seconds: float) -> Tape:
        """The first victim's removal, and all that comes after it, comes later; the switch answers as it did."""
        return self.wait(self.gone_at(self.victim) - 0.002, seconds, keep=of("edge", state="off", cut=1))

    # --- samples ------------------------------------------------------------------------------------------------------

    def keys(self, disk: str) -> set[tuple[str, int]]:
        return {(event["kname"], event["diskseq"]) for event in self.all(of("disk.attached", disk=disk))}

    def pace(self, disk: str, factor: Callable[[float], float]) -> Tape:
        """Every increment of the disk's counters is multiplied by ``factor`` of its time; the ends of its loads show
        what was moved then."""
        keys = self.keys(disk)
        last: dict[tuple[str, int], list[int]] = {}
        made: dict[tuple[str, int], list[float]] = {}
        events = []
        for event in self.events:
            if event["type"] == "sample":
                rows = dict(event["disks"])
                for kname, row in rows.items():
                    if (kname, row[0]) not in keys:
                        continue
                    old = last.get((kname, row[0]), row)
                    new = list(made.get((kname, row[0]), row))
                    for place in COUNTERS:
                        new[place] += (row[place] - old[place]) * factor(event["at"])
                    new[5], new[6] = row[5], row[6]
                    last[kname, row[0]], made[kname, row[0]] = row, new
                    rows[kname] = [int(value) for value in new]
                event = event | {"disks": rows}
            events.append(event)
        return Tape(tuple(events))._ends_fit(disk, self)

    def _ends_fit(self, disk: str, before: Tape) -> Tape:
        def moved(tape: Tape, place: int, until: float) -> int:
            keys = tape.keys(disk)
            return max(
                (
                    row[place]
                    for event in tape.all(of("sample"))
                    if event["at"] <= until
                    for kname, row in event["disks"].items()
                    if (kname, row[0]) in keys
                ),
                default=0,
            )

        def fit(event: Event) -> Event:
            for field, place in (("read_bytes", 1), ("written_bytes", 2)):
                was = moved(before, place, event["at"])
                if event.get(field) and was:
                    event[field] = int(event[field] * moved(self, place, event["at"]) / was)
            return event

        return self.map(of("load.end", disk=disk), fit)

    def freeze(self, disk: str, begin: float, end: float) -> Tape:
        """The disk moves nothing between two times, with requests in flight."""
        mode = "read" if any("read" in load["mode"] for load in self.all(of("load.begin", disk=disk))) else "write"
        keys = self.keys(disk)

        def hang(event: Event) -> Event:
            rows = {kname: list(row) for kname, row in event["disks"].items()}
            for kname, row in rows.items():
                if (kname, row[0]) in keys:
                    row[INFLIGHT[mode]] = max(4, row[INFLIGHT[mode]])
            return event | {"disks": rows}

        return self.pace(disk, lambda at: 0.0 if begin < at <= end else 1.0).map(
            both(of("sample"), between(begin, end)), hang
        )

    def stand_still(self, disk: str, at: float, seconds: float) -> Tape:
        """The disk moves nothing for ``seconds`` that are put in at ``at``."""
        return self.wait(at, seconds).freeze(disk, at, at + seconds)

    def blind(self, disk: str, begin: float = float("-inf"), end: float = float("inf")) -> Tape:
        """The disk is missing from the samples."""
        keys = self.keys(disk)

        def edit(event: Event) -> Event:
            rows = {kname: row for kname, row in event["disks"].items() if (kname, row[0]) not in keys}
            return event | {"disks": rows}

        return self.map(both(of("sample"), between(begin, end)), edit)

    # --- disks --------------------------------------------------------------------------------------------------------

    def attached_at(self, disk: str, at: float) -> Event:
        """The disk's last announcement up to ``at``."""
        return [event for event in self.all(of("disk.attached", disk=disk)) if event["at"] <= at][-1]

    def leave(self, disk: str, at: float, back: float | None = None) -> Tape:
        """A disk goes at ``at`` and, if ``back`` is given, comes again then, as the kernel records it."""
        was = self.attached_at(disk, at)
        names = self.names(disk)
        seq = max(event["diskseq"] for event in self.all(of("disk.attached"))) + 1
        tape = self._swept(was, at, float("inf") if back is None else back, seq)
        tape = tape.insert(*_going(was, names, at)).say(at - 0.02, f"usb {names.usb}: USB disconnect, device number 3")
        if back is None:
            return tape
        add = was | {"at": back, "diskseq": seq}
        path = was["sysfs"].removeprefix("/sys")
        uevent = {
            "type": "uevent",
            "at": back,
            "action": "add",
            "subsystem": "block",
            "devpath": path,
            "devtype": "disk",
        }
        begin = max(at + 0.01, back - 1.2)
        tape = tape.say(begin, f"usb {names.usb}: new SuperSpeed USB device number 9 using xhci_hcd")
        tape = tape.say(back - 0.02, f"sd {names.address}: [{names.kname}] Attached SCSI disk", level=5)
        return tape.insert(uevent, add)

    def _swept(self, was: Event, begin: float, end: float, seq: int) -> Tape:
        """One attachment's counters are gone from ``begin`` on; those of ``seq`` begin at ``end``."""

        def edit(event: Event) -> Event:
            rows = dict(event["disks"])
            row = rows.pop(was["kname"], None)
            if row is None or row[0] != was["diskseq"]:
                return event
            if event["at"] >= end:
                rows[was["kname"]] = [seq, 12288, 0, 3, 0, 0, 0, 4]
            return event | {"disks": rows}

        return self.map(both(of("sample"), between(begin, float("inf"))), edit)

    def returned_late(self, seconds: float) -> Tape:
        """What comes after the first cut was restored comes later; the switch answers as it did."""
        return self.wait(self.on_at + 0.05, seconds, keep=of("edge", state="on", cut=1))

    def renamed(self, disk: str, nth: int, kname: str) -> Tape:
        """One attachment has another kernel name, wherever it is on record."""
        was = self.attached(disk, nth)
        since, old = was["at"] - 1.0, was["kname"]

        def edit(event: Event) -> Event:
            event = dict(event)
            if event["type"] == "disk.attached" and event == was:
                event |= {"kname": kname, "sysfs": was["sysfs"].rpartition("/")[0] + f"/{kname}"}
            elif event["type"] == "sample":
                rows = event["disks"].items()
                event["disks"] = {kname if (k, row[0]) == (old, was["diskseq"]) else k: row for k, row in rows}
            elif event["type"] == "kernel":
                event["text"] = event["text"].replace(f"[{old}]", f"[{kname}]")
            elif event["type"] == "uevent" and event["devpath"].endswith(f"/block/{old}"):
                event["devpath"] = event["devpath"].removesuffix(old) + kname
            elif event["type"] == "disk.detached" and event["diskseq"] == was["diskseq"]:
                event["kname"] = kname
            return event

        return self.map(between(since, float("inf")), edit)


def _going(was: Event, names: Names, at: float) -> list[Event]:
    path = {"devpath": names.devpath, "disks": [was["disk"]]}
    gone = {"disk": was["disk"], "kname": was["kname"], "diskseq": was["diskseq"]}
    return [
        {"type": "disk.detached", "at": at} | gone,
        {"type": "uevent", "at": at + 0.01, "action": "remove", "subsystem": "usb", "devtype": "usb_device"} | path,
    ]


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
    """What grew in time that was put in: counters per attachment, jiffies, and CPU seconds of the host."""

    counters: dict[tuple[str, int], list[float]]
    jiffies: list[float]
    ran: float


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
    elif event["type"] == "clock" and event.get("ran") is not None:
        event["ran"] = event["ran"] + gained.ran
    elif event["type"] == "scenario.end":
        event["seconds"] = event["seconds"] + seconds
    return event


# --- files ------------------------------------------------------------------------------------------------------------


def read_tape(file: Path) -> Tape:
    """A history, plain or compressed with xz, without its numbering and seals."""
    file = file / "history.jsonl" if file.is_dir() else file
    data = lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
    return Tape(tuple(json.loads(line) for line in data.splitlines() if line.strip()))


def encode(tape: Tape) -> bytes:
    return b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in tape.events)


def single(tape: Tape) -> Iterable[tuple[str, Tape]]:
    """Each scenario of a run as a run of its own, by the name of its test."""
    head, tail = tape.first(of("run.begin")), tape.last(of("run.end"))
    begin = None
    for i, event in enumerate(tape.events):
        if event["type"] == "scenario.begin":
            begin = i
        elif event["type"] == "scenario.end" and begin is not None:
            yield event["id"].rpartition("::")[2], Tape((head, *tape.events[begin : i + 1], tail))


def without_seals(tape: Tape) -> Tape:
    """Without what only says that nothing of the record was changed."""
    numbering = ("n", "numbered")
    kept = [
        {k: v for k, v in event.items() if k not in numbering} for event in tape.events if event["type"] not in SEALS
    ]
    return replace(tape, events=tuple(kept))


def nearest(values: list[float], at: float) -> int:
    return max(0, bisect_right(values, at) - 1)
