"""The documents are true: their commands parse and run, their examples work, and their links have targets."""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stories import encode, healthy, run_of

import plugpull.checks
import plugpull.faults
import plugpull.load
import plugpull.studies
from plugpull.checks import Check
from plugpull.cli import main, parser
from plugpull.commands.screenshot import main as screenshot
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.load import Pattern
from plugpull.rig.model import Rig
from plugpull.setup.packages import PACKAGES
from plugpull.virtual.kernel import NEEDED

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text()
QUICK = ("rig check", "cache", "check", "report")
"""Commands that are over in a moment: those in the README are run."""
PICTURE = 300_000
"""Bytes the picture in the README may have."""
BARE = ("messages", "schema", "templates", "uplot", "vendor")
"""Directories of files that are explained a level above."""


def tracked() -> list[Path]:
    """The files of the project, also those about to be committed. Skips where there is no git."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        answer = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git checkout")
    return [path for name in answer.split("\0") if name and (path := CHECKOUT / name).is_file()]


def blocks(text: str, *languages: str) -> list[str]:
    """Code blocks of a Markdown text in one of these languages."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [body for language, body in found if language in languages]


def console_lines(text: str) -> list[str]:
    lines = [line for block in blocks(text, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def plugpull_commands(text: str) -> list[list[str]]:
    """The words after ``plugpull`` of every command in a text's code blocks."""
    lines = console_lines(text) + [line for block in blocks(text, "sh") for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if re.match(r"(\./)?plugpull ", line)]
    return [words[1:] for words in commands]


def options_of(command: argparse.ArgumentParser) -> Iterator[str]:
    for action in command._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from options_of(child)


def section(heading: str) -> str:
    """The part of the README under a heading, up to the next one of its level."""
    return README.split(f"\n## {heading}\n")[1].split("\n## ")[0]


# --- commands --------------------------------------------------------------------------------------------------

COMMANDS = plugpull_commands(README)


@pytest.mark.parametrize("words", COMMANDS, ids=shlex.join)
def test_every_command_parses(words: list[str]) -> None:
    if words[0] == "test":
        words = words[:1]  # the rest is pytest's
    if words != ["--version"]:
        parser().parse_args(words)


def test_every_line_of_a_console_block_is_a_command_that_is_known() -> None:
    lines = console_lines(README)
    assert len(COMMANDS) >= 20
    known = re.compile(r"\./plugpull |python -m plugpull\.commands\.screenshot ")
    assert [line for line in lines if not known.match(line)] == []


def test_the_picture_is_made_by_a_command_that_parses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = [line for line in console_lines(README) if line.startswith("python ")]
    words = shlex.split(line)[3:]
    # There is no such run here: that it says so, and not that it cannot understand, is what is looked for.
    words[:2] = [str(tmp_path / "none"), str(tmp_path / "none.png")]
    assert screenshot(words) == EXIT_USAGE
    assert "does not exist" in capsys.readouterr().err
    picture = CHECKOUT / "framework/report-example.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < PICTURE


@pytest.mark.parametrize("words", [words for words in COMMANDS if " ".join(words).startswith(QUICK)], ids=shlex.join)
def test_quick_commands_run(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs/20300101T000000Z-made-up"
    run.mkdir(parents=True)
    (run / "history.jsonl").write_bytes(encode(run_of(healthy().scenario())))
    (tmp_path / "runs/latest").symlink_to(run.name)
    (tmp_path / "rigs").symlink_to(CHECKOUT / "rigs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLUGPULL_CACHE", str(tmp_path / "cache"))
    assert main(words) == EXIT_PASS


def test_the_reference_has_every_option_and_no_other() -> None:
    reference = section("Command reference")
    options = set(options_of(parser())) - {"-h", "--help"}
    written = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(re.findall(r"`([^`\n]+)`", reference))))
    assert written - {"--help"} == options


def test_the_reference_has_every_command_and_no_other() -> None:
    written = {
        " ".join(itertools.takewhile(str.islower, text.split()))
        for text in re.findall(r"^\| `plugpull ([^`]+)` \|", section("Command reference"), re.MULTILINE)
    }
    switch = {f"switch {name}" for name in ("list", "on", "off", "cycle", "status", "qualify")}
    rest = {"run", "rig check", "rig discover", "check", "report", "log", "cache", "cache clear", "test"}
    rest |= {"compare", "bisect-step", "measure", "meter list", "meter read"}
    rest |= {"archive index", "archive add", "export", "fleet status", "merge", "nightly", "trend"}
    assert written == rest | switch


def test_exit_statuses() -> None:
    table = dict(re.findall(r"^\| (\d) \| (\w+)", section("What a verdict means"), re.MULTILINE))
    statuses = {"PASS": EXIT_PASS, "FAIL": EXIT_FAIL, "wrong": EXIT_USAGE, "UNKNOWN": EXIT_UNKNOWN}
    assert table == {str(number): word for word, number in statuses.items()}


def test_what_the_launcher_installs_is_named() -> None:
    setup = section("Two commands")
    names = {"libudev1": "libudev", "util-linux": "setpriv", "qemu-system-x86": "qemu-system-x86_64"}
    wanted = [names.get(package.name, package.name) for package in PACKAGES]
    assert [name for name in wanted if name not in setup and name != "python3"] == []


def test_what_a_kernel_needs_is_named() -> None:
    text = section("Testing a kernel or a driver")
    assert [name for name in NEEDED if name not in text] == []


# --- examples --------------------------------------------------------------------------------------------------


def test_the_rig_example_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks(README, "toml")
    file = tmp_path / "one-hub.toml"
    file.write_text(example)
    assert main(["rig", "check", str(file)]) == EXIT_PASS
    (tree,) = blocks(README, "text")
    assert capsys.readouterr().out == tree


def scenario_example(directory: Path) -> Path:
    (example,) = blocks(README, "python")
    file = directory / "test_power.py"
    file.write_text(example)
    return file


def test_the_scenario_example_is_as_tidy_as_the_rest(tmp_path: Path) -> None:
    file = scenario_example(tmp_path)
    config = ["--config", str(CHECKOUT / "pyproject.toml"), str(file)]
    for action in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        ended = subprocess.run([sys.executable, "-m", "ruff", *action, *config], capture_output=True, check=False)
        assert ended.returncode == 0, ended.stdout.decode()


@pytest.mark.bench
def test_the_scenario_example_passes_on_a_guest(tmp_path: Path) -> None:
    file = scenario_example(tmp_path)
    assert ["run", file.name] in COMMANDS
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        [sys.executable, "-m", "plugpull", "run", file.name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == EXIT_PASS, ended.stdout + ended.stderr
    assert (tmp_path / "runs/latest/report.html").is_file()


# --- tables ----------------------------------------------------------------------------------------------------


def test_scenarios_readme_lists_what_there_is() -> None:
    text = (CHECKOUT / "scenarios/README.md").read_text()
    checks = {check.__struct_config__.tag for check in vars(plugpull.checks).values() if _is_check(check)}
    checks |= {study.__struct_config__.tag for study in vars(plugpull.studies).values() if _is_check(study)}
    assert set(re.findall(r"^\| `(\w+)\(", text, re.MULTILINE)) == checks
    loads = [name for name, value in vars(plugpull.load).items() if isinstance(value, Pattern)]
    assert [name for name in (*loads, *plugpull.faults.__all__) if f"`{name}" not in text] == []
    files = {path.name for path in (CHECKOUT / "scenarios").glob("test_*.py")}
    assert set(re.findall(r"^\| `(test_\w+\.py)`", text, re.MULTILINE)) == files


def _is_check(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Check) and value is not Check


def test_rigs_readme_explains_every_key() -> None:
    text = (CHECKOUT / "rigs/README.md").read_text()
    schema = Rig.model_json_schema()
    keys = {key for table in schema["$defs"].values() for key in table.get("properties", {})}
    assert sorted(key for key in keys if f"`{key}`" not in text) == []
    assert sorted(kind for kind in schema["$defs"]["Defect"]["properties"]["kind"]["enum"] if kind not in text) == []
    assert {path.name for path in (CHECKOUT / "rigs").glob("*.toml")} == set(
        re.findall(r"^\| `(.+\.toml)`", text, re.M)
    )


# --- the tree --------------------------------------------------------------------------------------------------


def test_links_lead_somewhere() -> None:
    dead = []
    for page in (path for path in tracked() if path.suffix == ".md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in target and not (page.parent / target).exists():
                dead.append(f"{page.relative_to(CHECKOUT)}: {target}")
    assert dead == []


def test_every_directory_says_what_lives_there() -> None:
    own: dict[Path, list[str]] = {}
    for path in tracked():
        own.setdefault(path.parent, []).append(path.name)
    silent = [
        str(directory.relative_to(CHECKOUT))
        for directory, names in own.items()
        if len(names) > 1 and "README.md" not in names and directory.name not in BARE
    ]
    assert sorted(silent) == []


def test_no_top_level_name_that_is_not_agreed_upon() -> None:
    needed = {"framework", "scenarios", "fixtures", "rigs", "conftest.py", "pyproject.toml", "README.md"}
    tools = {"CHANGELOG.md", "LICENSE", "plugpull", "requirements.lock"}
    names = {path.relative_to(CHECKOUT).parts[0] for path in tracked()}
    assert {name for name in names if not name.startswith(".")} <= needed | tools


# In pieces, so that this file does not hold what it looks for.
FOREIGN = ("/work/", "/tmp/ppcache", "shared/DESIGN", "FIELD_NOTES", "helper session", "Claude")


def test_no_file_speaks_of_the_place_it_was_written_at() -> None:
    """Test files may name places beside the checkout, if they do without them."""
    found = []
    for path in tracked():
        text = path.read_bytes().decode(errors="replace")
        excused = path.parent.name == "tests" and "skip" in text
        found += [f"{path.relative_to(CHECKOUT)}: {word}" for word in FOREIGN if word in text and not excused]
    assert found == []
