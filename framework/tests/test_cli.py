"""The command line: its help, the arguments that it refuses, and its exit statuses."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest
from stories import BACK, Bench, encode, healthy, run_of

from plugpull.checks import kernel_clean
from plugpull.cli import main, parser
from plugpull.history import events as ev
from plugpull.judging.results_io import SCHEMA_FILE

CHECKOUT = Path(__file__).parents[2]
SWITCH = tuple(f"switch {name}" for name in ("list", "on", "off", "cycle", "status", "qualify"))
COMMANDS = (
    "run",
    "rig check",
    "rig discover",
    "check",
    "report",
    "compare",
    "bisect-step",
    "fleet status",
    "log",
    *SWITCH,
    "cache",
)
COMMANDS += ("cache clear", "measure", "merge", "meter list", "meter read", "test")
COMMANDS += ("archive index", "archive add", "trend", "nightly", "export", "fleet status")


def parsers(top: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command's parser by its name, that of the whole under the empty name."""
    yield name, top
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                yield from parsers(child, f"{name} {word}".strip())


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and a cache elsewhere."""
    directory = tmp_path / "here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.setenv("PLUGPULL_CACHE", str(tmp_path / "cache"))
    return directory


def plugpull(*words: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own: one that starts pytest must not do so in a running one."""
    command = [sys.executable, "-m", "plugpull", *words]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


# --- help ------------------------------------------------------------------------------------------------------


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("    ")}
    assert {name.split()[0] for name in COMMANDS} <= listed
    assert {name for name, _ in parsers(parser())} == {"", "rig", "switch", "meter", "archive", "fleet", *COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: plugpull {command} ")


def test_every_option_has_help_and_every_command_a_description() -> None:
    for name, command in parsers(parser()):
        assert command.description, name
        for action in command._actions:
            if not isinstance(action, argparse._SubParsersAction):
                assert action.help, f"{name}: {action.option_strings or action.dest}"


def test_the_examples_of_the_help_are_right() -> None:
    lines = [line.strip() for _, command in parsers(parser()) for line in (command.epilog or "").splitlines()]
    examples = [line.partition("   ")[0].partition(" | ")[0] for line in lines if line.startswith("plugpull ")]
    assert len(examples) >= 10
    for example in examples:
        words = example.replace('"hub or writing"', "hub").split()[1:]
        if "--help" not in words:
            parser().parse_args(words)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("plugpull ")


# --- wrong usage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "plugpull: error: the following arguments are required: COMMAND"),
        (["rig"], "plugpull rig: error: the following arguments are required: ACTION"),
        (["rnu"], "invalid choice: 'rnu'"),
        (["run", "--seed", "x"], "plugpull run: error: argument --seed: invalid int value: 'x'"),
        (["run", "--accel", "xen"], "plugpull run: error: argument --accel: invalid choice: 'xen'"),
        (["run", "--nosuch"], "plugpull: error: unrecognized arguments: --nosuch"),
        (["check"], "plugpull check: error: the following arguments are required: RUN"),
    ],
)
def test_a_command_line_that_cannot_be_understood(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert said in errors[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nothere.py"], "plugpull: there is no scenario nothere.py\n  hint: the stock scenarios are in "),
        (["run", "nothere.py::test_x"], "plugpull: there is no scenario nothere.py::test_x\n"),
        (["run", "--rig", "nothere.toml"], "plugpull: nothere.toml: there is no such rig file\n"),
        (["run", "--module", "nothere.ko"], "plugpull: the module nothere.ko does not exist\n  hint: pass "),
        (["run", "--kernel", "./nothere"], "/nothere does not exist\n  hint: pass --kernel a version "),
        (["run", "--kernel", "6.1 or so"], "plugpull: '6.1 or so' does not name a kernel\n  hint: pass "),
        (["run", "--kernel", "."], " has no kernel: neither boot/vmlinuz-VERSION with lib/modules/VERSION nor a build"),
        (["check", "nothere"], "plugpull: cannot read the history nothere: No such file or directory\n"),
        (["check", "."], "plugpull: cannot read the history history.jsonl: No such file or directory\n"),
        (["report", "nothere"], "plugpull: nothere is not a run directory\n  hint: name a run directory"),
        (["report", "."], "history.jsonl: No such file or directory\n"),
        (["cache", "clear", "--older-than", "old"], "plugpull: 'old' is not an age\n  hint: write it as 90m"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_said_before_anything_is_started(
    words: list[str], said: str, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.startswith("plugpull: ")
    assert len(err.splitlines()) <= 2
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-k", "nosuch"], "plugpull: no scenario matches -k 'nosuch'\n  hint: choose from: test_"),
        (["-k", "while_writng"], "hint: choose from: test_while_writing, "),
        (["-k", "not an expression"], "Wrong expression passed to '-k'"),
        ([str(CHECKOUT / "scenarios/test_discovery.py::test_nosuch")], "not found: "),
    ],
    ids=("no match", "a slip", "no expression", "no such test in a file"),
)
def test_nothing_that_could_be_run(words: list[str], said: str, empty: Path) -> None:
    ended = plugpull("run", *words)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("uses", [False, True])
def test_hypothesis_is_imported_only_if_a_scenario_does_so(empty: Path, uses: bool) -> None:
    (empty / "test_own.py").write_text("import hypothesis\n" if uses else "")
    line = (
        "import sys\nfrom plugpull.cli import main\ntry:\n    sys.exit(main(['run', 'test_own.py', '-k', 'nosuch']))\n"
    )
    line += "finally:\n    print('hypothesis' in sys.modules)"
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False, env=environment)
    assert ended.stdout.splitlines()[-1] == str(uses), ended


def test_a_directory_without_scenarios(empty: Path) -> None:
    (empty / "nothing").mkdir()
    ended = plugpull("run", "nothing")
    assert (ended.returncode, ended.stderr) == (2, "plugpull: no scenario in nothing\n")
    assert [path.name for path in empty.iterdir()] == ["nothing"]


# --- rig files -------------------------------------------------------------------------------------------------

BROKEN = """\
[rig]
name = "broken"

[dut]
kind = "virtal"

[[disk]]
name = "disk1"
at = "hub9.1"
serial = "S"
size = "64 MiB"
colour = "red"
"""


def test_rig_check_reports_every_mistake_at_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(BROKEN)
    assert main(["rig", "check", str(file)]) == 2
    out, err = capsys.readouterr()
    places = [line.split(": ")[0] for line in err.splitlines() if line.startswith(str(file))]
    assert out == ""
    assert places == [f"{file}:5:8", f"{file}:9:6", f"{file}:12:1"]


def test_rig_check_shows_what_each_cut_takes_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rig", "check", str(CHECKOUT / "rigs/quick.toml")]) == 0
    assert "cut hub1.cable (data by cables.4) takes disk2, disk3" in capsys.readouterr().out


# --- recorded runs ---------------------------------------------------------------------------------------------


def good() -> Bench:
    return healthy()


def failed() -> Bench:
    bench = healthy()
    bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial="ANOTHER")
    return bench


def unknown() -> Bench:
    bench = healthy(checks=(kernel_clean(),))
    bench.add(ev.RigFault(at=15.5, summary="the relay did not click"))
    return bench


@pytest.mark.parametrize(
    ("story", "verdict", "status"), [(good, "PASS", 0), (failed, "FAIL", 1), (unknown, "UNKNOWN", 3)]
)
def test_a_recorded_run_is_reported_and_judged_again_alike(
    story: Callable[[], Bench], verdict: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "history.jsonl").write_bytes(encode(run_of(story().scenario())))
    assert main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "report.html")
    assert {"report.html", "results.json", "junit.xml", "kernel.log"} <= {path.name for path in tmp_path.iterdir()}
    recorded = json.loads((tmp_path / "results.json").read_text())
    assert recorded["verdict"] == verdict

    assert main(["check", str(tmp_path)]) == status
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"{verdict}: ")
    assert main(["check", "--json", str(tmp_path / "history.jsonl")]) == status
    again = json.loads(capsys.readouterr().out)
    jsonschema.validate(again, json.loads(SCHEMA_FILE.read_text()))
    assert again == recorded


def test_check_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_bytes(encode(run_of(healthy().scenario())))
    main(["check", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["history.jsonl"]


def test_check_notices_results_that_were_edited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "history.jsonl").write_bytes(encode(run_of(failed().scenario())))
    main(["report", str(tmp_path)])
    assert main(["check", str(tmp_path)]) == 1
    assert "results.json" not in capsys.readouterr().out
    results = tmp_path / "results.json"
    results.write_text(results.read_text().replace('"verdict": "FAIL"', '"verdict": "PASS"'))
    assert main(["check", str(tmp_path)]) == 1
    assert "note: results.json says PASS, and another verdict of " in capsys.readouterr().out
    results.write_text("{")
    assert main(["check", str(tmp_path)]) == 1
    assert "is not a results file" in capsys.readouterr().out


def test_a_run_that_was_cut_short_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "history.jsonl").write_bytes(encode(run_of(healthy().scenario())[:-1]))
    assert main(["check", str(tmp_path)]) == 3
    assert "the history ends before the run did" in capsys.readouterr().out


# --- the cache -------------------------------------------------------------------------------------------------


def test_an_empty_cache_can_be_shown_and_cleared(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    assert main(["cache", "clear", "--older-than", "14d", "--kind", "snapshot"]) == 0
    assert "removed 0 entries" in capsys.readouterr().out


def test_log_of_a_file_and_of_a_pipe(tmp_path: Path) -> None:
    text = "random: crng init done\n[    1.000000] usb 1-1: USB disconnect, device number 2\n"
    (tmp_path / "a.log").write_text(text)
    command = [sys.executable, "-m", "plugpull", "log"]
    shown = subprocess.run([*command, "a.log"], capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    assert shown.splitlines()[0].split(maxsplit=3)[:3] == ["2:", "1.000000", "usb.disconnect"]
    piped = subprocess.run([*command, "--json", "-"], input=text, capture_output=True, text=True, check=True).stdout
    (row,) = (json.loads(line) for line in piped.splitlines())
    assert (row["line"], row["kind"], row["subject"]) == (2, "usb.disconnect", "1-1")
    missing = subprocess.run([*command, "b.log"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert missing.returncode == 2
    assert "cannot read b.log: No such file or directory" in missing.stderr
