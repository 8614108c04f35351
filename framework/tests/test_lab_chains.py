"""Whole chains: stock scenarios against a guest that stands for metal, cut by doubles of real switches.

Each runs ``plugpull run`` as its user does; its rig files name an ssh host or the DUT itself, and switches by
their drivers, but not QEMU.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from chains import (
    HID_RELAY,
    UHUBCTL,
    YKUSH,
    YKUSH_CABLES,
    Outcome,
    as_delivered,
    chain,
    relays_cutting_power,
    run_here,
    run_in_guest,
)
from long_tests import only_if_asked

from fixtures.gadgets.plugged import plugged
from fixtures.lab import desk

pytestmark = pytest.mark.bench
OWN_HUB = """
[[controller]]
name = "dummy"
path = "dummy_hcd.0"
ports = 1

[[hub]]
name = "own"
at = "dummy.1"
cable = "ykush.3"
"""
"""The hub that the YKUSH's own control cable is plugged into, as a rig file would have it."""


BUSY = re.compile(
    r"^it is not known whether disk\d kept its pace: the samples of disk\d have a hole of "
    r"|^the sampler was starved for |, but nothing was sampled for "
)
"""Doubts for which a busy machine is enough."""


def assert_cut_and_passed(outcome: Outcome, mechanism: str) -> None:
    """PASS; or nothing was wrong, and this machine was too busy to sample the disks that were not cut all the time."""
    verdict = outcome.results.get("verdict")
    if verdict == "UNKNOWN":
        (scenario,) = outcome.results["scenarios"]
        assert not [why for why in scenario["unknowns"] if not BUSY.search(why)], outcome.printed
    assert (outcome.status, verdict) in ((0, "PASS"), (3, "UNKNOWN")), outcome.printed
    assert outcome.cuts
    for cut in outcome.cuts:
        assert cut["mechanism"] == mechanism
        assert cut["commanded_at"] <= cut["acknowledged_at"]
        assert cut["kernel_saw_at"] is not None


def assert_lie_is_found(outcome: Outcome) -> None:
    """UNKNOWN, and for the reason that the switch did not do what it said."""
    assert (outcome.status, outcome.results.get("verdict")) == (3, "UNKNOWN"), outcome.printed
    assert "the switch cut nothing" in outcome.printed, outcome.printed


@only_if_asked
def test_ssh_dut_and_a_serial_relay_in_each_power_lead(tmp_path: Path) -> None:
    with chain(desk(3)) as made, relays_cutting_power(made) as relay:
        rig = made.rig_file("ssh", relay, powers={f"disk{n}": f"relay.{n}" for n in (1, 2, 3)})
        outcome = run_here(rig, "test_a_disk_dies_in_use", tmp_path / "out")
        assert_cut_and_passed(outcome, "mains")
        off, on = [cut for cut in made.cuts if cut[0] == outcome.cuts[0]["point"].split(".")[0]]
        assert (off[1:], on[1:]) == (("power", False), ("power", True)), "power was not restored"


@only_if_asked
def test_ssh_dut_and_a_serial_relay_that_is_not_in_the_power_lead(tmp_path: Path) -> None:
    with chain(desk(2)) as made, relays_cutting_power(made, connected=False) as relay:
        rig = made.rig_file("ssh", relay, powers={f"disk{n}": f"relay.{n}" for n in (1, 2)})
        assert_lie_is_found(run_here(rig, "test_a_disk_dies_in_use", tmp_path / "out"))


def test_ssh_dut_and_a_ykush_that_hangs_off_it(tmp_path: Path) -> None:
    with chain(desk(3, size="16 MiB")) as made:
        as_delivered(made)
        rig = made.rig_file("ssh", YKUSH, cables=YKUSH_CABLES)
        with plugged(made, "ykush", cuts={1: "disk1", 2: "disk2", 3: "disk3"}) as ykush:
            assert_cut_and_passed(run_here(rig, "test_while_writing", tmp_path / "out"), "vbus")
            assert "off" in ykush.said()


@only_if_asked
def test_ssh_dut_and_a_ykush_that_lies_or_would_cut_itself(tmp_path: Path) -> None:
    with chain(desk(3, size="16 MiB")) as made:
        as_delivered(made)
        rig = made.rig_file("ssh", YKUSH, cables=YKUSH_CABLES)
        with plugged(made, "ykush"):  # it says that it switched, and the cables go past it
            assert_lie_is_found(run_here(rig, "test_while_writing", tmp_path / "lie"))
            own = made.rig_file("ssh", YKUSH + OWN_HUB, cables={"disk1": "ykush.1"})
            refused = run_here(own, "test_while_writing", tmp_path / "own")
            assert refused.status == 2, refused.printed
            assert "switch ykush would cut its own control path" in refused.printed


@only_if_asked
def test_the_framework_on_the_dut_itself_and_a_ykush() -> None:
    with chain(desk(3, size="16 MiB")) as made:
        rig = made.rig_text("local", YKUSH.replace('via = "dut"\n', ""), cables=YKUSH_CABLES)
        with plugged(made, "ykush", cuts={1: "disk1", 2: "disk2", 3: "disk3"}):
            # All disks at once: beside the framework itself, an emulated machine can starve the sampling of survivors.
            assert_cut_and_passed(run_in_guest(made, rig, "test_the_whole_tree_is_cut_in_operation"), "vbus")


@only_if_asked
def test_ssh_dut_and_the_port_power_of_its_hub(tmp_path: Path) -> None:
    with chain(desk(2, hub=True, size="16 MiB", rate="1 MiB/s")) as made:
        rig = made.rig_file("ssh", UHUBCTL, cables={"disk1": "ports.1", "disk2": "ports.2"})
        assert_cut_and_passed(run_here(rig, "test_while_reading", tmp_path / "out"), "logical")


@only_if_asked
def test_ssh_dut_and_a_hid_relay_in_each_power_lead(tmp_path: Path) -> None:
    with chain(desk(2, size="16 MiB")) as made:
        rig = made.rig_file("ssh", HID_RELAY, powers={"disk1": "relays.1", "disk2": "relays.2"})
        with plugged(made, "hid-relay", cuts={1: "disk1 power", 2: "disk2 power"}, serial="HR123"):
            outcome = run_here(rig, "test_a_disk_dies_in_use", tmp_path / "out")
            assert_cut_and_passed(outcome, "mains")
            disk = outcome.cuts[0]["point"].split(".")[0]
            assert [cut[1:] for cut in made.cuts if cut[0] == disk][-2:] == [("power", False), ("power", True)]
