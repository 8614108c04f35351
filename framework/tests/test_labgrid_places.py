"""A rig that is a place of labgrid: reserved while a run lives, free when it is dead. The lab here is a real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from labs import Lab, lab
from long_tests import only_if_asked
from test_journal import Restored, left_behind, line, off

import plugpull
from fixtures.peers import peers_python
from plugpull.cache import Cache
from plugpull.cli import main
from plugpull.commands.nightly_preflight import preflight
from plugpull.coordination.journal import Journal, sweep
from plugpull.coordination.place import HeldPlace, place_and_lease, reserved
from plugpull.coordination.place_process import LabState, PlaceProcess, PlaceReservation, PlaceState
from plugpull.errors import RigError, UsageError
from plugpull.rig.load import parse_rig
from plugpull.rig.model import LabgridPlace

FREE_AGAIN = 90.0
"""Seconds after which the place of a run that was killed must be free."""

HOLDER = """
import sys
from plugpull.coordination.journal import Journal, sweep
from plugpull.coordination.place import reserved
from plugpull.rig.model import LabgridPlace
with reserved(LabgridPlace.model_validate_json(sys.argv[1]), lambda text: print(text, flush=True)):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def python() -> Path:
    return peers_python(Cache.default())


@pytest.fixture(scope="module")
def running(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab"), python) as made:
        yield made


def quiet(_: str) -> None:
    pass


@contextmanager
def holder(place: LabgridPlace) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a place."""
    environment = {**os.environ, "PYTHONPATH": str(Path(plugpull.__file__).parents[1])}
    command = [sys.executable, "-c", HOLDER, place.model_dump_json()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            yield other
        finally:
            other.kill()


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(one) for one in found.stdout.split()]


# --- held and free -------------------------------------------------------------------------------------------------


def test_a_reserved_place_is_nobody_elses_and_free_afterwards(running: Lab) -> None:
    with reserved(running.place("rig1"), quiet) as held:
        refused = running.client("-p", "rig1", "acquire")
        assert "was not reserved for ws/alice" in refused.stdout + refused.stderr
        assert len(running.reservations()) == 1
        held.check()
    assert running.reservations() == []
    assert running.client("-p", "rig1", "acquire").returncode == 0
    assert running.client("-p", "rig1", "release").returncode == 0


def test_two_places_do_not_wait_for_each_other(running: Lab) -> None:
    said: list[str] = []
    with reserved(running.place("rig1"), said.append), reserved(running.place("rig2"), said.append, wait=0.0):
        assert len(running.reservations()) == 2
    assert said == []


def test_the_second_run_waits_and_says_for_whom(running: Lab) -> None:
    said: list[str] = []
    with holder(running.place("rig2")) as first:

        def say(line: str) -> None:
            said.append(line)
            first.kill()

        with reserved(running.place("rig2"), say):
            assert first.wait() == -signal.SIGKILL, "the place was not free before"
    owner = f"{os.uname().nodename}/"
    assert said[0].startswith(f"waiting for the place rig2: reserved by {owner}"), said
    assert " for " in said[0]


def test_a_place_that_somebody_acquired_is_named_with_who_and_since(running: Lab) -> None:
    assert running.client("-p", "rig2", "acquire").returncode == 0
    try:
        with pytest.raises(RigError, match=r"place rig2 is not free: acquired by ws/alice for \d+ s") as caught:
            reserved(running.place("rig2"), quiet, wait=0.0).__enter__()
        assert "--kick" in caught.value.hint
        assert running.reservations() == []
    finally:
        running.client("-p", "rig2", "release")


def test_a_rig_file_says_how_long_a_run_waits(running: Lab) -> None:
    with holder(running.place("rig2")):
        begun = time.monotonic()
        with pytest.raises(RigError, match="is not free: reserved by"):
            reserved(running.place("rig2", wait="1 s"), quiet).__enter__()
        assert 1.0 <= time.monotonic() - begun < 60.0


def test_ctrl_c_while_waiting_leaves_no_reservation(running: Lab) -> None:
    with holder(running.place("rig2")) as first:

        def interrupt(_: str) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            reserved(running.place("rig2"), interrupt).__enter__()
        assert running.reservations("waiting") == []
        assert len(running.reservations()) == 1
        assert first.poll() is None


# --- a dead or lost holder -----------------------------------------------------------------------------------------


def test_a_killed_run_leaves_the_place_free(running: Lab) -> None:
    with holder(running.place("rig1")) as other:
        assert len(running.reservations()) == 1
        other.send_signal(signal.SIGKILL)
        other.wait()
        until(lambda: running.reservations() == [], 15.0)
    with reserved(running.place("rig1"), quiet, wait=0.0):
        pass


@only_if_asked
def test_a_machine_that_died_leaves_the_place_free_within_90_s(running: Lab) -> None:
    """Both processes are stopped at once, so that nobody can cancel: as after a loss of power."""
    with holder(running.place("rig1")) as other:
        (helper,) = children(other.pid)
        for pid in (helper, other.pid):
            os.kill(pid, signal.SIGKILL)
        begun = time.monotonic()
        with reserved(running.place("rig1"), quiet):
            assert 30.0 < time.monotonic() - begun < FREE_AGAIN - 5.0


@only_if_asked
def test_a_place_is_held_for_longer_than_a_reservation_lives(running: Lab) -> None:
    with reserved(running.place("rig1"), quiet) as held:
        time.sleep(100.0)
        assert running.client("-p", "rig1", "acquire").returncode != 0
        held.check()


def test_a_reservation_that_was_cancelled_ends_the_use_of_the_rig(running: Lab) -> None:
    said: list[str] = []
    with reserved(running.place("rig1"), quiet, poll=0.2) as held:
        held.on_loss(said.append)
        (token,) = running.reservations()
        assert running.client("cancel-reservation", token).returncode == 0
        until(lambda: bool(said), 5.0)
        assert said[0].startswith("the reservation of the place rig1 was lost: ")
        assert token in said[0]
        with pytest.raises(RigError, match="was lost"):
            held.check()
        late: list[str] = []
        held.on_loss(late.append)
        assert late == said


def test_a_coordinator_that_is_away_for_a_moment_changes_nothing(python: Path, tmp_path: Path) -> None:
    said: list[str] = []
    with lab(tmp_path, python) as made, PlaceProcess(made.place("rig2")) as process:
        process.ask("reserve", place="rig2")
        held = HeldPlace(made.place("rig2"), process, poll=0.1, latest=1.5)
        held.on_loss(said.append)
        made.coordinator.send_signal(signal.SIGSTOP)
        time.sleep(1.0)
        assert said == []
        made.coordinator.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        assert said == []
        made.coordinator.kill()
        until(lambda: bool(said), 20.0)
        assert "does not answer" in said[0]
        held.release()


# --- mistakes ------------------------------------------------------------------------------------------------------


def test_an_unknown_place_is_the_users_mistake(running: Lab) -> None:
    with pytest.raises(UsageError, match=r"has no place rgi1; did you mean rig1\?") as caught:
        reserved(running.place("rgi1"), quiet).__enter__()
    assert "labgrid-client -p rgi1 create" in caught.value.hint


def test_a_place_that_no_exporter_serves(running: Lab) -> None:
    with pytest.raises(RigError, match=r"rig3 is not there: no exporter has a resource for its match \*/rig3/\*"):
        reserved(running.place("rig3"), quiet).__enter__()
    assert running.reservations() == []


def test_a_coordinator_that_cannot_be_reached(python: Path) -> None:
    place = LabgridPlace(place="rig1", coordinator="127.0.0.1:9", python=str(python))
    with pytest.raises(RigError, match=r"coordinator of labgrid at 127\.0\.0\.1:9 cannot be reached") as caught:
        reserved(place, quiet).__enter__()
    assert "LG_COORDINATOR" in caught.value.hint


@pytest.mark.parametrize("interpreter", ["/no/python", "here"])
def test_labgrid_that_is_not_installed(interpreter: str) -> None:
    place = LabgridPlace(place="rig1", python=sys.executable if interpreter == "here" else interpreter)
    with pytest.raises(UsageError) as caught:
        reserved(place, quiet).__enter__()
    assert "pip install 'labgrid>=25'" in caught.value.hint


def test_an_interpreter_that_is_something_else() -> None:
    with pytest.raises(RigError, match="labgrid's process ended: it printed nothing"):
        reserved(LabgridPlace(place="rig1", python="/bin/true"), quiet).__enter__()


# --- rigs ----------------------------------------------------------------------------------------------------------

RIG = """
[rig]
name = "shelf"
[dut]
kind = "ssh"
host = "nobody@127.0.0.1"
ssh_options = ["-p", "9"]
[labgrid]
place = "PLACE"
coordinator = "ADDRESS"
python = "PYTHON"
[[switch]]
name = "mains"
driver = "kmtronic"
ports = 1
mechanism = "mains"
device = "/dev/null"
[[controller]]
name = "usb"
path = "0000:00:14.0"
[[disk]]
name = "disk1"
at = "usb.1"
serial = "S1"
size = "1 GB"
power = "mains.1"
"""


def rig_text(running: Lab, place: str) -> str:
    text = RIG.replace("PLACE", place).replace("ADDRESS", running.address)
    return text.replace("PYTHON", str(running.python))


def test_a_rig_outside_a_run_takes_its_place_too(running: Lab, tmp_path: Path) -> None:
    rig = parse_rig(rig_text(running, "rig2"))
    with place_and_lease(rig, tmp_path / "rig.toml"):
        assert len(running.reservations()) == 1
        with pytest.raises(RigError, match="place rig2 is not free"):
            place_and_lease(rig, tmp_path / "rig.toml").__enter__()
    assert running.reservations() == []


def test_a_rig_in_use_is_left_out_of_the_night_and_shown_as_taken(
    running: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rig.toml"
    file.write_text(rig_text(running, "rig2"))
    with holder(running.place("rig2")):
        (trouble,) = preflight(file, tmp_path, 0).troubles
        assert trouble.startswith("the place rig2 is not free: reserved by ")
        assert main(["fleet", "status", str(file), "--archive", str(tmp_path), "--json"]) == 0
    (rig,) = json.loads(capsys.readouterr().out)["rigs"]
    (user,) = rig["users"]
    assert (rig["state"], rig["place"], user["source"]) == ("taken", "rig2", "labgrid, reserved")
    assert main(["fleet", "status", str(file), "--archive", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "shelf  free     (place rig2)"


@pytest.mark.parametrize(("place", "status", "says"), [("rig9", 2, "has no place rig9"), ("rig3", 3, "is not there")])
def test_a_run_begins_only_with_its_place(
    running: Lab, tmp_path: Path, capfd: pytest.CaptureFixture[str], place: str, status: int, says: str
) -> None:
    file = tmp_path / "rig.toml"
    file.write_text(rig_text(running, place))
    environment = {**os.environ, "PYTHONPATH": str(Path(plugpull.__file__).parents[1])}
    command = [sys.executable, "-m", "plugpull", "run", "--rig", str(file), "--out", str(tmp_path / "runs")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert says in ended.stdout + ended.stderr
    assert not list(tmp_path.glob("runs/*"))


# --- ports left off -------------------------------------------------------------------------------------------------


def test_ports_of_a_place_of_labgrid_are_restored_by_those_who_hold_it(tmp_path: Path) -> None:
    """Somebody else may have reserved the rig since, and may have turned the port off on purpose."""
    begun = line(run="/r", pid="1", place="rig1")
    journal = left_behind(tmp_path / "journal", "0123abcd", begun, off("4"))
    restored, notices = Restored(), list[str]()
    for held in ("", "rig2"):
        sweep(tmp_path / "journal", notices.append, restored, held)
    assert (restored.ports, journal.exists()) == ([], True)
    assert f"the ports in the journal {journal} stay off until the next run on the place rig1 of labgrid" in notices
    sweep(tmp_path / "journal", notices.append, restored, "rig1")
    assert (restored.ports, journal.exists()) == (["4"], False)


def test_a_journal_of_a_place_with_nothing_off_is_removed(tmp_path: Path) -> None:
    journal = left_behind(tmp_path / "journal", "0123abcd", line(run="/r", pid="1", place="rig1"))
    assert sweep(tmp_path / "journal", lambda text: None, Restored()) == 1
    assert not journal.exists()


def test_a_run_on_a_place_writes_it_down(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", Path("/runs/x"), "rig1")
    assert json.loads(journal.path.read_text().splitlines()[0])["place"] == "rig1"
    journal.close()


# --- in words ------------------------------------------------------------------------------------------------------


def test_who_has_a_place_is_said_without_what_a_terminal_obeys() -> None:
    now = time.time()
    reservation = PlaceReservation("T1", "ws/\x1b[2Jeve", "allocated", now - 7200, "rig1")
    state = LabState(
        {"rig1": PlaceState(reservation="T1"), "rig2": PlaceState("ws/bob\n", "", now - 600)}, (reservation,)
    )
    assert state.holder("rig1") == "reserved by ws/␛[2Jeve for 2.0 h"
    assert state.holder("rig1", "T1") == ""
    assert state.holder("rig2") == "acquired by ws/bob␊ for 10 min"
    assert state.holder("rig9") == ""


def until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
