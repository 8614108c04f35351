"""The state of a fleet: who has which rig, how its last run ended, its health; nothing raw from files or networks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from archives import date, put, results, scenario

import plugpull
from plugpull.cache import Cache
from plugpull.cli import main
from plugpull.commands import nightly
from plugpull.coordination.holders import lease_holders, ports_left_off
from plugpull.coordination.journal import Journal
from plugpull.coordination.lease import Lease
from plugpull.coordination.place_process import LabState, PlaceReservation, PlaceState
from plugpull.fleet.preflight import PreflightRecord, read_preflight, write_preflight
from plugpull.fleet.show import as_json, as_text
from plugpull.fleet.status import FleetStatus, LastRun, RigStatus, RigUser, Sources, _of_file, fleet_status
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig

SHELF = rigs_dir() / "shelf-ssh.toml"
DESK = rigs_dir() / "ykush-desk.toml"

HOLDER = """
import sys
from pathlib import Path
from plugpull.coordination.journal import Journal
from plugpull.coordination.lease import Lease
from plugpull.rig.load import load_rig
file, locks, journals = map(Path, sys.argv[1:4])
run = Path("runs/20300101T000000Z-shelf")
journal = Journal(journals, run)
with Lease(load_rig(file), file, run_dir=run, directory=locks):
    journal.outlet({"name": "mains", "password": "secret"}, {}, Path("."), "2", False)
    journal.outlet({"name": "mains"}, {}, Path("."), "3", False)
    journal.outlet({"name": "mains"}, {}, Path("."), "3", True)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def a_run(file: Path, locks: Path, journals: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a rig, and has turned a port off."""
    environment = {**os.environ, "PYTHONPATH": str(Path(plugpull.__file__).parents[1])}
    command = [sys.executable, "-c", HOLDER, *map(str, (file, locks, journals))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as run:
        try:
            assert run.stdout is not None
            assert run.stdout.readline() == "held\n"
            yield run
        finally:
            run.kill()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with its own lock files and journals."""
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (cache / "journal").mkdir(mode=0o700)
    monkeypatch.setattr(Cache, "default", classmethod(lambda cls, **_: Cache(cache)))
    monkeypatch.setattr("plugpull.coordination.holders.lease_directory", lambda: tmp_path / "locks")
    return tmp_path


def status_of(files: list[Path], archive: Path | None = None) -> dict[str, RigStatus]:
    return {one.rig: one for one in fleet_status(files, archive).rigs}


# --- taken, and free again ------------------------------------------------------------------------------------------


def test_a_rig_in_use_is_taken_and_another_one_is_free(machine: Path) -> None:
    name = load_rig(SHELF).rig.name
    with a_run(SHELF, machine / "locks", machine / "cache/journal") as run:
        found = status_of([SHELF, DESK])
        (user,) = found[name].users
        assert (found[name].state, user.who, user.source) == ("taken", f"pid {run.pid} as rig {name}", "lock file")
        assert user.run == "runs/20300101T000000Z-shelf"
        assert found[load_rig(DESK).rig.name].state == "free"
        assert found[name].left_off == (), "its run lives, and restores it"
        run.send_signal(signal.SIGKILL)
        run.wait()
    dead = status_of([SHELF])[name]
    assert (dead.state, dead.users) == ("free", ())
    assert [(one.switch, one.port) for one in ports_left_off(machine / "cache/journal")] == [("mains", "2")]


def test_looking_takes_no_lock(machine: Path) -> None:
    """A run that begins while somebody looks must not be refused."""
    rig = load_rig(SHELF)
    with Lease(rig, SHELF, directory=machine / "locks"):
        pass
    before = {file: file.stat() for file in (machine / "locks").iterdir()}
    lease_holders(machine / "locks")
    assert {file: file.stat().st_mtime_ns for file in before} == {file: was.st_mtime_ns for file, was in before.items()}
    with Lease(rig, SHELF, directory=machine / "locks"):
        assert lease_holders(machine / "locks")


def test_a_process_that_got_the_number_of_a_dead_run_holds_nothing(machine: Path) -> None:
    rig = load_rig(SHELF)
    with Lease(rig, SHELF, directory=machine / "locks"):
        written = {file: file.read_text() for file in (machine / "locks").iterdir()}
    assert all(f'"pid": {os.getpid()}' in text for text in written.values())
    assert lease_holders(machine / "locks") == (), "this process lives, but has released the rig"
    assert lease_holders(machine / "locks", Path("/no/locks")), "without /proc/locks, it counts"


def test_a_directory_of_somebody_else_is_not_read(machine: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "locks").symlink_to(tmp_path / "other")
    (tmp_path / "other/x.lock").write_text(json.dumps({"pid": os.getpid(), "rig": "x"}))
    assert lease_holders(tmp_path / "locks", Path("/no/locks")) == ()


def test_rigs_are_found_by_the_archive_and_by_lock_files(machine: Path) -> None:
    archive = machine / "archive"
    put(archive, results(0, [scenario()], rig="bench7"))
    with a_run(SHELF, machine / "locks", machine / "cache/journal"):
        found = status_of([], archive)
    name = load_rig(SHELF).rig.name
    assert {rig: one.state for rig, one in found.items()} == {"bench7": "free", name: "taken"}
    assert fleet_status([], None).rigs == ()


# --- runs and health ------------------------------------------------------------------------------------------------


def test_the_last_verdict_is_that_of_the_newest_run_with_a_result(machine: Path) -> None:
    archive, name = machine / "archive", load_rig(SHELF).rig.name
    put(archive, results(1, [scenario(verdict="F"), scenario("other")], rig=name))
    put(archive, results(0, [scenario()], rig=name))
    put(archive, results(2, [], rig=name, verdict="UNKNOWN"), f"20300103T020000Z-{name}-left-out")
    last = status_of([SHELF], archive)[name].last
    assert last is not None
    assert (last.verdict, last.started, last.sentence) == ("FAIL", date(1), "1 FAIL, 1 PASS")


def test_a_nightly_check_is_remembered(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = machine / "archive"
    broken = machine / "broken.toml"
    broken.write_text("[rig]\n")
    assert main(["nightly", "--rig", str(broken), "--archive", str(archive)]) != 0
    record = read_preflight(archive, "broken")
    assert record is not None
    assert record.troubles
    capsys.readouterr()
    assert main(["fleet", "status", str(broken), "--archive", str(archive)]) == 0
    said = capsys.readouterr().out
    assert "broken  unknown" in said
    assert "not ready at 20" in said


def test_a_rig_that_was_ready(machine: Path) -> None:
    archive, name = machine / "archive", load_rig(SHELF).rig.name
    archive.mkdir()
    assert status_of([SHELF], archive)[name].preflight is None
    write_preflight(archive, PreflightRecord(name, "2030-01-01T02:00:00Z"))
    assert "health  ready at 2030-01-01T02:00:00Z" in "\n".join(as_text(fleet_status([SHELF], archive)))
    (file,) = (archive / nightly.LOGS).iterdir()
    file.write_text('{"rig": "other", "at": ""}')
    assert read_preflight(archive, name) is None
    file.write_text("[")
    assert read_preflight(archive, name) is None


def test_ports_left_off_belong_to_their_rig_or_are_named_at_the_end(machine: Path) -> None:
    journals = machine / "cache/journal"
    for run in ("20300101T000000Z-shelf", "20300101T000000Z-shelf-2", "20300101T000000Z-shelf-ssh"):
        journal = Journal(journals, Path("runs") / run)
        journal.outlet({"name": "mains", "password": "secret"}, {}, Path("."), "1", False)
        journal.close()
    found = fleet_status([], None)
    archive = machine / "archive"
    put(archive, results(0, [scenario()], rig="shelf"))
    mine = fleet_status([], archive)
    assert {Path(port.run).name.partition("-")[2] for port in mine.rigs[0].left_off} == {"shelf", "shelf-2"}
    assert [Path(port.run).name.partition("-")[2] for port in mine.left_off] == ["shelf-ssh"]
    assert {Path(port.run).name for port in found.left_off} == {
        "20300101T000000Z-shelf",
        "20300101T000000Z-shelf-2",
        "20300101T000000Z-shelf-ssh",
    }
    text = "\n".join(as_text(found))
    assert "left off by a killed run: mains.1 (20300101T000000Z-shelf)" in text
    assert "secret" not in text + as_json(found)


# --- labgrid --------------------------------------------------------------------------------------------------------


def with_place(folder: Path) -> Path:
    file = folder / "shelf.toml"
    file.write_text(SHELF.read_text() + '\n[labgrid]\nplace = "rack1"\ncoordinator = "lab:20408"\n')
    return file


def seen(file: Path, lab: LabState | str) -> RigStatus:
    return _of_file(file, Sources(None, (), (), {}, {("lab:20408", ""): lab}))


def test_a_place_that_is_reserved_or_acquired_is_taken(tmp_path: Path) -> None:
    file, now = with_place(tmp_path), time.time()
    mine = PlaceReservation("T1", "ci/root", "allocated", now - 600, "rack1")
    waiting = PlaceReservation("T2", "ws/bob", "waiting", now, "rack1")
    reserved = seen(file, LabState({"rack1": PlaceState(reservation="T1")}, (mine, waiting)))
    assert (reserved.state, [user.who for user in reserved.users]) == ("taken", ["ci/root"])
    assert reserved.troubles == ("1 more waits for the place rack1",)
    acquired = seen(file, LabState({"rack1": PlaceState(acquired="ws/alice", changed=now)}))
    assert [(user.who, user.source) for user in acquired.users] == [("ws/alice", "labgrid, acquired")]
    assert "by ci/root for 10 min, since 20" in "\n".join(as_text(FleetStatus((reserved,))))


def test_a_free_place_and_one_that_is_wrong(tmp_path: Path) -> None:
    file = with_place(tmp_path)
    free = seen(file, LabState({"rack1": PlaceState()}))
    assert (free.state, free.place, free.troubles) == ("free", "rack1", ())
    assert seen(file, LabState()).troubles == ("labgrid has no place rack1",)
    unserved = seen(file, LabState({"rack1": PlaceState(unmatched=("*/rack1/*",))}))
    assert unserved.troubles == ("no exporter has a resource for */rack1/* of the place rack1",)
    silent = seen(file, "the coordinator cannot be reached")
    assert (silent.state, silent.troubles) == ("unknown", ("the coordinator cannot be reached",))


# --- what is shown --------------------------------------------------------------------------------------------------

HOSTILE = "x\x1b[2J\x7f\x9b\n\u202ey"


def hostile() -> FleetStatus:
    rig = RigStatus(
        HOSTILE,
        place=HOSTILE,
        state="taken",
        users=(RigUser(HOSTILE, HOSTILE, HOSTILE, HOSTILE), RigUser("b", "2030-01-01T00:00:00Z", "lock file")),
        last=LastRun(HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        preflight=PreflightRecord(HOSTILE, HOSTILE, (HOSTILE,)),
        troubles=(HOSTILE,),
    )
    return FleetStatus((rig,))


def test_nothing_is_shown_that_a_terminal_obeys() -> None:
    text = list(as_text(hostile()))
    assert all(line.isprintable() or "\ufffd" in line for line in text)
    assert not any(sign in "".join(text) for sign in ("\x1b", "\n", "\x9b", "\u202e"))
    shown = as_json(hostile())
    assert shown.isascii()
    assert "\x1b" not in shown
    assert "\x7f" not in shown
    again: Any = json.loads(shown)
    assert again["rigs"][0]["users"][0]["who"] == HOSTILE


def test_json_of_the_command(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = machine / "archive"
    put(archive, results(0, [scenario()], rig="bench7"))
    assert main(["fleet", "status", "--archive", str(archive), "--json"]) == 0
    (rig,) = json.loads(capsys.readouterr().out)["rigs"]
    assert (rig["rig"], rig["state"], rig["users"]) == ("bench7", "free", [])
    assert rig["last"]["verdict"] == "PASS"
    assert set(rig) == {
        *("rig", "file", "kind", "place", "state", "users", "last", "preflight", "left_off", "troubles")
    }


def test_an_archive_that_does_not_exist(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "status", "--archive", str(machine / "none")]) == 2
    assert "none" in capsys.readouterr().err
