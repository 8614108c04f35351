"""The commands in a report that run it again: they repeat the random choices and the bench."""

from __future__ import annotations

import pytest
import report_stories as made
from test_report_html import Page

from plugpull.history import events as ev
from plugpull.report.html import render_html
from plugpull.report.rerun import run_again, scenario_again

ONE = "scenarios/test_x.py::test_cut[disk 1]"


def begun(*argv: str) -> ev.RunBegun:
    return ev.RunBegun(version=1, plugpull="0", wall="", rig_name="r", rig={}, seed=20310302, argv=argv)


@pytest.mark.parametrize(
    ("argv", "again"),
    [
        ("plugpull run --rig a.toml", "plugpull run --rig a.toml --seed 7"),
        ("plugpull run --seed 7 scenarios", "plugpull run --seed 7 scenarios"),
        ("plugpull run --seed=7", "plugpull run --seed=7"),
        ("/usr/bin/pytest scenarios", "/usr/bin/pytest scenarios --plugpull-seed 7"),
        ("pytest --plugpull-seed 7", "pytest --plugpull-seed 7"),
        ("", f"plugpull run '{ONE}' --seed 7"),
    ],
)
def test_a_run_again_has_the_seed_once(argv: str, again: str) -> None:
    assert run_again(argv.split(), [ONE], 7) == again


@pytest.mark.parametrize(
    ("argv", "again"),
    [
        ("", f"plugpull run '{ONE}' --seed 7"),
        ("plugpull run scenarios -k cut --out o --rig a.toml", f"plugpull run '{ONE}' --rig a.toml --seed 7"),
        ("plugpull run --rig=a.toml --kernel k --seed 5", f"plugpull run '{ONE}' --rig=a.toml --kernel k --seed 7"),
        ("plugpull run --every-victim --rotate=12", f"plugpull run '{ONE}' --rotate=12 --every-victim --seed 7"),
        (
            "pytest scenarios --rig a.toml --plugpull-module m.ko -x",
            f"pytest '{ONE}' --rig a.toml --plugpull-module m.ko --plugpull-seed 7",
        ),
    ],
)
def test_a_scenario_again_is_on_the_same_bench(argv: str, again: str) -> None:
    assert scenario_again(argv.split(), ONE, 7) == again


def test_the_report_names_both() -> None:
    results = made.results_of(made.passing())
    page = Page(render_html(results, {}, begun=begun("plugpull", "run", "--rig", "lab.toml")))
    assert "plugpull run --rig lab.toml --seed 20310302" in page.words
    assert f"plugpull run '{made.PASSING}' --rig lab.toml --seed 20310302" in page.words


def test_a_run_of_studies_is_repeated_by_the_same_command() -> None:
    argv = ["plugpull", "measure", "--rig", "r.toml", "--repeats", "3"]
    assert run_again(argv, ["a.py::b"], 7) == "plugpull measure --rig r.toml --repeats 3 --seed 7"
    assert scenario_again(argv, "a.py::b", 7) == "plugpull measure a.py::b --rig r.toml --repeats 3 --seed 7"
