"""Every exception class of the package is in one tree, and exit statuses stay with the command line."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from syntax import statements

import plugpull
from plugpull.errors import DutError, PlugpullError, RigError, UsageError

PACKAGE = Path(plugpull.__file__).parent
ROOT = PlugpullError.__name__
APART = ("dut/agent/",)
"""The agent runs on the DUT, with the DUT's Python and without the rest of the package. Its exceptions end in
``service.py``, which sends them to the controller."""
COMMAND_LINE = (
    "__main__.py",
    "cli.py",
    "commands/",
    "exit_status.py",
    "jobs/worker.py",
    "plugin.py",
    "plugin_session.py",
    "setup/launch.py",
)
"""The modules that may end the process or name an exit status."""
EXITS = re.compile(r"\bsys\.exit\b|\bos\._exit\b|\braise SystemExit\b|\bEXIT_[A-Z]+\b|\bpytest\.exit\b")
"""Names of exit statuses, and calls that end the process."""
PROGRAMS = {"dut/conversation/bootstrap.py": 2}
"""Modules with the text of a program for another machine, which ends by itself, and how often it does."""
MAIN = "__main__.py"
"""A module of this name is a command or a program by itself, in any room."""


def bases(package: Path) -> dict[str, set[str]]:
    """The names of the base classes of every class of a package, by the name of the class."""
    found: dict[str, set[str]] = {}
    for path in package.rglob("*.py"):
        if str(path.relative_to(package)).startswith(APART):
            continue
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                found.setdefault(node.name, set()).update(names)
    return found


def ancestors(name: str, known: Mapping[str, set[str]]) -> Iterator[str]:
    for base in known.get(name, ()):
        yield base
        yield from ancestors(base, known)


def outside(known: Mapping[str, set[str]]) -> list[str]:
    """The exception classes that do not derive from the root of the tree."""

    def is_exception(name: str) -> bool:
        found = getattr(builtins, name, None)
        return isinstance(found, type) and issubclass(found, BaseException)

    return sorted(
        name
        for name in known
        if name != ROOT
        and any(is_exception(base) for base in ancestors(name, known))
        and ROOT not in ancestors(name, known)
    )


def endings(package: Path) -> dict[str, int]:
    """How often each module below the command line names an exit status or ends the process."""
    found: dict[str, int] = {}
    for path in package.rglob("*.py"):
        place = str(path.relative_to(package))
        if path.name == MAIN or place.startswith((*COMMAND_LINE, *APART)):
            continue
        if count := len(EXITS.findall(path.read_text())):
            found[place] = count
    return found


def test_every_exception_class_is_in_the_tree() -> None:
    assert outside(bases(PACKAGE)) == []


def test_the_tree_has_a_branch_for_each_whose_fault_it_can_be() -> None:
    assert PlugpullError.__subclasses__() == [UsageError, RigError, DutError]


def test_only_the_command_line_ends_the_process() -> None:
    assert endings(PACKAGE) == PROGRAMS


@pytest.mark.parametrize(
    "base", ["Exception", "ValueError", "KeyboardInterrupt", "Other", "json.JSONDecodeError, OSError"]
)
def test_a_class_outside_the_tree_is_found(tmp_path: Path, base: str) -> None:
    (tmp_path / "a.py").write_text(f"class Other(LookupError): ...\nclass Lost({base}): ...\n")
    assert "Lost" in outside(bases(tmp_path))


def test_classes_of_the_tree_and_ordinary_ones_are_not_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "class PlugpullError(Exception): ...\nclass UsageError(errors.PlugpullError): ...\n"
        "class Number(UsageError, ValueError): ...\nclass Plain: ...\nclass More(Plain, Protocol): ...\n"
    )
    assert outside(bases(tmp_path)) == []


@pytest.mark.parametrize("line", ["sys.exit(3)", "raise SystemExit(2)", "return EXIT_FAIL", "os._exit(0)"])
def test_an_exit_below_the_command_line_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.py").write_text(f"def f():\n    {line}\n")
    assert endings(tmp_path) == {"a.py": 1}
