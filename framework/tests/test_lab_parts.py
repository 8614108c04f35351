"""What a lab is put together from, without starting one."""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from rig_builder import a_rig

from fixtures.lab import LabUnavailable, desk, packages
from fixtures.lab.additions import additions, require
from fixtures.lab.rigfile import real_rig
from plugpull.rig.load import load_rig
from plugpull.virtual.bench import shape_of
from plugpull.virtual.image import base_tree, cpio, module_tree
from plugpull.virtual.machine import Shape, arguments
from plugpull.virtual.setting import crowded

PLAIN = Shape("tcg", 2, 512 << 20, ())


def test_a_plain_guest_has_neither_network_nor_further_channels() -> None:
    line = " ".join(arguments(PLAIN, Path("/ram"), share=False))
    assert "netdev" not in line
    assert "virtio-net" not in line
    assert line.count("virtserialport") == 1


def test_a_forwarded_port_is_reached_from_loopback_only_and_the_guest_reaches_nobody() -> None:
    shape = Shape("tcg", 2, 512 << 20, (), (), ("more",), forwarded=22)
    line = " ".join(arguments(shape, Path("/ram"), share=False))
    assert "user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:0-:22" in line
    assert "virtserialport,bus=serial0.0,chardev=more,name=more" in line
    assert shape.text() != PLAIN.text()


def test_one_thread_emulates_all_cpus_where_benches_have_more_than_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert [crowded(cpus, benches) for cpus, benches in ((2, 1), (1, 2), (2, 2), (3, 1))] == [False, False, True, True]
    one = replace(PLAIN, one_thread=True)
    assert [shape.threads for shape in (PLAIN, one, replace(one, accel="kvm"))] == [2, 1, 2]
    assert "-accel tcg,thread=single," in " ".join(arguments(one, Path("/ram"), share=False))
    assert "-accel tcg,thread=multi," in " ".join(arguments(PLAIN, Path("/ram"), share=False))


def test_a_snapshot_fits_a_guest_with_any_number_of_threads() -> None:
    one = replace(PLAIN, one_thread=True)
    assert (one, one.text()) == (PLAIN, PLAIN.text())


def test_hubs_are_there_when_the_guest_boots() -> None:
    rig = a_rig().switch(ports=1).controller().hub("outer", "usb.1", ports=4).hub("inner", "outer.3", ports=8)
    rig = rig.disk("disk1", "inner.1", "HUBS-1", "16 MiB", scratch=True)
    shape = shape_of(rig.load(), "tcg")
    line = " ".join(arguments(shape, Path("/ram"), share=False))
    assert "usb-hub,id=outer,bus=usb.0,port=1,ports=4 -device usb-hub,id=inner,bus=usb.0,port=1.3,ports=8" in line
    without = shape_of(rig.load(), "tcg", hubs=False)
    assert "usb-hub" not in " ".join(arguments(without, Path("/ram"), share=False))
    moved = replace(shape, hubs=(replace(shape.hubs[0], port="2"), shape.hubs[1]))
    renamed = replace(shape, hubs=tuple(replace(hub, name=hub.name + "s") for hub in shape.hubs))
    assert renamed.text() == shape.text()  # a snapshot has no names in it
    assert len({one.text() for one in (shape, without, moved)}) == 3


def test_modules_are_loaded_with_their_parameters() -> None:
    tree = module_tree([("udc-core.ko", b"1"), ("dummy_hcd.ko", b"2")], {"dummy_hcd": "num=4"})
    order = next(entry.data for entry in tree.entries() if entry.path == "plugpull/modules.order")
    assert order == b"udc-core.ko\ndummy_hcd.ko num=4\n"
    assert cpio(tree.entries()).count(b"num=4") == 1


def test_what_init_runs_first_is_run_before_the_agent() -> None:
    script = next(entry.data for entry in base_tree(init=("first",)).entries() if entry.path == "init").decode()
    assert script.index("\nfirst\n") < script.index("agent.zip")


def test_an_extra_changes_what_the_snapshot_is_known_by() -> None:
    assert additions(frozenset()).digest == additions(frozenset()).digest
    assert additions(frozenset({"uhubctl"})).digest != additions(frozenset()).digest


def test_an_extra_there_is_not() -> None:
    with pytest.raises(ValueError, match="usb-over-ip"):
        require(frozenset({"usb-over-ip"}))


def test_packages_for_another_python_are_not_put_into_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.version_info", (3, 99, 0))
    assert "3.99" in packages.python_mismatch()
    with pytest.raises(LabUnavailable, match=r"3\.99"):
        require(frozenset({"hid"}))


def test_all_that_a_package_requires_goes_along() -> None:
    assert {"pytest", "pluggy", "iniconfig"} <= packages.closure(["pytest"]).keys()
    assert packages.absent(["pytest", "no-such-package-at-all"]) == ["no-such-package-at-all"]


@pytest.mark.parametrize("hub", [False, True])
def test_the_rig_as_metal_has_the_same_tree_and_nothing_virtual(tmp_path: Path, hub: bool) -> None:
    (tmp_path / "lab.toml").write_text(desk(2, hub=hub))
    rig = load_rig(tmp_path / "lab.toml")
    cables = {"disk1": "board.1", "hub1": "board.2"}
    text = real_rig(rig, "metal", shape_of(rig, "tcg"), "ssh", {"host": '"dut"'}, "", cables, {"disk2": "board.3"})
    read = tomllib.loads(text)
    assert read["dut"] == {"kind": "ssh", "host": "dut"}
    assert read["controller"] == [{"name": "usb", "path": "0000:00:10.0", "ports": 8}]
    assert [disk.get("cable") for disk in read["disk"]] == ["board.1", None]
    assert [disk.get("power") for disk in read["disk"]] == [None, "board.3"]
    assert [thing["cable"] for thing in read.get("hub", ())] == (["board.2"] if hub else [])
    assert [disk["at"] for disk in read["disk"]] == [disk.at for disk in rig.disk]
    assert "virtual" not in text
    assert "qemu" not in text
