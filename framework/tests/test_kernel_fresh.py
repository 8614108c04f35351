"""Lines of public threads that were labelled before the classifier saw them (``data/fresh_lines.txt``)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from plugpull.kernel.catalogue.classify import classify

LINES = Path(__file__).parent / "data" / "fresh_lines.txt"


class Labelled(NamedTuple):
    kinds: frozenset[str]
    text: str
    found: str


def labelled() -> Iterator[Labelled]:
    for line in LINES.read_text(encoding="utf-8").splitlines():
        if line.startswith(("#", "@ ")):
            continue
        label, text = line.split("\t", 1)
        event = classify(text)
        yield Labelled(frozenset(label.split("/")) - {"-"}, text, event.kind if event is not None else "")


def test_lines_of_public_threads() -> None:
    lines = list(labelled())
    ours = [line for line in lines if line.kinds]
    others = [line for line in lines if not line.kinds]
    assert len(ours) > 150
    assert len(others) > 100
    missed = [line for line in ours if not (line.found if "any" in line.kinds else line.found in line.kinds)]
    false = [line for line in others if line.found]
    assert len(missed) <= 0.02 * len(ours), missed
    assert len(false) <= 0.005 * len(others), false
