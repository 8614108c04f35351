"""Limits from healthy runs: what is measured, what is suggested, and what is said when there is too little."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import msgspec
import pytest
from rig_texts import BENCH, edited
from stories import CUT, RATE, RESTORED, SURVIVORS, VICTIM, all_checks, encode, healthy, run_of

from plugpull.checks import discovered, ended_with_error, unmountable
from plugpull.checks.calibration import Suggestion, measure, suggest
from plugpull.cli import parser
from plugpull.commands.calibrate import _alone, report
from plugpull.exit_status import EXIT_PASS, EXIT_UNKNOWN
from plugpull.history import events as ev
from plugpull.rig.load import parse_rig


def by_name(values: dict[str, list[float]]) -> dict[str, Suggestion]:
    return {one.name: one for one in suggest(values)}


def test_what_a_story_measures() -> None:
    bench = healthy(
        checks=(*all_checks(), ended_with_error(VICTIM), discovered([VICTIM, *SURVIVORS]), unmountable(VICTIM))
    )
    bench.add(ev.Acted(at=12.0, action="mount", disk=VICTIM, ok=True, seconds=0.1))
    bench.add(ev.Acted(at=20.0, action="umount", disk=VICTIM, ok=True, seconds=0.2))
    values = measure([bench.story()])
    victim, survivor = values[VICTIM], values["disk2"]
    assert victim["removed"] == pytest.approx([0.07])
    assert victim["returned"] == pytest.approx([1.21])
    assert victim["ended_with_error"] == pytest.approx([0.09])
    assert victim["unmountable"] == [0.2]
    assert survivor["discovered"] == pytest.approx([0.5])
    assert survivor["min_ratio"] == pytest.approx([1.0], abs=0.02)
    assert survivor["recover_within"] == pytest.approx([0.0], abs=0.01)
    assert survivor["max_stall"][0] <= 0.1
    assert survivor["removed"] == victim["min_ratio"] == []


def test_a_slow_recovery_is_measured_and_not_judged() -> None:
    bench = healthy(pace=lambda disk, at: RATE * (0.3 if RESTORED <= at < RESTORED + 4 else 1.0))
    (took,) = measure([bench.story()])["disk2"]["recover_within"]
    assert took > 3.5


def test_a_starved_run_measures_its_host() -> None:
    bench = healthy()
    bench.replace(ev.DutReady, cpus=2)
    bench.starved = tuple((10.01 + i / 5, 10.09 + i / 5) for i in range(80))
    made = bench.samples
    bench.samples = lambda: [  # type: ignore[method-assign]
        msgspec.structs.replace(one, cpu=(1, round(20 * (one.at or 0)))) if isinstance(one, ev.Sampled) else one
        for one in made()
    ]
    assert measure([bench.story()]) == {}


def test_the_limit_is_the_worst_and_a_margin() -> None:
    few, many = by_name({"returned": [1.0, 1.1, 1.2]}), by_name({"returned": [1.0, 1.1, 1.2] * 40})
    assert few["returned"] == Suggestion("returned", 3, 1.2, 2.5)
    assert many["returned"].limit == 1.9, "1.2 s x 1.58"
    assert by_name({"returned": [1.0, 26.0]})["returned"] == Suggestion("returned", 2, 26.0, None)
    assert by_name({"removed": [0.01] * 5})["removed"].limit == 0.5, "no less than a moment's disturbance"


def test_a_ratio_has_its_margin_below() -> None:
    assert by_name({"min_ratio": [1.0, 0.99, 0.98]})["min_ratio"].limit == 0.9
    assert by_name({"min_ratio": [1.0, 0.8, 0.9]})["min_ratio"].limit == 0.6
    assert by_name({"ready_under_load": [1.0, 1.2, 1.4]})["ready_under_load"].limit == pytest.approx(1.8)


def test_all_stalls_are_no_less_than_one() -> None:
    limits = by_name({"max_stall": [1.0] * 3, "all_stalls": [0.2] * 3})
    assert limits["max_stall"].limit == limits["all_stalls"].limit == 2


def test_the_next_healthy_values_are_within_the_limit() -> None:
    """Returns as they are seen on an emulated bench: lognormal, 1.5 s and a third more or less."""
    misses = 0
    for seed in range(200):
        drawn = random.Random(seed)
        values = [drawn.lognormvariate(0.4, 0.3) for _ in range(5)]
        limit = by_name({"returned": values})["returned"].limit
        assert limit is not None
        misses += sum(drawn.lognormvariate(0.4, 0.3) > limit for _ in range(10))
    assert misses < 2000 * 0.02


def run(directory: Path, name: str, *benches: list[ev.Event]) -> Path:
    folder = directory / name
    folder.mkdir()
    (folder / "history.jsonl").write_bytes(encode(run_of(*benches)))
    return folder


def test_the_lines_fit_into_the_rig_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [run(tmp_path, str(number), healthy().scenario()) for number in range(4)]
    assert report(runs, "made-up") == EXIT_PASS
    text = (tmp_path / "limits-made-up.toml").read_text()
    assert text in capsys.readouterr().out
    assert "measured over 4 runs (4 scenarios)" in text
    assert "WARNING" not in text
    line = next(line for line in text.partition("# disk1")[2].splitlines() if line.startswith("limits"))
    own = tomllib.loads(line)["limits"]
    assert own == {"removed": "0.5 s", "returned": "2.5 s"}
    rig = parse_rig(edited(BENCH, ('serial = "S1"', f'serial = "S1"\n{line}')), tmp_path / "rig.toml")
    limits = rig.disk[0].limits
    assert limits is not None
    assert limits.returned == 2.5
    assert "#   returned: worst 1.21 s of 4" in text


def test_a_bench_with_a_fault_is_named(tmp_path: Path) -> None:
    bench = healthy()
    bench.add(ev.KernelMessage(at=20.0, level=0, text="Oops: 0000 [#1] PREEMPT SMP"))
    assert report([run(tmp_path, "one", bench.scenario())], "made-up") == EXIT_PASS
    text = (tmp_path / "limits-made-up.toml").read_text()
    assert "WARNING: this bench is not healthy" in text
    assert "returned: worst 1.21 s of 1: too few for a limit" in text
    assert "limits = " not in text.partition("# disk1")[2].partition("# disk2")[0]


def test_nothing_measured(tmp_path: Path) -> None:
    bench = healthy(checks=())
    bench.drop(ev.Edge)
    assert report([run(tmp_path, "one", bench.scenario())], "made-up") == EXIT_UNKNOWN
    assert "Nothing was measured" in (tmp_path / "limits-made-up.toml").read_text()


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser().parse_args(["run", "--calibrate"]).calibrate == 5
    assert parser().parse_args(["run", "--calibrate", "12"]).calibrate == 12
    assert parser().parse_args(["run"]).calibrate is None
    for wrong in ("0", "x"):
        with pytest.raises(SystemExit):
            parser().parse_args(["run", "--calibrate", wrong])
    assert "a calibration has 1 to 1000 runs" in capsys.readouterr().err
    assert CUT < RESTORED


def test_a_run_of_a_calibration_is_repeated_alone() -> None:
    assert _alone(["run", "--calibrate", "10", "-k", "writing", "--rotate=2"]) == ["run", "-k", "writing"]
    assert _alone(["run", "scenarios", "--calibrate", "--rig", "x.toml"]) == ["run", "scenarios", "--rig", "x.toml"]
