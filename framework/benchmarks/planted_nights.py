"""What is planted in an archive, and its ``results.json`` files: see ``planted_archives.py``."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

NIGHTS = 60
FIRST = datetime(2031, 3, 1, 1, 30, tzinfo=UTC)
VERDICTS = {"P": "PASS", "F": "FAIL", "G": "FAIL", "U": "UNKNOWN", "S": "SKIP"}
STEADY = "test_steady.py::test_rates"
"""The scenario whose values are measured."""
CLEAN = 12
"""Values of each rig that do not change."""
METRICS = ("removed after", "returned after", "final rate", "write rate", "read rate", "scrub time")

Draw = random.Random


def date(night: float) -> str:
    """When the run of a night started, as its results say."""
    return (FIRST + timedelta(days=night)).isoformat().replace("+00:00", "Z")


@dataclass
class Shifted:
    """A measured value that is ``share`` higher or lower from the night ``begin`` on; ``None``: it does not change."""

    rig: str
    metric: str
    mean: float
    noise: float
    repeats: int
    share: float = 0.0
    begin: int | None = None

    def samples(self, night: float, step: float, draw: Draw) -> list[float]:
        """``step``: by how much declared changes have moved it."""
        mean = self.mean * step * (1.0 + (self.share if self.begin is not None and night >= self.begin else 0.0))
        return [draw.gauss(mean, self.noise * mean) for _ in range(self.repeats)]


@dataclass
class Run:
    """One run. ``started`` is its night by its own clock, ``arrives`` that on which it is put into the archive."""

    rig: str
    started: float
    arrives: int
    folder: str
    letters: dict[str, str]
    judged: bool
    copies: list[str] = field(default_factory=list)
    content: bytes = b""


# --- stories: a letter for each night ---------------------------------------------------------------------------------


def _regression(draw: Draw) -> str:
    begin = draw.randrange(8, 54)
    return "P" * begin + "F" * (NIGHTS - begin)


def _fix(draw: Draw) -> str:
    end = draw.randrange(8, 54)
    return "F" * end + "P" * (NIGHTS - end)


def _mended(draw: Draw) -> str:
    begin, length = draw.randrange(8, 30), draw.randrange(6, 20)
    return "P" * begin + "F" * length + "P" * (NIGHTS - begin - length)


def _flake(draw: Draw) -> str:
    begin, share = draw.randrange(6, 40), draw.uniform(0.15, 0.6)
    return "P" * begin + "".join("F" if draw.random() < share else "P" for _ in range(NIGHTS - begin))


def _once(draw: Draw) -> str:
    begin = draw.randrange(8, 54)
    return "P" * begin + "F" + "P" * (NIGHTS - begin - 1)


def _gone(draw: Draw) -> str:
    end = draw.randrange(8, 55)
    return "P" * end + "." * (NIGHTS - end)


def _never(draw: Draw) -> str:
    return draw.choice("US") * NIGHTS


def _again(draw: Draw) -> str:
    end = NIGHTS - draw.choice((1, 2))
    return "P" * 9 + "F" * (end - 9) + "P" * (NIGHTS - end)


def _another_reason(draw: Draw) -> str:
    begin = draw.randrange(8, 20)
    later = begin + draw.randrange(6, 20)
    return "P" * begin + "F" * (later - begin) + "G" * (NIGHTS - later)


def _both(draw: Draw) -> str:
    night = draw.randrange(8, 54)
    return "P" * night + "B" + "P" * (NIGHTS - night - 1)


def _added(draw: Draw) -> str:
    begin = draw.randrange(5, 50)
    return "." * begin + draw.choice("PF") * (NIGHTS - begin)


STORIES: tuple[Callable[[Draw], str], ...] = (
    _regression,
    _fix,
    _mended,
    _flake,
    _once,
    _gone,
    _never,
    _again,
    _another_reason,
    _both,
    _added,
)


class Archive:
    """What is planted, and all runs, from one seed."""

    rigs = ("desk", "shelf")

    def __init__(self, seed: int) -> None:
        self.seed, self._draw = seed, random.Random(f"planted {seed}")
        self.values: list[Shifted] = []
        self.runs: list[Run] = []
        self.declared: dict[str, list[tuple[int, str, float]]] = {}
        for rig in self.rigs:
            self._plant(rig)

    def truth(self) -> dict[str, Any]:
        """All that was planted."""
        runs = [{key: value for key, value in asdict(run).items() if key != "content"} for run in self.runs]
        return {"values": [asdict(one) for one in self.values], "runs": runs, "declared": self.declared}

    def put_hostile(self, directory: Path) -> None:
        """Runs that cannot be read, or are of no night."""
        good = self.runs[0].content
        for number, content in enumerate(
            (
                b"",
                b"{",
                b"[]",
                b"null",
                b"\xff\xfe" * 40,
                b"[" * 50_000,
                good.replace(b'"value": ', b'"value": NaN, "was": '),
                good.replace(b'"schema": 1', b'"schema": 99'),
                good.replace(b'"scenarios": [', b'"others": ['),
                good[: len(good) // 2],
            )
        ):
            folder = directory / f"20310101T0000{number:02}Z-hostile"
            folder.mkdir()
            (folder / "results.json").write_bytes(content)
        (directory / "no-results").mkdir()

    # --- one rig -------------------------------------------------------------------------------------------

    def _plant(self, rig: str) -> None:
        draw = self._draw
        stories = {f"test_{make.__name__[1:]}.py::test_it[{draw.randrange(9)}]": make(draw) for make in STORIES}
        stories[STEADY] = "P" * NIGHTS
        what = draw.choice(("kernel", "firmware", "rig", "plugpull", "none"))
        self.declared[rig] = [] if what == "none" else [(draw.randrange(20, 45), what, draw.choice((0.8, 1.25)))]
        values = self._values(rig)
        self.values += values
        renamed = draw.randrange(10, 50) if draw.random() < 0.5 else NIGHTS
        for night in range(NIGHTS):
            fate = draw.random()
            if night > 0 and fate < 0.04:
                continue  # there is no run in this night
            broken = night > 0 and fate < 0.08
            letters = {
                name: "U" if broken and letters[night] != "." else letters[night]
                for name, letters in stories.items()
                if letters[night] != "."
            }
            letters = {name: self._unknown(name, one, night) for name, one in letters.items()}
            if broken and draw.random() < 0.5:
                letters = {}  # as after a failed preflight
            self.runs.append(self._run(rig, night, letters, values, renamed))
        self._unsettle(rig)

    def _unknown(self, name: str, letter: str, night: int) -> str:
        """A night without a result now and then. The first night of a scenario has one."""
        return "U" if night > 0 and name != STEADY and letter in "PF" and self._draw.random() < 0.03 else letter

    def _values(self, rig: str) -> list[Shifted]:
        draw = self._draw
        found = []
        # A change beside a declared one looks like it, and needs as many nights before it as any other.
        steps = [night for night, *_ in self.declared[rig]]
        begins = [night for night in range(12, 54) if not any(night - 12 < step < night + 6 for step in steps)]
        for number in range(CLEAN):
            noise, repeats = draw.choice((0.005, 0.01, 0.02)), (1, 3, 5)[number % 3]
            metric = f"{METRICS[number % len(METRICS)]} {number}"
            found.append(Shifted(rig, metric, 10.0 ** draw.uniform(-1, 8), noise, repeats))
        for number, repeats in enumerate((1, 1, 3, 3, 5, 5)):
            noise, share = draw.choice((0.005, 0.01, 0.02)), draw.choice((0.05, 0.05, 0.1, 0.3))
            found.append(
                Shifted(
                    rig,
                    f"{METRICS[number]} changed",
                    10.0 ** draw.uniform(-1, 8),
                    noise,
                    repeats,
                    draw.choice((-share, share)),
                    draw.choice(begins),
                )
            )
        return found

    def _run(self, rig: str, night: int, letters: dict[str, str], values: list[Shifted], renamed: int) -> Run:
        step, says = 1.0, {"kernel": "56", "firmware": "1.0", "rig": "disk1.cable", "plugpull": "0.1.0"}
        for begin, what, factor in self.declared[rig]:
            if night >= begin:
                step *= factor
                says[what] = {"kernel": "57", "firmware": "1.1", "rig": "disk1.power", "plugpull": "0.2.0"}[what]
        disk = "disk1" if night < renamed else "left"
        scenarios = [
            self._scenario(name, one, disk, self._measured(values, night, step) if name == STEADY else [])
            for name, letter in letters.items()
            for one in {"B": "PF"}.get(letter, letter)
        ]
        started = FIRST + timedelta(days=night)
        found = {
            "schema": 1,
            "plugpull": says["plugpull"],
            "rig": rig,
            "dut": {"kernel": f"6.1.0-{says['kernel']}-amd64", "kind": "virtual"},
            "verdict": next((v for v in ("FAIL", "UNKNOWN") if v in {s["verdict"] for s in scenarios}), "PASS")
            if scenarios
            else "UNKNOWN",
            "started": started.isoformat().replace("+00:00", "Z"),
            "scenarios": scenarios,
            "disks": [{"name": disk, "serial": f"S-{rig}-1"}, {"name": "other", "serial": f"S-{rig}-2"}],
            "firmware": {"bridge": says["firmware"]},
            "coverage": {"points": {says["rig"]: 1}},
        }
        if self._draw.random() < 0.5:
            found |= {"seconds": 99.5, "seed": night, "complete": True, "sentence": "a run", "future": {"key": [1]}}
        folder = f"{started:%Y%m%dT%H%M%SZ}-{rig}"
        judged = any(letter in "PFGB" for letter in letters.values())
        return Run(rig, night, night, folder, letters, judged, content=json.dumps(found).encode())

    def _measured(self, values: list[Shifted], night: int, step: float) -> list[dict[str, Any]]:
        measured = []
        for value in values:
            samples = value.samples(night, step, self._draw)
            one = {"name": value.metric, "subject": "other", "value": median(samples), "unit": "B/s", "better": "up"}
            measured.append(one | ({"samples": samples} if value.repeats > 1 else {}))
        return measured

    def _scenario(self, name: str, letter: str, disk: str, measured: list[dict[str, Any]]) -> dict[str, Any]:
        check = {"F": "kept_pace", "G": "returned"}.get(letter)
        finding = {"check": check, "subject": disk, "summary": f"{disk} stood still for {self._draw.random():.2f} s"}
        return {
            "id": name,
            "verdict": VERDICTS[letter],
            "cuts": [{"point": f"{disk}.cable", "mechanism": "data", "victims": [disk]}],
            "findings": [finding] if check else [],
            "unknowns": ["the switch did not answer"] if letter == "U" else [],
            "measurements": measured if letter in "PF" else [],
        }

    def _unsettle(self, rig: str) -> None:
        """Two runs arrive late, as from another machine; one is there twice; the clock of one went back."""
        own = [run for run in self.runs if run.rig == rig]
        for run in self._draw.sample(own[5:-12], 2):
            run.arrives += self._draw.randrange(2, 9)
        copied = self._draw.choice(own)
        copied.copies.append(f"copy-of-{copied.folder}")
        back = self._draw.choice(own[10:-12])
        if back.arrives == back.started:
            back.started -= 1.125
            found = json.loads(back.content)
            found["started"] = date(back.started)
            back.content = json.dumps(found).encode()
