"""The index of an archive: made again from its runs, kept in line with them, whole whatever happens to its writers."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from archives import date, folder, put, put_nights, results, scenario
from stories import encode, healthy, run_of

from plugpull.archive.index import INDEX
from plugpull.archive.tables import TABLES, VERSION
from plugpull.archive.trend import Trend, make_index, trend_of
from plugpull.archive.trend_show import as_json, as_markdown, as_text
from plugpull.cli import main
from plugpull.exit_status import EXIT_PASS, EXIT_USAGE
from plugpull.judging.outcome import write_outcome

KILLS = int(os.environ.get("PLUGPULL_KILLS", "6"))
"""Random moments at which a writer is killed. 50 of them take a minute: see the room's README."""
HOSTILE = "a\x1b[2J\n\u202e<script>alert(1)</script>\"'@here |`#*_[x](http://evil)\x00;DROP TABLE run--"


WRONG: tuple[object, ...] = (None, 7, -1e308, "text", [], {}, [[]], [None], {"a": {}}, True)


def said(trend: Trend) -> str:
    return as_json(trend)


def rows(directory: Path, query: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(f"file:{directory / INDEX}?mode=rw", uri=True)) as db:
        return db.execute(query).fetchall()


def test_it_is_the_same_made_at_once_or_run_by_run(tmp_path: Path) -> None:
    put_nights(tmp_path / "all", {"a": "PPPFFFFPPP", "b": "PFPUPPPFPP", "c": "UPPP....PP"})
    growing = tmp_path / "growing"
    growing.mkdir()
    for run in sorted((tmp_path / "all").iterdir()):
        shutil.copytree(run, growing / run.name)
        last = said(trend_of(growing))
    make_index(tmp_path / "all")
    assert said(trend_of(tmp_path / "all")) == last
    make_index(growing)
    assert said(trend_of(growing)) == last


def test_what_is_stored(tmp_path: Path) -> None:
    cut = {"point": "disk1.cable", "mechanism": "data", "victims": ["disk1"], "commanded_at": 10.0}
    cuts = [{**cut, "acknowledged_at": 10.1, "restored_at": 12.0, "returned_at": 13.5}, cut]
    survivor = {"disk": "disk2", "baseline_bps": 3e7, "stall_s": 0.3, "recovery_s": None, "final_ratio": 0.98}
    put(tmp_path, results(0, [scenario(values={"rate": (1.0, 2.0, 6.0)}, cuts=cuts, survivors=[survivor])]))
    make_index(tmp_path)
    assert rows(tmp_path, "SELECT rig, bench, kernel_line, verdict, cuts_done, cuts_planned, name FROM run") == [
        ("desk", "virtual", "6.1", "PASS", 1, 2, date(0))
    ]
    measured = "FROM measure JOIN series ON series.id = series_id ORDER BY metric"
    assert rows(tmp_path, f"SELECT metric, disk_identity, unit, better, value, n {measured}") == [
        ("baseline rate", "disk2", "B/s", "up", 3e7, 1),
        ("final rate", "disk2", "of the baseline", "up", 0.98, 1),
        ("longest stall", "disk2", "s", "down", 0.3, 1),
        ("rate", "disk2", "B/s", "up", 2.0, 3),
        ("returned after", "disk1", "s", "down", 1.5, 1),
    ]
    (interval,) = rows(tmp_path, "SELECT mean, sd, ci_lo, ci_hi, p50, min, samples_json FROM measure WHERE n = 3")
    # Mean 3, standard deviation sqrt(7), and 4.3027 as the 97.5 % quantile of t with 2 degrees of freedom.
    half = 4.3027 * 7**0.5 / 3**0.5
    assert interval[:6] == pytest.approx((3.0, 7**0.5, 3 - half, 3 + half, 2.0, 1.0), rel=1e-4)
    assert interval[6] == "[1.0,2.0,6.0]"
    assert rows(tmp_path, "SELECT status FROM v_latest") == [("PASS",)]
    assert rows(tmp_path, "SELECT class FROM v_classified") in ([], [("passing",)])
    trend_of(tmp_path)
    assert rows(tmp_path, "SELECT class FROM v_classified") == [("passing",)]


def test_others_can_read_it(tmp_path: Path) -> None:
    """As datasette likes it: each table has one integer key and references to single columns; nothing lies beside."""
    put_nights(tmp_path, {"a": "PF"})
    trend_of(tmp_path)
    assert rows(tmp_path, "PRAGMA user_version") == [(VERSION,)]
    assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]
    tables = [str(name) for (name,) in rows(tmp_path, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert set(tables) >= {"run", "series", "result", "measure", "note", "change_point"}
    for table in tables:
        keys = [row for row in rows(tmp_path, f"PRAGMA table_info({table})") if row[5]]
        assert [(row[1], row[2]) for row in keys] == [("id", "INTEGER")], table
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {INDEX, ".index.lock"}
    documented = (Path(__file__).parents[1] / "plugpull/archive/README.md").read_text()
    assert [table for table in tables if f"`{table}`" not in documented] == []
    assert "CREATE TABLE run" in TABLES


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b'{"schema": 1, "scenarios": [', "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "it is not an object"),
        (b"{}", "it has no schema version"),
        (b'{"schema": 2, "scenarios": []}', "schema version 2, but this plugpull reads 1"),
        (b'{"schema": true, "scenarios": []}', "it has no schema version"),
        (b'{"schema": 1}', "it has no list of scenarios"),
    ],
)
def test_a_bad_file_is_named_and_does_not_stop_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, reason: str
) -> None:
    put_nights(tmp_path, {"a": "PP"})
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/results.json").write_bytes(content)
    assert main(["archive", "index", str(tmp_path)]) == EXIT_PASS
    seen = capsys.readouterr()
    assert seen.err.startswith("plugpull: left out bad: ")
    assert reason in seen.err
    assert seen.err.count("\n") == 1
    assert seen.out == "2 runs in the index\n"
    put(tmp_path, results(2, [scenario("a")]), "bad")
    assert trend_of(tmp_path).updated.unreadable == ()
    assert trend_of(tmp_path).nights == 3


def test_values_of_any_type_are_survived(tmp_path: Path) -> None:
    """Every value of a run replaced by one of another type, one at a time: nothing stops, and other runs are read."""
    whole = results(1, [scenario("a", "F", values={"rate": (1.0, 2.0, 3.0)})], skipped=[{"id": "s", "reason": "r"}])
    whole |= {"coverage": {"points": {"disk1.cable": 1}}, "unknowns": ["x"], "complete": True}
    put_nights(tmp_path, {"a": "P"})
    paths = list(_paths(whole))
    for number, path in enumerate(paths):
        for other, wrong in enumerate(WRONG):
            edited = json.loads(json.dumps(whole))
            _set(edited, path, wrong)
            put(tmp_path, edited, f"run-{number:03}-{other}")
    trend = trend_of(tmp_path)
    assert trend.updated.runs + len(trend.updated.unreadable) == 1 + len(WRONG) * len(paths)
    assert len(trend.updated.unreadable) < 60, "only the schema and the list of scenarios are needed"
    as_json(trend)
    assert list(as_text(trend))
    assert list(as_markdown(trend))


def _paths(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield (*path, key)
        yield from _paths(each, (*path, key))


def _set(value: object, path: tuple[str | int, ...], new: object) -> None:
    for key in path[:-1]:
        value = value[key]  # type: ignore[index]
    value[path[-1]] = new  # type: ignore[index]


def test_hostile_text_is_harmless(tmp_path: Path) -> None:
    found = scenario(HOSTILE, "F", check=HOSTILE, subject=HOSTILE, summary=HOSTILE, values={HOSTILE: 5.0})
    for night in range(3):
        put(tmp_path, results(night, [found], rig=HOSTILE, dut={"kernel": HOSTILE}, unknowns=[HOSTILE]), f"{night}")
    trend = trend_of(tmp_path)
    for shown in (as_json(trend), "\n".join(as_text(trend)), "\n".join(as_markdown(trend))):
        assert not {character for character in shown if ord(character) < 32} - {"\n"}
        assert "\u202e" not in shown
    lines = "\n".join(as_markdown(trend))
    assert "](http://" not in lines
    assert "<script>" not in lines.replace("\\<", "")
    assert json.loads(as_json(trend))["series"][0]["class"] == "ongoing"


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, archive = tmp_path / "outside", tmp_path / "archive"
    put_nights(outside, {"a": "P"})
    put_nights(archive, {"a": "PP"})
    (archive / "latest").symlink_to(folder(1))
    (archive / "elsewhere").symlink_to(outside / folder(0))
    (archive / "linked").mkdir()
    (archive / "linked/results.json").symlink_to(outside / folder(0) / "results.json")
    os.mkfifo(archive / folder(0) / "pipe")
    (archive / "pipe").mkdir()
    os.mkfifo(archive / "pipe/results.json")
    trend = trend_of(archive)
    assert trend.updated.runs == 2
    assert {name for name, _ in trend.updated.unreadable} == {"linked", "pipe"}


def test_the_same_run_under_another_name_counts_once(tmp_path: Path) -> None:
    put_nights(tmp_path, {"a": "PP"})
    shutil.copytree(tmp_path / folder(1), tmp_path / "copy")
    trend = trend_of(tmp_path)
    assert (trend.nights, trend.updated.unreadable) == (2, (("copy", f"the same run as {folder(1)}"),))


def test_equal_nights_without_a_time_count_each(tmp_path: Path) -> None:
    """A plain results file need not say when it was made: the directory's name distinguishes equal nights."""
    plain = {"schema": 1, "scenarios": [{"id": "test_a.py::test_b", "verdict": "PASS"}]}
    for night in range(3):
        put(tmp_path, plain, f"2030010{night + 1}T020000Z-desk")
    put(tmp_path, plain, "20300101T020000Z-copy")
    put(tmp_path, plain, "no time")
    trend = trend_of(tmp_path)
    assert (trend.nights, trend.series[0].n) == (4, 4)
    assert [name for name, _ in trend.updated.unreadable] == ["20300101T020000Z-desk"]


def test_removed_runs_leave_nothing_behind(tmp_path: Path) -> None:
    """A disk that only a removed run had is not what another run's disk is called."""
    put(tmp_path, results(0, [scenario("a")], disks=[{"name": "disk1", "serial": "A"}]))
    put(tmp_path, results(1, [scenario("a")]))
    trend_of(tmp_path)
    shutil.rmtree(tmp_path / folder(0))
    put(tmp_path, results(0, [scenario("b")], disks=[{"name": "disk1", "serial": "A"}]), "other")
    incremental = said(trend_of(tmp_path))
    make_index(tmp_path)
    assert said(trend_of(tmp_path)) == incremental
    assert [one.key for one in trend_of(tmp_path).series if one.name == "passing"] == [
        "a rig=desk kernel=6.1 disk=disk1"
    ]
    shutil.rmtree(tmp_path / "other")
    trend_of(tmp_path)
    assert rows(tmp_path, "SELECT scenario FROM series") == [("a",)]


def test_a_disk_is_not_known_before_it_is_seen(tmp_path: Path) -> None:
    """A night without serial numbers counts the same whether the nights after it are there already or not."""
    nights = (("a", "A"), ("b", ""), ("b", "B"), ("b", "A"))
    for night, (name, serial) in enumerate(nights):
        disks = [{"name": "disk1", "serial": serial}] if serial else []
        put(tmp_path, results(night, [scenario(name)], disks=disks))
        trend_of(tmp_path)
    incremental = said(trend_of(tmp_path))
    make_index(tmp_path)
    assert said(trend_of(tmp_path)) == incremental


def test_removed_and_changed_runs(tmp_path: Path) -> None:
    put_nights(tmp_path, {"a": "PFF"})
    assert trend_of(tmp_path).series[0].name == "ongoing"
    shutil.rmtree(tmp_path / folder(1))
    found = trend_of(tmp_path)
    assert (found.series[0].name, found.nights, found.updated.removed) == ("new", 2, 1)
    put(tmp_path, results(2, [scenario("a")]))
    assert trend_of(tmp_path).series[0].name == "passing"


def test_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, archive = tmp_path / "runs", tmp_path / "archive"
    put_nights(runs, {"a": "PF"})
    (runs / folder(0) / "link").symlink_to("/etc/passwd")
    (runs / folder(0) / "history.jsonl").write_text("{}\n")
    archive.mkdir()
    command = ["archive", "add", str(archive), str(runs / folder(0)), str(runs / folder(1) / "results.json")]
    assert main(command) == EXIT_PASS
    assert main(command) == EXIT_PASS, "adding again changes nothing"
    assert "2 runs in the index" in capsys.readouterr().out
    assert {path.name for path in (archive / folder(0)).iterdir()} == {"results.json", "history.jsonl"}
    put(runs, results(1, [scenario("b")]))
    assert main(command) == EXIT_USAGE, "a run is never replaced"
    assert main(["archive", "add", str(archive), str(tmp_path)]) == EXIT_USAGE
    assert main(["trend", str(tmp_path / "nowhere")]) == EXIT_USAGE


@pytest.mark.parametrize("edited", [False, True])
def test_results_that_do_not_match_their_history_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], edited: bool
) -> None:
    run, archive = tmp_path / "a", tmp_path / "archive"
    run.mkdir()
    archive.mkdir()
    (run / "history.jsonl").write_bytes(encode(run_of(healthy().scenario())))
    results = write_outcome(run)[0]
    assert results.verdict.value == "PASS"
    if edited:
        stored = json.loads((run / "results.json").read_text())
        (run / "results.json").write_text(json.dumps(stored | {"verdict": "FAIL"}))
    assert main(["archive", "add", str(archive), str(run)]) == EXIT_PASS
    assert ("results.json says FAIL" in capsys.readouterr().err) == edited


def test_turns_of_a_soak_are_the_repeats_of_one_scenario(tmp_path: Path) -> None:
    for night in range(2):
        turns = [
            scenario(f"a::test_soak[{turn:04}]", "PPF"[turn % 3 * night], values={"write rate": float(turn)})
            for turn in range(1, 4)
        ]
        put(tmp_path, results(night, [*turns, scenario("a::test_size[4096]")]))
    found = {one.scenario: one.name for one in trend_of(tmp_path).series}
    assert found == {"a::test_soak": "new", "a::test_size[4096]": "passing"}
    (detail,) = [one.detail for one in trend_of(tmp_path).series if one.name == "new"]
    assert detail.startswith("in 1 of 3 turns: ")
    assert rows(tmp_path, "SELECT DISTINCT value, n FROM measure WHERE n > 1") == [(2.0, 3)]


def test_a_damaged_or_old_index_is_made_again(tmp_path: Path) -> None:
    put_nights(tmp_path, {"a": "PF"})
    expected = said(trend_of(tmp_path))
    for damage in (b"", b"not a database" * 1000, (tmp_path / INDEX).read_bytes()[:5000]):
        (tmp_path / INDEX).write_bytes(damage)
        assert said(trend_of(tmp_path)) == expected
    with contextlib.closing(sqlite3.connect(tmp_path / INDEX)) as db:
        db.execute("PRAGMA user_version = 99")
    assert said(trend_of(tmp_path)) == expected
    assert rows(tmp_path, "PRAGMA user_version") == [(VERSION,)]


# --- several writers, and writers that are killed -------------------------------------------------------------------

WRITER = """\
import sys
from pathlib import Path
from plugpull.archive.trend import make_index, trend_of
directory = Path(sys.argv[1])
print("ready", flush=True)
while True:
    make_index(directory) if sys.argv[2] == "index" else trend_of(directory)
    print("done", flush=True)
"""


def writer(directory: Path, what: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(directory), what]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def test_several_writers(tmp_path: Path) -> None:
    put_nights(tmp_path, {"a": "PPPFFF", "b": "PFPFPF"})
    writers = [writer(tmp_path, what) for what in ("index", "trend", "index")]
    try:
        for one in writers:
            assert one.stdout is not None
            assert [one.stdout.readline() for _ in range(2)] == ["done\n", "done\n"]
    finally:
        for one in writers:
            one.kill()
            one.communicate()
    assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]
    assert trend_of(tmp_path).nights == 6


@pytest.mark.parametrize("what", ["index", "trend"])
def test_a_killed_writer_leaves_it_whole(tmp_path: Path, what: str) -> None:
    """Killed at random moments while runs are added. Nothing that was indexed is lost, and the next writer goes on."""
    draw = random.Random(what)
    put_nights(tmp_path, {f"s{number}": "PPPF" * 5 for number in range(10)})
    make_index(tmp_path)
    for kill in range(KILLS):
        started = writer(tmp_path, what)
        night = 100 + kill
        put(tmp_path, results(night, [scenario(f"s{number}") for number in range(10)]))
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(draw.uniform(0.0, 0.15))
        started.send_signal(signal.SIGKILL)
        started.communicate()
        assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]
        assert len(rows(tmp_path, "SELECT id FROM run")) in (20 + kill, 21 + kill)
        trend = trend_of(tmp_path)
        assert (trend.nights, trend.updated.unreadable) == (21 + kill, ())
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {INDEX, ".index.lock"}
    incremental = said(trend_of(tmp_path))
    make_index(tmp_path)
    assert said(trend_of(tmp_path)) == incremental
