"""The texts are in plain English: turns of phrase that readers stumbled over do not come back."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

CHECKOUT = Path(__file__).parents[2]
SUFFIXES = frozenset({".py", ".md", ".j2", ".toml", ".c", ".h"})
UNFINISHED: tuple[str, ...] = ()
"""Places whose texts are still to be rewritten. Remove a place once it is clean."""


class Relic(NamedTuple):
    """A turn of phrase, what to write instead, and the places where it is still allowed (a path's beginning)."""

    pattern: str
    instead: str
    allowed: tuple[str, ...] = UNFINISHED


RELICS = (
    Relic(r"\banew\b", "again"),
    Relic(r"\blikewise\b", "also"),
    Relic(r"\b(whereof|thereof|whereby|thereby)\b", "of which, so", ()),
    Relic(r"manyeth", "the index of", ()),
    Relic(r"\bfor want of\b", "because there is no", ()),
    Relic(r"\bhas it so\b", "does it have that", ()),
    Relic(r"\bas far as it is\b", "if known"),
    Relic(r"\bwoken\b", "restored, started"),
    Relic(r"\b(put|puts|putting) (it |them |the bench )?away\b", "shut down, restoring power"),
    Relic(r"(?<!there )\bis no (disk|DUT|hub|kernel|module|number|rig|run|switch|verdict)\b", "is not a ..."),
    Relic(r"\bwhat there is\b", "the contents"),
    Relic(r"\bone (class|file|method) a kind\b", "one per kind"),
    Relic(r"(?<![.`_])\b(tell|tells|telling|told)\b(?![`_=])", "report, send, record, say (a person), pass"),
    # The field of events keeps its name in histories.
    Relic(
        r"\b(mend|mends|mended|mending)\b",
        "fix, restore, reconnect; hint= as a parameter",
        ("framework/plugpull/history/events/run.py", "framework/tests/test_history_seals.py"),
    ),
)


def tracked() -> list[Path]:
    """The project's files with text, also those about to be committed. Without git, all that are in its directories."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        answer = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
        names = [name for name in answer.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [
            str((Path(folder) / name).relative_to(CHECKOUT))
            for top in ("framework", "scenarios", "fixtures", "rigs")
            for folder, _, files in os.walk(CHECKOUT / top)
            for name in files
        ]
    found = [CHECKOUT / name for name in names if Path(name).suffix in SUFFIXES]
    return [path for path in found if path.is_file() and path != Path(__file__)]


def relics_in(text: str, relic: Relic) -> Iterator[int]:
    """The numbers of the lines that have it."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(relic.pattern, line, re.IGNORECASE) and ".tell()" not in line:
            yield number


@pytest.mark.parametrize("relic", RELICS, ids=lambda relic: relic.pattern)
def test_no_relics(relic: Relic) -> None:
    found = [
        f"{name}:{number}: write instead: {relic.instead}"
        for path in tracked()
        if not (name := str(path.relative_to(CHECKOUT))).startswith(relic.allowed)
        for number in relics_in(path.read_text(), relic)
    ]
    assert found == []


def test_there_is_something_to_look_at() -> None:
    names = {str(path.relative_to(CHECKOUT)) for path in tracked()}
    assert {"framework/plugpull/errors.py", "scenarios/README.md", "rigs/quick.toml"} <= names


@pytest.mark.parametrize(
    ("relic", "text"),
    [
        (r"\banew\b", "a snapshot is made anew"),
        (r"manyeth", "the how manyeth write it is"),
        (r"\bfor want of\b", "for want of a compiler"),
        (r"(?<!there )\bis no (", "'6.1 or so' is no kernel"),
        (r"(?<![.`_])\b(tell", "the agent tells what it saw"),
        (r"\b(put|", "the guest is put away"),
    ],
)
def test_a_relic_is_found(relic: str, text: str) -> None:
    (one,) = (one for one in RELICS if one.pattern.startswith(relic))
    assert list(relics_in("fine\n" + text, one)) == [2]


def test_ordinary_words_are_not_taken_for_relics() -> None:
    text = "position = file.tell()\nthere is no kernel here\nrecommended; renewed; put the disk back"
    assert [relic.pattern for relic in RELICS for _ in relics_in(text, relic)] == []
