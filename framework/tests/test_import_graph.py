"""Imports point one way: no two modules import each other, and no lower room imports a higher one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from syntax import statements

import plugpull

PACKAGE = Path(plugpull.__file__).parent

Graph = Mapping[str, set[str]]

FLOORS: tuple[tuple[str, ...], ...] = (
    (
        *("plugpull", "errors", "files", "finding", "judging", "locate", "measure", "output", "plain", "streams"),
        "uncollected",
        "dut.agent",
    ),
    (
        "driver_registry",
        "integrity.oracle",
        "interrupts",
        "history",
        "progress",
        "plugin_stash",
        "rig",
        "setup",
        "kernel",
        "kernel.catalogue",
    ),
    (
        *("cache", "coordination", "draw", "judging.results", "kernel.census", "kernel.diagnosis", "dut.conversation"),
        "run_directory",
        "run_options",
    ),
    (
        "checks",
        "judging.coverage",
        "judging.expected",
        "judging.plan",
        "judging.results_io",
        "judging.rig_disks",
        "merging",
        "report",
        "switches",
    ),
    ("discover", "dut", "expected_findings", "judging.sheet", "meters", "studies"),
    ("dut.real", "faults", "judging.bench_faults", "judging.lasting", "judging.sentences", "targets", "virtual"),
    ("judging.judge", "left_off", "load"),
    ("integrity", "judging.early", "judging.side_by_side", "qualify"),
    ("judging.outcome",),
    ("archive",),
    ("choices", "fleet", "metering", "plugging"),
    ("measuring",),
    ("scenario",),
    ("exit_status", "run"),
    ("soak",),
    ("plugin_session",),
    ("jobs",),
    ("plugin",),
    ("commands", "setup.launch"),
    ("cli",),
    ("__main__",),
)
"""The rooms of the package, from the lowest floor to the highest. A room imports from lower floors and from itself.

A room is a folder, a module beside the folders, or a folder within a folder that has a floor of its own here."""

FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor}


def python_graph(package: Path) -> dict[str, set[str]]:
    """What each module of a package imports of it, also within functions and for type checkers only."""
    root = package.parent
    files = {_module_of(path.relative_to(root)): path for path in package.rglob("*.py")}
    return {name: set(_imports(name, path, files)) - {name} for name, path in files.items()}


def _module_of(path: Path) -> str:
    return ".".join(part for part in path.with_suffix("").parts if part != "__init__")


def _imports(name: str, path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                found = next((one for one in (f"{source}.{alias.name}", source) if one in files), None)
                if found is not None:
                    yield found


def include_graph(directory: Path) -> dict[str, set[str]]:
    """Which files of a C program include which others of it."""
    files = {path.name: path for path in directory.iterdir() if path.suffix in (".c", ".h")}
    including = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
    return {name: set(including.findall(path.read_text(encoding="utf-8"))) & set(files) for name, path in files.items()}


def cycle_in(graph: Graph) -> list[str]:
    """The members of a cycle, the first one again at the end; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def room_of(module: str) -> str:
    """The smallest room that a module of the package is in; the module itself if it is in none that has a floor."""
    parts = module.split(".")[1:]
    if not parts:
        return "plugpull"
    return next((room for size in (2, 1) if (room := ".".join(parts[:size])) in FLOOR_OF), ".".join(parts))


def upward(graph: Graph) -> list[str]:
    """The imports that go from a room to another one that is not on a lower floor."""
    return [
        f"{module} imports {other}"
        for module, others in sorted(graph.items())
        for other in sorted(others)
        if room_of(module) != room_of(other) and FLOOR_OF[room_of(other)] >= FLOOR_OF[room_of(module)]
    ]


@cache
def package_graph() -> dict[str, set[str]]:
    return python_graph(PACKAGE)


def test_every_module_is_in_a_room_with_a_floor() -> None:
    assert sorted({room_of(module) for module in package_graph()} - set(FLOOR_OF)) == [], (
        "give each of them a floor in FLOORS"
    )


def test_no_two_modules_import_each_other() -> None:
    assert cycle_in(package_graph()) == []


def test_no_room_imports_a_higher_one() -> None:
    assert upward(package_graph()) == []


def test_no_two_files_of_the_writer_include_each_other() -> None:
    (main,) = PACKAGE.joinpath("integrity").rglob("main.c")
    graph = include_graph(main.parent)
    assert "stamp.h" in graph["writer.h"] | graph["main.c"] | graph["write.c"] | graph["read.c"]
    assert cycle_in(graph) == []


@pytest.mark.parametrize(
    "second",
    [
        "from box.a import A\n",
        "import box.a\n",
        "from box import a\n",
        "from .a import A\n",
        "from . import a\n",
        "def f():\n    from box.a import A\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from box.a import A\n",
    ],
)
def test_a_circle_is_seen_however_it_is_written(tmp_path: Path, second: str) -> None:
    box = tmp_path / "box"
    box.mkdir()
    (box / "__init__.py").write_text("")
    (box / "a.py").write_text("import json\nfrom box.b import B\n")
    (box / "b.py").write_text(second)
    assert set(cycle_in(python_graph(box))) == {"box.a", "box.b"}
    (box / "b.py").write_text("import json\n")
    assert cycle_in(python_graph(box)) == []


def test_a_circle_of_includes_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('#include <stdio.h>\n#include "b.h"\n')
    (tmp_path / "b.h").write_text('  # include "a.h"\n')
    assert set(cycle_in(include_graph(tmp_path))) == {"a.h", "b.h"}


def test_an_import_of_a_higher_room_is_seen() -> None:
    assert upward(
        {"plugpull.history.cuts": {"plugpull.judging.results", "plugpull.errors", "plugpull.history.events"}}
    ) == ["plugpull.history.cuts imports plugpull.judging.results"]
    assert upward(
        {"plugpull.checks.base": {"plugpull.dut.listener"}, "plugpull.dut.real.bench": {"plugpull.dut.bench"}}
    ) == ["plugpull.checks.base imports plugpull.dut.listener"]
