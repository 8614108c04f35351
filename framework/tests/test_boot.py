"""How the agent is started: as root, in a directory that others may have written to."""

from __future__ import annotations

import ast
import re
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import plugpull
from plugpull.dut.conversation.bootstrap import boot_command
from plugpull.dut.conversation.link import Message
from plugpull.dut.real.connect import connect
from plugpull.dut.real.reach import reach_of
from plugpull.rig.model import Dut
from plugpull.virtual.image import INIT

PLANTED = ("base64", "runpy", "json", "textwrap", "zipimport", "threading", "ctypes", "queue", "sitecustomize")


def nothing(message: Message) -> None:
    """What the agent says here is not looked at."""


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A directory with modules of somebody else's, each of which leaves a file when it is run."""
    folder = tmp_path / "somebody-else"
    folder.mkdir()
    for name in PLANTED:
        words = f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + ' ')"
        (folder / f"{name}.py").write_text(f"{words}\nraise SystemExit\n")
    return folder


def test_modules_planted_in_the_current_directory_are_not_run(
    trap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trap)
    with ExitStack() as held:
        _, said = connect(reach_of(Dut(kind="local", python=sys.executable)), nothing, held, {})
        assert said["agent"]
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_modules_named_by_the_environment_are_not_run(
    trap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(trap))
    with ExitStack() as held:
        connect(reach_of(Dut(kind="local", python=sys.executable)), nothing, held, {})
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


@pytest.mark.parametrize("sudo", [False, True])
def test_every_python_of_the_agent_is_isolated(sudo: bool) -> None:
    command = boot_command("python3", sudo)
    assert command[command.index("python3") + 1] == "-I"
    assert re.search(r"^\{before\}/plugpull/python -I ", INIT, re.MULTILINE)


def test_no_python_is_started_without_isolation() -> None:
    """A list of words that runs Python code, ``[python, "-c", ...]``, has the option too. Our own environment's tools
    are another matter: they are installed, and run as the user."""
    seen = 0
    for path in (Path(plugpull.__file__).parent / "dut").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            words = [getattr(one, "value", None) for one in node.elts] if isinstance(node, ast.List) else []
            if "-c" in words and not {"sh", "/bin/sh"} & set(words):
                seen += 1
                before = node.elts[words.index("-c") - 1] if isinstance(node, ast.List) else None
                assert isinstance(before, ast.Name), path
                assert before.id == "ISOLATED", path
    assert seen
