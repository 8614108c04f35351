"""One recorded run as a list of plain JSON events, and the small edits that mutations are composed of.

``Tape`` is immutable: every edit returns a new one. Times are DUT seconds. Kernel messages are numbered again after an
edit, so that only an edit that means to leaves a gap in ``seq``; samples keep their counters cumulative.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.edits.events import Event, Names, between, both, either, of
from benchmarks.edits.time import COUNTERS, DelayedEvents

INFLIGHT = {"read": 5, "write": 6}
SEALS = ("seal",)
"""Events that only say that the lines before them are as they were written."""


@dataclass(frozen=True)
class Tape(DelayedEvents):
    """The events of a whole run, and the edits of samples and disks."""

    # --- samples ------------------------------------------------------------------------------------------------------

    def keys(self, disk: str) -> set[tuple[str, int]]:
        return {(event["kname"], event["diskseq"]) for event in self.all(of("disk.attached", disk=disk))}

    def pace(self, disk: str, factor: Callable[[float], float]) -> Tape:
        """Every increment of the disk's counters is multiplied by ``factor`` of its time. The ends of its loads and the
        emulated disk itself show what was moved then."""
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

        return self.map(either(of("load.end", disk=disk), of("outside.counted", disk=disk)), fit)

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
