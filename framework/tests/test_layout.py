"""The code stays in pieces that can be read: short functions, short modules, one meaning for one name."""

from __future__ import annotations

import ast
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from syntax import statements

import plugpull

PACKAGE = Path(plugpull.__file__).parent
CHECKOUT = Path(__file__).parents[2]
FUNCTION, MODULE, MEDIAN = 40, 400, 120
"""Lines at most of a function, of a module, and of the package's median module."""

LONG_FUNCTIONS: frozenset[str] = frozenset()
"""Functions that are still too long, as ``path::name``. Remove those that were split; add none."""
LONG_MODULES: frozenset[str] = frozenset()
"""Modules that are still too long. Remove those that were split; add none."""
SHARED_NAMES: frozenset[str] = frozenset()
"""Names that two public classes still have. Remove those that were renamed; add none."""


def modules() -> list[Path]:
    """The Python modules of the package, its tests and its benchmarks. The last two are not in an installed package."""
    folders = (PACKAGE, CHECKOUT / "framework/tests", CHECKOUT / "framework/benchmarks")
    return sorted(path for folder in folders for path in folder.rglob("*.py") if "data" not in path.parts)


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE.parents[1]))


def long_functions(path: Path, most: int = FUNCTION) -> Iterator[str]:
    """Functions with more lines than ``most``, without decorators."""
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= most:
            yield node.name


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def public_classes(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Which modules define a class of each name."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.name)
    return found


def test_no_function_is_too_long() -> None:
    found = {f"{name_of(path)}::{name}" for path in modules() for name in long_functions(path)}
    assert found <= LONG_FUNCTIONS


def test_no_module_is_too_long() -> None:
    assert {name_of(path) for path in modules() if lines(path) > MODULE} <= LONG_MODULES


def test_the_median_module_is_short() -> None:
    assert statistics.median(map(lines, PACKAGE.rglob("*.py"))) <= MEDIAN


def test_no_two_public_classes_have_one_name() -> None:
    shared = {name: where for name, where in public_classes(PACKAGE.rglob("*.py")).items() if len(where) > 1}
    assert set(shared) <= SHARED_NAMES, shared


def test_what_is_too_long_or_shared_is_found(tmp_path: Path) -> None:
    body = "    pass\n"
    (tmp_path / "a.py").write_text("class One: ...\ndef f():\n" + body * 39)
    (tmp_path / "b.py").write_text("class One: ...\nclass _Two: ...\nasync def h():\n" + body * 40)
    assert [list(long_functions(tmp_path / name)) for name in ("a.py", "b.py")] == [[], ["h"]]
    assert public_classes(tmp_path.glob("*.py"))["One"] in (["a.py", "b.py"], ["b.py", "a.py"])


def test_every_statement_is_seen_at_any_depth() -> None:
    code = """
if a:
    try:
        with b:
            match c:
                case 1:
                    for d in e:
                        def f(): import g
    except E:
        import h
else:
    import i
"""
    found = list(statements(ast.parse(code)))
    walked = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)]
    assert sorted(map(ast.dump, found)) == sorted(map(ast.dump, walked))
    assert len(walked) == 9
