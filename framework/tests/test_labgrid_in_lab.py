"""Two runs that compete for one place of labgrid, and the first is killed while a disk is off: everything is real, the
coordinator, the exporter, the DUT behind ssh and the relays in the disks' power leads."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from chains import RUN, chain, relays_cutting_power
from labs import lab
from long_tests import only_if_asked

import plugpull
from fixtures.lab import desk
from fixtures.peers import peers_python
from plugpull.cache import Cache

pytestmark = pytest.mark.bench
FREE_AGAIN = 90.0
"""Seconds after which the place of a run that was killed must be in use again."""


def started(rig: Path, out: Path, log: Path) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "plugpull", "run", "--rig", str(rig), "-k", "test_a_disk_dies_in_use"]
    environment = {**os.environ, "PYTHONPATH": str(Path(plugpull.__file__).parents[1])}
    with log.open("wb") as file:
        return subprocess.Popen([*line, "--out", str(out)], stdout=file, stderr=file, env=environment, cwd=out.parent)


def within(seconds: float, condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@only_if_asked
def test_the_place_of_a_run_that_was_killed_goes_to_the_next_one_and_power_is_restored(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    first_log, second_log = tmp_path / "first.log", tmp_path / "second.log"
    with (
        lab(tmp_path / "lab", peers_python(Cache.default())) as labgrid,
        chain(desk(2, size="16 MiB").replace("LAB-", "PLACE-")) as made,
        relays_cutting_power(made) as relay,
    ):
        rig = made.rig_file("ssh", relay, powers={"disk1": "relay.1", "disk2": "relay.2"})
        place = f'\n[labgrid]\nplace = "rig1"\ncoordinator = "{labgrid.address}"\npython = "{labgrid.python}"\n'
        rig.write_text(rig.read_text() + place)
        first = started(rig, tmp_path / "first", first_log)
        second: subprocess.Popen[bytes] | None = None
        try:
            within(60.0, lambda: len(labgrid.reservations()) == 1, "the first run did not reserve its place")
            second = started(rig, tmp_path / "second", second_log)
            said = "waiting for the place rig1: reserved by"
            within(60.0, lambda: said in second_log.read_text(), "the second run does not wait")
            within(RUN, lambda: made.cuts[-1:] != [] and made.cuts[-1][2] is False, "nothing was cut")
            first.kill()
            first.wait()
            killed, before, off = time.monotonic(), len(made.cuts), made.cuts[-1]
            assert off[1:] == ("power", False)
            within(FREE_AGAIN, lambda: (off[0], "power", True) in made.cuts[before:], "power was not restored")
            print(f"power is back {time.monotonic() - killed:.1f} s after the run was killed")
            assert second.wait(RUN) == 0, second_log.read_text()
        finally:
            for run in (first, second):
                if run is not None:
                    run.kill()
                    run.wait()
        within(10.0, lambda: labgrid.reservations() == [], "the second run still has the place")
        assert [cut for cut in made.cuts if cut[0] == off[0]][-1][2] is True
    assert "was left off" in second_log.read_text()
