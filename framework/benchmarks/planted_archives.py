"""How much of what is planted in archives of 60 nights does ``plugpull trend`` say?

Each archive has two rigs, stories of scenarios with a class and a beginning on each night, values of which some change
and some do not, nights without a run or without results, runs that arrive late, copies of runs, clocks that went back,
disks that are renamed, and files that cannot be read. Its truth is written, and its digest printed, before the first
night is read. The classes are by ``planted_truth.py``, which is written from the definitions in
``plugpull/archive/README.md`` and shares no code with the archive. Each night is read when its runs have arrived.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

from benchmarks.measure import console
from benchmarks.planted_nights import NIGHTS, Archive, Run, Shifted, date
from benchmarks.planted_truth import Result, truth_of
from plugpull.archive.trend import Trend, trend_of

SOON = 5
"""Nights within which a change is to be named, and by which its beginning may be wrong."""


@dataclass
class Tally:
    """What was right and what was not, over all archives."""

    classes: int = 0
    wrong: list[str] = field(default_factory=list)
    since: list[str] = field(default_factory=list)
    changes: Counter[tuple[float, int, float]] = field(default_factory=Counter)
    named: Counter[tuple[float, int, float]] = field(default_factory=Counter)
    proved: Counter[tuple[float, int, float]] = field(default_factory=Counter)
    false: Counter[int] = field(default_factory=Counter)
    nights: Counter[int] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)


@dataclass
class Reader:
    """Reads one archive night by night."""

    archive: Archive
    directory: Path
    tally: Tally
    arrived: list[Run] = field(default_factory=list)
    first_named: dict[tuple[str, str], int] = field(default_factory=dict)
    first_proved: dict[tuple[str, str], int] = field(default_factory=dict)
    false: set[tuple[str, str, str]] = field(default_factory=set)

    def read(self) -> None:
        for night in range(NIGHTS):
            for run in self.archive.runs:
                if run.arrives == night:
                    self._put(run)
            self._judge(trend_of(self.directory), night)
        self._sum_up()

    def _put(self, run: Run) -> None:
        self.arrived.append(run)
        folder = self.directory / run.folder
        folder.mkdir()
        (folder / "results.json").write_bytes(run.content)
        for copy in run.copies:
            shutil.copytree(folder, self.directory / copy)

    def _judge(self, trend: Trend, night: int) -> None:
        said = {(one.rig, one.scenario): one for one in trend.series}
        for (rig, name), expected in self._expected().items():
            one = said.pop((rig, name), None)
            self.tally.classes += 1
            found = (one.name, one.since) if one else ("", "")
            what = f"{self.archive.seed} night {night} {rig} {name}: {found}, and not {expected}"
            if found[0] != expected[0]:
                self.tally.wrong.append(what)
            elif expected[1] and found[1] != expected[1]:
                self.tally.since.append(what)
        self.tally.wrong += [f"{self.archive.seed} night {night}: {one} is said and not planted" for one in said]
        self._changes(trend, night)

    def _expected(self) -> dict[tuple[str, str], tuple[str, str]]:
        """The class of each series now, and since when, of the runs that have arrived."""
        of_rig: defaultdict[str, list[Run]] = defaultdict(list)
        for run in sorted(self.arrived, key=lambda one: (one.started, one.folder)):
            of_rig[run.rig].append(run)
        found = {}
        for rig, runs in of_rig.items():
            gone = self._without(runs)
            for name in dict.fromkeys(name for run in runs for name in run.letters):
                each = [
                    Result(date(run.started), run.started, run.letters.get(name, "."), bool(run.letters))
                    for run in runs
                ]
                found[rig, name] = ("gone", gone) if gone else truth_of(each)
        return found

    def _without(self, own: list[Run]) -> str:
        """The first night without a rig that ran every night, if other rigs have run on three later ones."""
        last = max(run.started for run in own)
        later = sorted(run.started for run in self.arrived if run.letters and run.started > last + 0.5)
        return date(later[0]) if len(later) >= 3 else ""

    def _changes(self, trend: Trend, night: int) -> None:
        values = {(one.rig, one.metric): one for one in self.archive.values}
        for change in trend.changes:
            rig = next(rig for rig in self.archive.rigs if f"rig={rig} " in f"{change.key} ")
            value = values[rig, change.measurement]
            at = next(run.started for run in self.arrived if run.rig == rig and date(run.started) == change.at)
            if value.begin is None or abs(at - value.begin) > SOON or value.begin > night:
                self.false.add((rig, change.measurement, change.at))
                continue
            key = rig, change.measurement
            self.first_named.setdefault(key, self._nights_since(value, night))
            if change.state == "changed":
                self.first_proved.setdefault(key, self._nights_since(value, night))

    def _nights_since(self, value: Shifted, night: int) -> int:
        """The nights with a value since its change."""
        return sum(
            value.begin is not None and run.started >= value.begin and run.arrives <= night and run.judged
            for run in self.arrived
            if run.rig == value.rig
        )

    def _sum_up(self) -> None:
        for value in self.archive.values:
            if value.begin is None:
                nights = sum(run.judged for run in self.arrived if run.rig == value.rig)
                self.tally.nights[value.repeats] += nights
                continue
            if sum(run.judged and run.rig == value.rig and run.started >= value.begin for run in self.arrived) < SOON:
                continue
            key, kind = (value.rig, value.metric), (abs(value.share), value.repeats, value.noise)
            self.tally.changes[kind] += 1
            self.tally.named[kind] += self.first_named.get(key, NIGHTS) <= SOON
            if self.first_named.get(key, NIGHTS) > SOON:
                late = f"named on night {self.first_named[key]}" if key in self.first_named else "not named"
                self.tally.late.append(f"{self.archive.seed} {value}: {late}")
            self.tally.proved[kind] += self.first_proved.get(key, NIGHTS) <= SOON
        repeats = {(one.rig, one.metric): one.repeats for one in self.archive.values}
        for rig, metric, at in sorted(self.false):
            self.tally.false[repeats[rig, metric]] += 1
            self.tally.said.append(f"{self.archive.seed} {rig} {metric} at {at}")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "-"


def show(tally: Tally) -> None:
    table = Table(title=f"Changes named within {SOON} nights: proved or suspected; proved alone in brackets")
    table.add_column("change")
    table.add_column("noise")
    repeats = sorted({key[1] for key in tally.changes})
    for one in repeats:
        table.add_column(f"{one} samples a night", justify="right")
    for share, noise in sorted({(key[0], key[2]) for key in tally.changes}):
        cells = []
        for one in repeats:
            key = (share, one, noise)
            cells.append(f"{_share(tally.named[key], tally.changes[key])} ({tally.proved[key]})")
        table.add_row(f"{share:.0%}", f"{noise:.1%}", *cells)
    console.print(table)
    for one in sorted(tally.nights):
        rate = tally.false[one] / tally.nights[one] * 1000
        console.print(
            f"{one} samples a night: {rate:.2f} false changes in 1,000 of {tally.nights[one]} nights of series"
        )
    rate = sum(tally.false.values()) / sum(tally.nights.values()) * 1000
    console.print(f"together: {rate:.2f} false changes in 1,000, {sum(tally.false.values())} in all")
    console.print(f"classes: {len(tally.wrong)} of {tally.classes} wrong, {len(tally.since)} since another night")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archives", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1, help="of the first archive; the next ones follow")
    parser.add_argument("--list", type=int, default=10, help="mistakes of each kind that are listed (default: 10)")
    arguments = parser.parse_args()
    tally = Tally()
    for seed in range(arguments.seed, arguments.seed + arguments.archives):
        archive = Archive(seed)
        truth: dict[str, Any] = archive.truth()
        digest = hashlib.sha256(json.dumps(truth, sort_keys=True).encode()).hexdigest()
        with TemporaryDirectory() as place:
            (Path(place) / "truth.json").write_text(json.dumps(truth))
            console.print(f"archive {seed}: truth {digest[:16]}, {len(archive.runs)} runs")
            directory = Path(place) / "archive"
            directory.mkdir()
            archive.put_hostile(directory)
            Reader(archive, directory, tally).read()
    show(tally)
    for said in (tally.wrong, tally.since, tally.said, tally.late):
        for line in said[: arguments.list]:
            console.print(line, highlight=False)


if __name__ == "__main__":
    main()
