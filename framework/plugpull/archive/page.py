"""The page of an archive: one HTML file without scripts, that needs no network and no other file."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from plugpull.archive.page_data import HIGH, ROW, WIDE, changed_value, page_data
from plugpull.archive.trend import Trend, opened, read_trend
from plugpull.archive.trend_show import (
    amount,
    as_markdown,
    as_text,
    bench_line,
    direction,
    headline,
    sections,
)
from plugpull.archive.verdicts import wilson
from plugpull.errors import RigError
from plugpull.files import write_whole
from plugpull.plain import clean
from plugpull.report.text import title_of

PAGE = "index.html"
LISTED = 200
"""Entries of a section on the page."""


def write_page(directory: Path, page: Path | None = None) -> tuple[Path, Trend]:
    """Bring the index up to date and write the page, its text and its Markdown (``index.html`` in the archive, and
    beside it ``index.txt`` and ``index.md``). Raises UsageError, RigError."""
    page = page or directory / PAGE
    with opened(directory) as (db, updated):
        trend = read_trend(db, updated)
        html = render(db, trend, directory, page)
    texts = {
        page: html,
        page.with_suffix(".txt"): "\n".join(as_text(trend)) + "\n",
        page.with_suffix(".md"): "\n".join(as_markdown(trend)) + "\n",
    }
    try:
        for path, content in texts.items():
            write_whole(path, content.encode("utf-8", "replace"))
    except OSError as error:
        raise RigError(f"cannot write {page}: {error.strerror or error}", hint="name another file") from error
    return page, trend


def render(db: sqlite3.Connection, trend: Trend, directory: Path, page: Path) -> str:
    """The page as one HTML document."""
    data = page_data(db, trend, directory, page)
    return _template().render(
        trend=trend,
        data=data,
        headline=headline(trend),
        sections=list(sections(trend)),
        archive=directory.resolve().name,
    )


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.finalize = lambda value: clean(value) if type(value) is str else value
    environment.filters |= {"title_of": title_of, "amount": amount, "bench_line": bench_line, "direction": direction}
    environment.globals |= {
        "style": Markup((files("plugpull.report") / "templates/report.css").read_text("utf-8")),
        "wilson": wilson,
        "curve_of": changed_value,
        "sizes": {"wide": WIDE, "high": HIGH, "row": ROW},
        "listed": LISTED,
    }
    return environment.from_string((files("plugpull.archive") / "templates/archive.html.j2").read_text("utf-8"))
