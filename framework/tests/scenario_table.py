"""Writes the table of stock scenarios into ``scenarios/README.md``: ``python framework/tests/scenario_table.py``.

It is taken from the scenarios' own source: docstring, mark, what of a rig they use, and what they judge.
``test_scenario_table.py`` fails while the table is out of date.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
README = SCENARIOS / "README.md"
COMMAND = "python framework/tests/scenario_table.py"
BEGIN = f"<!-- Written by `{COMMAND}`: edit the scenarios, not the table. -->"
END = "<!-- End of the table. -->"
NEEDS: Mapping[str, str] = {
    "choose_victim": "a scratch disk whose cable can be cut",
    "choose_victim power": "a scratch disk whose power can be cut",
    "choose_hub": "a hub whose cable can be cut, with disks behind it",
    "choose_hubs 2": "two hubs whose cables can be cut, with disks behind them",
    "choose_enclosure": "a device with several scratch disks, and a cable that can be cut",
    "choose_with_other_unit": "a scratch disk beside a CD-ROM or another unit, and a cable that can be cut",
    "choose_pair": "two disks of one controller with cables that can be cut, and somebody who moves disks",
    "sockets_elsewhere": "free sockets elsewhere, and somebody who moves disks",
    "whole_tree": "cables that cut every disk",
    "filesystem": "mkfs.ext4 on the DUT",
    "filesystem fstype": "each filesystem's mkfs and checker on the DUT, and a kernel that has it",
    "array": "mdadm on the DUT",
    "choose_two": "two scratch disks, and a cable of one that can be cut",
    "stalled": "disks that can be made to stand still, as emulated ones can",
    "metered_disks": "a power meter with scratch disks behind it",
    "turns": "a scratch disk whose cable or power can be cut; `--for`",
}
"""What a rig must have for a method of ``rig``, and its argument; and for turns of a soak."""
OF_A_TURN = ("removed", "returned", "kept_pace", "no_errors", "data_intact", "kernel_clean", "nothing_left")
"""What ``turn.checks()`` of a soak judges."""


class StockScenario(NamedTuple):
    """``checks`` are those that it asks for; the standing ones come on top. ``rows``: the one that it stands for, and
    then others that it shows as well."""

    file: str
    name: str
    rows: tuple[str, ...]
    story: str
    needs: tuple[str, ...]
    checks: tuple[str, ...]


def stock_scenarios(folder: Path = SCENARIOS) -> Iterator[StockScenario]:
    """Every scenario, in the order of files and of their source."""
    for path in sorted(folder.glob("test_*.py")):
        functions = {one.name: one for one in ast.parse(path.read_text()).body if isinstance(one, ast.FunctionDef)}
        for name, function in functions.items():
            if name.startswith("test_"):
                calls = list(_calls(function, functions))
                yield StockScenario(
                    path.name,
                    name,
                    _rows(function),
                    " ".join((ast.get_docstring(function) or "").split()),
                    tuple(dict.fromkeys(need for call in calls if (need := _need(call)))),
                    tuple(dict.fromkeys(_judged(calls))),
                )


def table() -> str:
    """The table, in Markdown."""
    lines = ["| file | rows | scenario | needs | judges |", "|---|---|---|---|---|"]
    for one in stock_scenarios():
        needs = "; ".join(one.needs) or "any rig"
        checks = ", ".join(f"`{check}`" for check in one.checks)
        story = f"`{one.name}`: {one.story}"
        lines.append(f"| `{one.file}` | {', '.join(one.rows)} | {story} | {needs} | {checks} |")
    return "\n".join(lines)


def written(text: str) -> str:
    """The page with its table renewed. Raises ValueError if it has no place for one."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{README} has no place for the table: the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def _calls(function: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef]) -> Iterator[ast.Call]:
    """The calls in a function, and in those of its file that it calls."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield node
            if isinstance(node.func, ast.Name) and node.func.id in functions:
                yield from _calls(functions[node.func.id], functions)


def _rows(function: ast.FunctionDef) -> tuple[str, ...]:
    """Of several marks, pytest takes the closest to the function, which is the last in the source: it comes first."""
    marks = [mark for mark in function.decorator_list if isinstance(mark, ast.Call)]
    rows = [ast.literal_eval(mark.args[0]) for mark in marks if ast.unparse(mark.func) == "pytest.mark.row"]
    return tuple(rows[-1:] + rows[:-1])


def _need(call: ast.Call) -> str:
    if not isinstance(call.func, ast.Attribute) or ast.unparse(call.func.value) not in ("rig", "soak"):
        return ""
    words = [call.func.attr, *(str(arg.value) for arg in call.args if isinstance(arg, ast.Constant))]
    words += [arg.id for arg in call.args if isinstance(arg, ast.Name) and arg.id == "fstype"]
    return NEEDS.get(" ".join(words), NEEDS.get(words[0], ""))


def _judged(calls: list[ast.Call]) -> Iterator[str]:
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "judge":
            for argument in call.args:
                check = argument.value if isinstance(argument, ast.Starred) else argument
                if isinstance(check, ast.Call):
                    name = ast.unparse(check.func)
                    yield from OF_A_TURN if name == "turn.checks" else (name,)


if __name__ == "__main__":
    README.write_text(written(README.read_text()))
