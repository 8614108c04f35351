"""Writes ``framework/API.md`` from the docstrings of the scenario API: ``python framework/tests/api_reference.py``.

Run it after a change of a docstring or a signature. ``test_api_reference.py`` fails while the file is out of date.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import fields as info

API = Path(__file__).resolve().parents[1] / "API.md"
COMMAND = "python framework/tests/api_reference.py"


class Entry(NamedTuple):
    """``name`` of ``module`` in the reference. Of a class, ``members`` are shown, or all public ones if it is None."""

    module: str
    name: str
    members: tuple[str, ...] | None = None


class Chapter(NamedTuple):
    title: str
    text: str
    entries: tuple[Entry, ...]


def checks() -> tuple[Entry, ...]:
    """Every check that scenarios can name."""
    module = importlib.import_module("plugpull.checks")
    tools = {"check_name", "decode_check", "encode_check"}
    names = [n for n in module.__all__ if n not in tools and inspect.isfunction(getattr(module, n))]
    return tuple(Entry("plugpull.checks", name) for name in sorted(names))


RIG = (
    *("disks", "bystanders", "hubs", "choose_victim", "choose_hub", "choose_hubs", "choose_pair"),
    *("choose_two", "choose_enclosure", "choose_with_other_unit", "sockets_elsewhere", "survivors_of", "whole_tree"),
    *(
        "load",
        "stamp",
        "filesystem",
        "files",
        "load_on_volume",
        "array",
        "copy",
        "processors",
        "recovering",
        "stalled",
        "suspended",
        "cut",
        "fault",
    ),
    *("judged_by", "wait", "is_attached", "take_census"),
    *("metered_disks", "measure", "run_tasks", "sweep_sizes", "keep_busy", "judge"),
)
FILES = ("settle", "played", "something_to_lose", "step_begins", "stop", "next_round")
DESIGNS = (
    *("each_alone", "more_and_more", "leave_one_out", "part_by_part", "scaling_design", "side_by_side"),
    *("all_for_long", "all_at_once"),
    *("power_design", "FioTask", "caching_design", "latency_design", "sweep_design"),
    *("filesystem_counts", "filesystem_tasks", "filesystem_design"),
    *("array_baseline", "array_cells", "array_tasks", "array_design", "member_size", "rebuild_design"),
)
STUDIES = (
    *("alone", "scaling", "beside", "sustained", "recovery_cost", "caching", "latency", "transfer_size"),
    *("array_rates", "rebuilds", "power_drawn", "filesystem_rates"),
)
ARRAY = (
    *("readd", "add", "add_missing", "remove_as_udev", "wait_degraded", "wait_resyncing", "wait_in_sync", "wait_clean"),
    "wait_unmarked",
    *("check", "stop", "assemble", "state"),
)
LOAD = ("settle", "run_for", "regain_pace", "wait_ended", "moved")


def chapters() -> tuple[Chapter, ...]:
    return (*_on_rig_and_loads(), *_on_files(), *_on_faults(), *_on_soaks(), *_on_judging_and_drivers())


def _on_soaks() -> tuple[Chapter, ...]:
    return (
        Chapter(
            "Runs that last",
            "A soak is a pytest function that takes the fixture `soak`; `plugpull run --for 4d` runs it.",
            (
                Entry("plugpull.soak", "Soak", ("turns",)),
                Entry("plugpull.soak", "Turn", ("run_until_fault", "checks")),
            ),
        ),
    )


def _on_rig_and_loads() -> tuple[Chapter, ...]:
    return (
        Chapter(
            "The rig",
            "A scenario is a pytest function that takes the fixture `rig`. Its first line says the story; the report "
            "shows it. Loads and cuts are context managers: what they change is undone when their block ends.",
            (
                Entry("plugpull.scenario", "ScenarioRig", RIG),
                Entry("plugpull.rig.part", "Part", ("cable", "power", "has")),
                Entry("plugpull.targets.disk", "RigDisk", ("identity", "size")),
                Entry(
                    "plugpull.targets.filesystem", "Filesystem", ("identity", "size", "mounted", "unmount", "under_way")
                ),
                Entry("plugpull.targets.made_array", "MadeArray", ARRAY),
                Entry("plugpull.rig.topology", "CutPoint"),
            ),
        ),
        Chapter(
            "Loads",
            "A pattern says what a load does to a disk; `rig.load` and `rig.stamp` start it. Sizes are bytes, or text "
            'such as "32 MiB".',
            (
                Entry("plugpull.load", "Pattern"),
                *(Entry("plugpull.load", n) for n in ("sequential_write", "sequential_read", "idle", "fio_write")),
                Entry("plugpull.load.load", "RunningLoad", LOAD),
                Entry("plugpull.integrity.patterns", "Stamped"),
                Entry("plugpull.integrity.patterns", "Writing", ()),
                *(
                    Entry("plugpull.integrity.patterns", n)
                    for n in ("flushed_writes", "unflushed_writes", "sequential_stamps", "hot_spot", "fua_writes")
                ),
                Entry("plugpull.integrity.writing.load", "RunningStamps", ("moved", "something_to_lose", "flushing")),
            ),
        ),
    )


def _on_files() -> tuple[Chapter, ...]:
    return (
        Chapter(
            "Files",
            "What `rig.files` writes on a filesystem that `rig.filesystem` made.",
            (
                Entry("plugpull.integrity.file_patterns", "FileStorm", ()),
                *(
                    Entry("plugpull.integrity.file_patterns", n)
                    for n in ("file_storm", "rename_storm", "fsync_storm", "ShortPlans")
                ),
                Entry("plugpull.integrity.writing.files.running", "RunningFiles", FILES),
            ),
        ),
    )


def _on_faults() -> tuple[Chapter, ...]:
    return (
        Chapter(
            "Triggers",
            "When a cut is made: the parameter `when` of `rig.cut`. Without one, the cut is made at once. The methods "
            "`moved`, `something_to_lose` and `flushing` of a running load are triggers too.",
            tuple(Entry("plugpull.faults", name) for name in ("after", "at_random", "kernel_says")),
        ),
        Chapter(
            "Faults",
            "Whatever one `rig.cut` does not say, for `rig.fault`. A point is given as such, like `disk.cable`, or by "
            'its name, like "disk1.cable".',
            (
                *(Entry("plugpull.faults", n) for n in ("cut", "bounce", "in_sequence", "together", "repeated")),
                *(Entry("plugpull.faults", n) for n in ("held", "pause", "move", "swap", "judged_by")),
                Entry("plugpull.faults.injection", "Injection", ("inject", "heal")),
            ),
        ),
    )


def _on_judging_and_drivers() -> tuple[Chapter, ...]:
    return (
        Chapter(
            "Studies",
            "A study measures and cuts nothing. A design says which disks work at once, for `rig.measure`; the mark "
            "`@pytest.mark.study(design=each_alone)` names it for `plugpull measure`. A check of `plugpull.studies` "
            "makes figures and conclusions of the measurements, for `rig.judge`.",
            (
                *(Entry("plugpull.load", n) for n in DESIGNS),
                *(Entry("plugpull.studies", n) for n in STUDIES),
            ),
        ),
        Chapter(
            "Checks",
            "What must have been true, for `rig.judge`. `disks` is one disk or several. Times are seconds. A limit "
            "that is `None` comes from the rig file or from what healthy benches of this kind do. What must hold for "
            "every scenario is judged without being asked for.",
            checks(),
        ),
        Chapter(
            "Switches",
            "What a new kind of switch implements.",
            tuple(Entry("plugpull.switches.base", n) for n in ("Switch", "Capabilities", "Identity", "Acknowledged")),
        ),
        Chapter(
            "Errors",
            "What a scenario, a driver or a command raises, by whose fault it is.",
            (
                *(Entry("plugpull.errors", n) for n in ("UsageError", "NotServed", "RigError", "DutError")),
                Entry("plugpull.finding", "Finding"),
            ),
        ),
    )


def reference() -> str:
    """The whole document."""
    head = (
        "# Scenario API\n\nWhat a scenario can use, and what a switch driver implements. Generated from the docstrings "
        f"by\n`{COMMAND}`: edit those, not this file."
    )
    return "\n\n".join([head, *(part for chapter in chapters() for part in _chapter(chapter))]) + "\n"


def _chapter(chapter: Chapter) -> Iterator[str]:
    yield f"## {chapter.title}"
    yield textwrap.fill(chapter.text, 120, break_on_hyphens=False)
    for entry in chapter.entries:
        yield from _entry(entry)


def _entry(entry: Entry) -> Iterator[str]:
    thing = getattr(importlib.import_module(entry.module), entry.name)
    yield f"### {entry.name}"
    if inspect.isfunction(thing):
        yield _code(f"from {entry.module} import {entry.name}\n{_signature(entry.name, thing)}")
        yield _text(thing.__doc__)
    elif inspect.isclass(thing):
        yield _code(f"from {entry.module} import {entry.name}{_constructor(thing)}")
        yield _text(thing.__doc__)
        yield from _members(thing, entry.members)
    else:
        yield _code(f"from {entry.module} import {entry.name}")
        module = sys.modules[type(thing).__module__] if entry.module == "plugpull.load" else sys.modules[entry.module]
        said = _documented(ast.parse(inspect.getsource(module)).body).get(entry.name, "")
        yield _text(f"{said}\n\n{_shown(thing)}" if said else _shown(thing))


def _members(thing: type, wanted: tuple[str, ...] | None) -> Iterator[str]:
    """Methods and properties with their docstrings, then attributes that have one."""
    public = [name for name in _names(thing) if not name.startswith("_")] if wanted is None else wanted
    attributes = _attributes(thing)
    for name in public:
        member = inspect.getattr_static(thing, name, None)
        if isinstance(member, property):
            yield f"#### {thing.__name__}.{name}\n\n{_text(member.__doc__)}"
        elif inspect.isfunction(member):
            yield f"#### {thing.__name__}.{name}\n\n{_code(_signature(name, member))}\n\n{_text(member.__doc__)}"
        elif attributes.get(name):
            yield f"#### {thing.__name__}.{name}\n\n{_text(attributes[name])}"


def _names(thing: type) -> Iterable[str]:
    own = [name for name in vars(thing) if not dataclasses.is_dataclass(thing) or name not in ("name",)]
    return dict.fromkeys([*_attributes(thing), *own])


def _attributes(thing: type) -> dict[str, str]:
    """Attributes that are followed by a docstring, in the class body and in ``__init__``."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(thing))).body
    assert isinstance(node, ast.ClassDef)
    found = _documented(node.body)
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            found |= _documented(method.body)
    return found


def _documented(body: list[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    for statement, following in pairwise(body):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(following, ast.Expr):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            name = (
                target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
            )
            if name and isinstance(following.value, ast.Constant) and isinstance(following.value.value, str):
                found[name] = inspect.cleandoc(following.value.value)
    return found


def _constructor(thing: type) -> str:
    """The fields of a dataclass or a struct that scenarios may make or read."""
    if dataclasses.is_dataclass(thing):
        fields = [(f.name, f.default, f.default_factory, f.type) for f in dataclasses.fields(thing)]
    elif issubclass(thing, msgspec.Struct):
        fields = [(f.name, f.default, f.default_factory, thing.__annotations__[f.name]) for f in info(thing)]
    else:
        return ""
    if any(name.startswith("_") for name, *_ in fields):
        return ""  # scenarios are given one
    lines = [f"    {name}: {kind}{_default(default, factory)}" for name, default, factory, kind in fields]
    return "\n\n\n" + "\n".join([f"class {thing.__name__}:", *lines])


def _default(default: Any, factory: Any) -> str:
    missing = (dataclasses.MISSING, msgspec.NODEFAULT)
    if default not in missing:
        return f" = {_value(default)}"
    return "" if factory in missing else " = ..."


def _signature(name: str, function: Any) -> str:
    """The signature as it is written in the source, on one line if it fits."""
    signature = inspect.signature(function)
    parts, star = [], False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or parameter.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)
        before = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is inspect.Parameter.empty else f" = {_value(parameter.default)}"
        parts.append(f"{before}{parameter.name}: {parameter.annotation}{default}")
    line = f"{name}({', '.join(parts)}) -> {signature.return_annotation}"
    return line if len(line) <= 110 else line.replace(", ".join(parts), "\n    " + ",\n    ".join(parts) + "\n")


def _value(value: Any) -> str:
    """As ``ruff format`` writes it, which formats the code in documents too."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _shown(thing: Any) -> str:
    """A named pattern, by the values that differ from the defaults."""
    if not dataclasses.is_dataclass(thing):
        return f"`{thing!r}`"
    values = []
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if value != default:
            inner = _shown(value).strip("`") if dataclasses.is_dataclass(value) else _value(value)
            values.append(inner if field.name == "name" else f"{field.name}={inner}")
    return f"`{type(thing).__name__}({', '.join(values)})`"


def _text(docstring: str | None) -> str:
    assert docstring, "everything in the reference has a docstring"
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(docstring)):
        if paragraph.startswith("    "):
            paragraphs.append(_code(textwrap.dedent(paragraph)))
        else:
            words = re.sub(r"``([^`]+)``", r"`\1`", " ".join(paragraph.split()))
            paragraphs.append(textwrap.fill(words, 120, break_on_hyphens=False, break_long_words=False))
    return "\n\n".join(paragraphs)


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


if __name__ == "__main__":
    API.write_text(reference(), encoding="utf-8")
    print(API)
