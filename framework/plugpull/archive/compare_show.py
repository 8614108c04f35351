"""Shows a comparison as text, ``compare.json`` and ``compare.html``."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import msgspec
from jinja2 import Environment, StrictUndefined

from plugpull.archive.compare import Comparison, RecoveryTimes, ScenarioComparison
from plugpull.errors import RigError
from plugpull.files import write_whole
from plugpull.plain import clean, clean_json, clean_line


def as_text(comparison: Comparison) -> Iterator[str]:
    """A table for each scenario, and the findings that only one run has. Lines of printable text for any run."""
    return map(clean_line, _lines(comparison))


def _lines(comparison: Comparison) -> Iterator[str]:
    runs = comparison.runs
    for letter, run in zip(_letters(comparison), runs, strict=True):
        yield f"{letter}  {run.verdict:8}{run.name}  kernel {run.kernel or 'not known'}  {run.directory}"
    for scenario in comparison.scenarios:
        yield ""
        pairs = zip(_letters(comparison), scenario.verdicts, strict=True)
        verdicts = ", ".join(f"{letter} {verdict or 'not run'}" for letter, verdict in pairs)
        yield f"{scenario.id}: {verdicts}"
        yield from _scenario(comparison, scenario)
    yield ""
    yield "verdicts or findings differ" if comparison.differs else "the same verdicts and findings"


def _scenario(comparison: Comparison, scenario: ScenarioComparison) -> Iterator[str]:
    letters = _letters(comparison)
    for letter, findings in zip(letters, scenario.only, strict=False):
        for finding in findings:
            yield f"    only {letter}: {finding.check}: {finding.summary}"
    if scenario.bisect:
        yield "    to find the commit, in a kernel tree:"
        yield from (f"        {command}" for command in scenario.bisect)
    for sequence in scenario.sequences:
        yield f"    {sequence.disk}: the events or their order differ"
        for letter, kinds in zip(letters, sequence.kinds, strict=True):
            yield f"        {letter}  {' > '.join(kinds) or 'none'}"
    if scenario.times:
        yield f"    {'':34}" + "".join(f"{letter:>12}" for letter in letters) + f"{'ratio':>10}"
    for row in scenario.times:
        label = f"cut {row.cut} {row.point}, {row.disk} {row.what}"
        yield f"    {label:34}" + "".join(f"{_seconds(one):>12}" for one in row.seconds) + f"{_ratios(row):>10}"


def _letters(comparison: Comparison) -> list[str]:
    return [chr(ord("A") + number) if number < 26 else str(number) for number in range(len(comparison.runs))]


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.3f} s"


def _ratios(row: RecoveryTimes) -> str:
    return " ".join("-" if ratio is None else f"{ratio:.2f}" for ratio in row.ratios)


def as_json(comparison: Comparison) -> bytes:
    """The comparison as the content of ``compare.json``."""
    return clean_json(msgspec.json.format(msgspec.json.encode(comparison), indent=2).decode()).encode() + b"\n"


def as_html(comparison: Comparison) -> str:
    """The comparison as one self-contained page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.finalize = lambda value: clean(value) if type(value) is str else value
    template = environment.from_string((files("plugpull.archive") / "templates/compare.html.j2").read_text("utf-8"))
    return template.render(c=comparison, letters=_letters(comparison), seconds=_seconds, ratios=_ratios)


def write(comparison: Comparison, directory: Path) -> Path:
    """Write both files and return the page's path. Raises RigError when that fails."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(directory / "compare.json", as_json(comparison))
        page = directory / "compare.html"
        write_whole(page, as_html(comparison).encode("utf-8", "replace"))
    except OSError as error:
        raise RigError(f"cannot write the comparison into {directory}: {error.strerror or error}") from error
    return page
