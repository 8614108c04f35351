"""The choice of the disk to cut: drawn with a seed, every disk, or the next one each night."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dry_runs import dry_run

from plugpull.commands.pytest_line import _dated
from plugpull.draw import Draw, candidates_of, disks_driven_by, disks_too_small, night, pairs_to_swap
from plugpull.errors import UsageError
from plugpull.exit_status import EXIT_PASS, EXIT_USAGE
from plugpull.history import events as ev
from plugpull.rig.load import load_rig
from plugpull.rig.model import Rig
from plugpull.rig.topology import Topology
from plugpull.run import OpenScenario
from plugpull.run_options import Options
from plugpull.streams import Streams

RIGS = Path(__file__).parents[2] / "rigs"
PARTS = [SimpleNamespace(name=name) for name in ("disk1", "disk2", "disk3")]
"""The disks of ``quick.toml``."""


def names(draw: Draw, count: int = 1) -> list[str]:
    return [draw.choose(PARTS).name for _ in range(count)]


# --- the draw ----------------------------------------------------------------------------------------------


def test_a_seed_repeats_its_choices() -> None:
    first, second = (names(Draw(random.Random("7:a"), "a"), 20) for _ in range(2))
    assert first == second
    assert set(first) == {part.name for part in PARTS}


def test_what_is_wanted_is_chosen_first_and_only_first() -> None:
    draw = Draw(random.Random(3), wanted="disk3")
    assert names(draw)[0] == "disk3"
    assert set(names(draw, 40)) == {part.name for part in PARTS}


def test_what_is_wanted_and_is_no_candidate_is_drawn() -> None:
    assert names(Draw(random.Random(3), wanted="hub1"))[0] in {part.name for part in PARTS}


@pytest.mark.parametrize("scenario", ["a", "b", "scenarios/test_x.py::test_y"])
def test_as_many_nights_as_candidates_cover_them_all(scenario: str) -> None:
    chosen = [names(Draw(random.Random(1), scenario, turn=turn))[0] for turn in range(100, 103)]
    assert sorted(chosen) == [part.name for part in PARTS]


def test_scenarios_do_not_all_take_the_same_disk_in_one_night() -> None:
    chosen = {names(Draw(random.Random(1), f"scenario {number}", turn=5))[0] for number in range(20)}
    assert len(chosen) > 1


def test_a_turn_leaves_nothing_to_the_seed() -> None:
    one, two = (names(Draw(random.Random(seed), "a", turn=9), 6) for seed in (1, 2))
    assert one == two
    assert sorted(one[:3]) == [part.name for part in PARTS], "the second choice of a scenario is the next one"


@pytest.mark.parametrize("turn", [None, 4])
def test_what_is_preferred_is_chosen_wherever_there_is_any(turn: int | None) -> None:
    def chosen(preferred: tuple[str, ...], wanted: str = "") -> list[str]:
        return names(Draw(random.Random(3), "a", turn=turn, preferred=preferred, wanted=wanted), 40)

    assert set(chosen(("disk1", "disk3"))) == {"disk1", "disk3"}
    assert set(chosen(("elsewhere",))) == set(chosen(())) == {part.name for part in PARTS}
    assert chosen(("disk1",), wanted="disk2")[0] == "disk2", "a victim that was asked for is taken all the same"


@pytest.mark.parametrize(
    ("modules", "disks"),
    [
        (("uas",), ("uas",)),
        (("usb_storage", "sd_mod"), ("bot", "behind")),
        (("uas", "usb_storage"), ("bot", "uas", "behind")),
        (("sd_mod", "usbcore", "raid1"), ()),
    ],
)
def test_another_build_of_a_driver_is_tried_on_the_disks_that_it_drives(
    modules: tuple[str, ...], disks: tuple[str, ...]
) -> None:
    assert disks_driven_by(modules, load_rig(RIGS / "volatile-caches.toml")) == disks


def test_a_run_with_a_build_of_a_driver_prefers_its_disks() -> None:
    def victims(*modules: str) -> set[str]:
        rig = load_rig(RIGS / "volatile-caches.toml")
        run: Any = SimpleNamespace(options=Options(rig=RIGS, modules=tuple(map(Path, modules))), rig=rig)
        scenario: Any = SimpleNamespace(_run=run, _name="a", _victim="")
        draw = OpenScenario.draw(scenario, Streams(7, "a"))
        return {draw.choose(rig.disk).name for _ in range(60)}

    assert victims("/tmp/usb-storage.ko.xz", "sd_mod.ko") == {"bot", "behind"}
    assert victims("sd_mod.ko") == victims() == {"bot", "uas", "behind"}


def test_a_night_is_a_number_or_today() -> None:
    assert night("12") == 12
    assert night("today") >= 20000
    with pytest.raises(UsageError, match="'tonight' is not a night"):
        night("tonight")


def test_the_recorded_command_repeats_the_night() -> None:
    assert _dated(["run", "--rotate", "today", "-k", "today"], 9) == ["run", "--rotate", "9", "-k", "today"]
    assert _dated(["run", "--rotate=today"], 9) == ["run", "--rotate=9"]
    assert _dated(["run"], None) == ["run"]


# --- candidates in a scenario's source ---------------------------------------------------------------------


def cable(rig: Any) -> None:
    rig.choose_victim()
    rig.choose_hub()


def power(rig: Any) -> None:
    rig.choose_victim("power")


def power_by_name(rig: Any) -> None:
    rig.choose_victim(kind="power")


def hub(rig: Any) -> None:
    rig.choose_hub()


def nothing(rig: Any) -> None:
    rig.whole_tree()


@pytest.mark.parametrize(
    ("scenario", "rig", "expected"),
    [
        (cable, "quick", ("disk1", "disk2", "disk3")),
        (power, "quick", ("disk1", "disk2", "disk3")),
        (power_by_name, "uhubctl-hub", ()),
        (hub, "quick", ("hub1",)),
        (hub, "ykush-desk", ()),
        (nothing, "quick", ()),
    ],
)
def test_candidates_are_those_of_the_first_choice(
    scenario: Callable[..., Any], rig: str, expected: tuple[str, ...]
) -> None:
    assert candidates_of(scenario, load_rig(RIGS / f"{rig}.toml")) == expected


# --- through pytest ----------------------------------------------------------------------------------------

SCENARIOS = """
def test_disk(rig):
    victim, _ = rig.choose_victim()
    rig.context.recorder.record(ev.Note(text=victim.name))
    rig.play()

def test_hub(rig):
    hub, *_ = rig.choose_hub()
    rig.context.recorder.record(ev.Note(text=hub.name))
    rig.play()

def test_tree(rig):
    rig.play()
"""
FILES = {"test_s.py": "from plugpull.history import events as ev\n" + SCENARIOS}


def chosen(folder: Path, *arguments: str) -> dict[str, list[str]]:
    stories = dry_run(folder, FILES, *arguments).history.stories
    return {story.id.partition("::test_")[2]: [note.text for note in story.of(ev.Note)] for story in stories}


def test_every_victim_runs_each_scenario_once_with_each(tmp_path: Path) -> None:
    assert chosen(tmp_path, "--plugpull-every-victim") == {
        "disk[disk1]": ["disk1"],
        "disk[disk2]": ["disk2"],
        "disk[disk3]": ["disk3"],
        "hub[hub1]": ["hub1"],
        "tree": [],
    }


def test_a_night_is_recorded_and_decides(tmp_path: Path) -> None:
    ran = dry_run(tmp_path, FILES, "--plugpull-rotate", "41", "-k", "disk")
    assert ran.history.begun is not None
    assert ran.history.begun.turn == 41
    (story,) = ran.history.stories
    expected = names(Draw(random.Random(1), story.id, turn=41))[0]
    assert [note.text for note in story.of(ev.Note)] == [expected]


def test_a_scenario_without_candidates_is_skipped_once(tmp_path: Path) -> None:
    ran = dry_run(tmp_path, FILES, "--plugpull-every-victim", "-k", "hub", rig="ykush-desk.toml")
    assert [skip["id"] for skip in ran.results["skipped"]] == ["test_s.py::test_hub"]


def test_a_rig_file_that_is_wrong_is_a_usage_error(tmp_path: Path) -> None:
    ran = dry_run(tmp_path, FILES, "--plugpull-every-victim", rig="nothere.toml")
    assert ran.status in (4, EXIT_USAGE)
    assert "there is no such rig file" in ran.output


def test_disks_of_one_controller_and_protocol_can_be_swapped() -> None:
    pairs = pairs_to_swap(Topology(load_rig(RIGS / "external-disk-study.toml")))
    assert pairs["disk8"] == ("disk9",)
    assert set(pairs["disk1"]) == {"disk2", "disk3", "disk4", "disk5", "disk6"}
    assert "disk7" not in pairs, "the only one on UAS"
    assert pairs_to_swap(Topology(load_rig(RIGS / "odd-enclosures.toml"))) == {"stick": ("plain",), "plain": ("stick",)}


# --- filesystems that fit on no disk ----------------------------------------------------------------------------------

ON_A_FILESYSTEM = """
import pytest

@pytest.mark.parametrize("fstype", ["ext4", "xfs"])
def test_files(rig, fstype):
    assert fstype == "ext4", "no bench is opened for it"
    rig.play()
"""


def test_a_filesystem_that_fits_on_no_disk_is_skipped_before_a_bench_is_opened(tmp_path: Path) -> None:
    ran = dry_run(tmp_path, {"test_files.py": ON_A_FILESYSTEM})
    assert ran.status == EXIT_PASS, ran.output
    why = "no disk of this rig is large enough: a xfs needs a disk of 300 MiB"
    assert [(one["id"], one["reason"]) for one in ran.results["skipped"]] == [("test_files.py::test_files[xfs]", why)]


def resized(size: int) -> Rig:
    """The rig with its first disk of ``size`` bytes."""
    rig = load_rig(RIGS / "quick.toml")
    first, *others = rig.disk
    return rig.model_copy(update={"disk": (first.model_copy(update={"size": size}), *others)})


def test_one_large_disk_is_enough() -> None:
    assert disks_too_small(resized(1 << 20), "xfs")
    assert not disks_too_small(resized(400 << 20), "xfs")
    assert not disks_too_small(resized(1 << 20), "ext4")
