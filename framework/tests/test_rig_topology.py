"""The topology of a rig, the blast radius of each cut, and the printed tree."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from rig_builder import a_rig

from plugpull.commands.rig_check import rig_check
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_PASS, EXIT_USAGE
from plugpull.rig.load import load_rig
from plugpull.rig.model import Disk, Hub, Mechanism, Rig
from plugpull.rig.topology import DevicePath, Topology, free_sockets, sockets_elsewhere, with_disks_at
from plugpull.rig.tree import tree_text

RIGS = Path(__file__).parents[2] / "rigs"
TREE_OF_SIX = ("disk1", "disk2", "disk3", "disk4", "disk5", "disk6")


@pytest.fixture(scope="module")
def study() -> Topology:
    return Topology(load_rig(RIGS / "external-disk-study.toml"))


def small(mechanism: str = "data+vbus") -> Rig:
    return Rig.model_validate(
        {
            "rig": {"name": "small"},
            "dut": {"kind": "local", "power": "mains.4"},
            "switch": [
                {"name": "hubs", "driver": "ykush", "ports": 4, "mechanism": mechanism},
                {"name": "mains", "driver": "relay", "ports": 4, "mechanism": "mains"},
            ],
            "controller": [{"name": "usb", "path": "0000:00:14.0", "ports": 12}],
            "hub": [{"name": "hub1", "at": "usb.1", "cable": "hubs.3", "power": "mains.3"}],
            "disk": [
                {"name": "last", "at": "usb.10", "serial": "C", "size": 512, "cable": "hubs.1", "power": "mains.1"},
                {"name": "stick", "at": "hub1.2", "serial": "B", "size": 512, "cable": "hubs.2", "self_powered": False},
                {"name": "tower", "at": "hub1.1", "serial": "A", "size": 512},
            ],
        }
    )


def test_children_are_in_the_order_of_their_ports(study: Topology) -> None:
    assert study.children("usb1") == ("hub1", "disk7")
    assert study.children("hub1") == ("disk1", "disk2", "hub2")
    assert study.children("disk1") == ()
    assert Topology(small()).children("usb") == ("hub1", "last"), "port 10 comes after port 1 and 2"
    assert Topology(small()).children("hub1") == ("tower", "stick")


def test_paths(study: Topology) -> None:
    assert study.path_of("disk6") == DevicePath("usb1", (1, 4, 4))
    assert study.path_of("hub2") == DevicePath("usb1", (1, 4))
    assert study.path_of("disk9") == DevicePath("usb2", (2,))
    assert study.path_of("usb2") == DevicePath("usb2", ())
    assert str(study.path_of("disk6")) == "usb1/1.4.4"


def test_disks_below(study: Topology) -> None:
    assert study.disks_below("hub1") == TREE_OF_SIX
    assert study.disks_below("hub2") == TREE_OF_SIX[2:]
    assert study.disks_below("usb1") == (*TREE_OF_SIX, "disk7")
    assert study.disks_below("disk8") == ("disk8",)


def test_the_blast_radius_of_every_kind_of_cut(study: Topology) -> None:
    assert study.blast_radius("hub1.cable") == TREE_OF_SIX
    assert study.blast_radius("hub2.cable") == TREE_OF_SIX[2:]
    assert study.blast_radius("disk7.cable") == ("disk7",)
    point = study.cut_points()["disk7.power"]
    assert (point.outlet, point.switch, point.port, point.device) == ("mains.7", "mains", "7", "disk7")
    assert point.mechanism is Mechanism.MAINS
    assert study.blast_radius(point) == point.victims == point.unpowered == ("disk7",)
    assert study.cut_points()["hub1.cable"].unpowered == (), "a data cut leaves every cache as it is"


def test_every_disk_of_the_virtual_rigs_can_lose_its_cable_and_its_power() -> None:
    for rig in map(load_rig, RIGS.glob("*.toml")):
        if rig.dut.kind != "virtual" or not rig.switch:  # one without switches is only for measuring
            continue
        points = Topology(rig).cut_points()
        assert {f"{disk.name}.{kind}" for disk in rig.disk for kind in ("cable", "power")} <= set(points)
        assert {f"{hub.name}.cable" for hub in rig.hub} <= set(points)


def test_a_power_cut_of_the_dut_takes_every_disk() -> None:
    topology = Topology(small())
    assert list(topology.cut_points()) == [
        "dut.power",
        "hub1.cable",
        "hub1.power",
        "last.cable",
        "last.power",
        "stick.cable",
    ]
    assert topology.blast_radius("dut.power") == ("last", "stick", "tower")


def test_which_victims_lose_their_power() -> None:
    """Disks fed by VBUS lose it with the hub's mains or VBUS; self-powered ones only with their own power."""
    points = Topology(small()).cut_points()
    assert points["hub1.cable"].unpowered == ("stick",)
    assert points["hub1.power"].unpowered == ("stick",)
    assert points["stick.cable"].unpowered == ("stick",)
    assert points["last.cable"].unpowered == ()
    assert points["last.power"].unpowered == ("last",)
    assert points["dut.power"].unpowered == ("stick",)
    assert Topology(small("data")).cut_points()["stick.cable"].unpowered == ()


def shelf() -> Rig:
    """Two disks on one outlet."""
    rig = small()
    disks = [
        disk.model_copy(update={"power": power})
        for disk, power in zip(rig.disk, ("mains.1", None, "mains.1"), strict=True)
    ]
    return rig.model_copy(update={"disk": tuple(disks)})


def test_a_shared_outlet_cuts_everything_it_feeds() -> None:
    points = Topology(shelf()).cut_points()
    last, tower = points["last.power"], points["tower.power"]
    assert last.victims == tower.victims == ("last", "tower")
    assert last.unpowered == tower.unpowered == ("last", "tower"), "each through a supply of its own"
    assert (last.shares_with, tower.shares_with) == (("tower.power",), ("last.power",))
    assert (points["hub1.power"].shares_with, points["last.cable"].victims) == ((), ("last",))
    text = tree_text(shelf())
    assert "cut tower.power (mains by mains.1, shared with last.power) takes last, tower\n" in text


def test_everything_on_the_outlet_of_a_hub_goes_with_it() -> None:
    rig = shelf()
    disks = (rig.disk[0].model_copy(update={"power": "mains.3"}), *rig.disk[1:])
    point = Topology(rig.model_copy(update={"disk": disks})).cut_points()["hub1.power"]
    assert point.victims == ("last", "stick", "tower")
    assert point.unpowered == ("last", "stick")


def test_a_rig_made_by_hand_with_holes_in_it() -> None:
    good = small()
    loop = good.model_copy(update={"hub": (Hub(name="a", at="b.1"), Hub(name="b", at="a.1"))})
    with pytest.raises(UsageError, match="loop"):
        Topology(loop).path_of("a")
    assert Topology(loop).disks_below("a") == ()
    dangling = good.model_copy(update={"disk": (Disk(name="d", at="no.1", serial="S", size=512, cable="no.1"),)})
    with pytest.raises(UsageError, match='no controller, hub or disk named "no"'):
        Topology(dangling).path_of("d")
    with pytest.raises(UsageError, match="no such switch"):
        Topology(dangling).cut_points()
    with pytest.raises(UsageError, match="no cut point"):
        Topology(good).blast_radius("hub2.cable")


def test_the_tree_as_text() -> None:
    assert tree_text(small()) == (
        "small  local DUT, 3 disks\n"
        "├── cut dut.power (mains by mains.4) takes last, stick, tower\n"
        "└── usb  0000:00:14.0, 12 ports\n"
        "    ├── 1: hub1  4 ports\n"
        "    │   ├── cut hub1.cable (data+vbus by hubs.3) takes stick, tower\n"
        "    │   ├── cut hub1.power (mains by mains.3) takes stick, tower\n"
        "    │   ├── 1: tower  A, 512 B, usb-storage, not scratch, never written\n"
        "    │   └── 2: stick  B, 512 B, usb-storage, powered by VBUS, not scratch, never written\n"
        "    │       └── cut stick.cable (data+vbus by hubs.2) takes stick\n"
        "    └── 10: last  C, 512 B, usb-storage, not scratch, never written\n"
        "        ├── cut last.cable (data+vbus by hubs.1) takes last\n"
        "        └── cut last.power (mains by mains.1) takes last\n"
    )


# --- plugpull rig check ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [False, True])
def test_checking_a_good_rig_shows_the_tree(terminal: bool, capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    console = Console(file=out, width=50, force_terminal=terminal, color_system=None)
    assert rig_check(RIGS / "external-disk-study.toml", console) == EXIT_PASS
    shown = out.getvalue()
    assert "cut hub1.cable (data by cables.10)" in shown
    assert ("takes disk1, disk2, disk3, disk4, disk5, disk6\n" in shown) is not terminal, "only a terminal is narrow"
    assert capsys.readouterr().err == ""


def test_checking_a_bad_rig_shows_every_mistake_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.toml"
    text = (RIGS / "quick.toml").read_text().replace('"usb.1"', '"usb.9"').replace("scratch", "scratsh", 2)
    path.write_text(text)
    out = io.StringIO()
    assert rig_check(path, Console(file=out)) == EXIT_USAGE
    assert out.getvalue() == ""
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"{path}:") for line in lines)


# --- sockets elsewhere ----------------------------------------------------------------------------------------------

CROWDED = (
    a_rig()
    .switch(ports=4)
    .controller("one", ports=3)
    .controller("two", ports=2)
    .hub("near", "one.1", ports=3, cable="cables.1")
    .hub("far", "near.3", ports=2)
    .disk("disk1", "near.1")
    .disk("disk2", "far.1")
    .disk("disk3", "one.2", protocol="uas")
    .disk("disk4", "two.1")
    .load()
)


def test_sockets_beside_a_hub_are_not_below_it() -> None:
    assert free_sockets(CROWDED) == ("near.2", "far.2", "one.3", "two.2")
    assert sockets_elsewhere(CROWDED, ["disk1", "disk2", "disk3"], "near") == {"disk1": "one.3", "disk2": "two.2"}
    assert sockets_elsewhere(CROWDED, ["disk2"], "far") == {"disk2": "near.2"}
    assert sockets_elsewhere(CROWDED, ["disk1"], "near", another_controller=True) == {"disk1": "two.2"}


def test_an_emulated_hub_takes_no_uas_disk() -> None:
    assert sockets_elsewhere(CROWDED, ["disk3"], "far") == {"disk3": "one.3"}


def test_a_moved_disk_has_another_blast_radius() -> None:
    moved = with_disks_at(CROWDED, {"disk1": "two.2"})
    assert Topology(moved).cut_point("near.cable").victims == ("disk2",)
    assert Topology(CROWDED).cut_point("near.cable").victims == ("disk1", "disk2")
