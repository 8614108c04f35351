"""The classifier on real logs, where they are at hand: nothing of them is part of this project."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugpull.kernel.catalogue.classify import classify
from plugpull.kernel.catalogue.entries import read_entries, read_text

CORPORA = Path(__file__).resolve().parents[3] / "shared" / "corpora"
pytestmark = pytest.mark.skipif(not CORPORA.is_dir(), reason="the logs are not at hand")

NOT_A_REPORT = {"6", "129"}
"""Titled, but with nothing in the log that a kernel prints for that: "WARNING: foo", and a bare "INFO:"."""


def reports() -> Iterator[tuple[str, bool, list[str]]]:
    """Name, whether it has a title, and the lines of each log."""
    for path in sorted((CORPORA / "syzkaller-linux-reports").iterdir()):
        text = "\n".join(
            line
            for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").split("\n"))
            if number > 2 or not line.startswith("#")
        )
        head, _, log = text.partition("\n\n")
        if "SYZ_FAILURE" in head or "SUPPRESSED" in head:
            continue
        titled = any(line[7:].strip() for line in head.splitlines() if line.startswith("TITLE: "))
        yield path.name, titled, log.split("\nREPORT:")[0].split("\n")


def test_reports_with_a_title_alarm_and_no_others() -> None:
    missed, false, seen = [], [], 0
    for name, titled, lines in reports():
        seen += 1
        alarming = [line for line in lines if (event := classify(line)) is not None and event.alarming]
        if titled and not alarming and name not in NOT_A_REPORT:
            missed.append(name)
        if not titled and alarming:
            false.append((name, alarming[0]))
    assert seen > 300
    assert (missed, false) == ([], [])


def test_labelled_lines() -> None:
    lines = [
        line
        for row in (CORPORA / "usb-storage" / "logs.jsonl").read_text().splitlines()
        for line in json.loads(row)["lines"]
    ]
    found = [(line["kind"], event.kind if (event := classify(line["text"])) else None, line["text"]) for line in lines]
    wrong = [each for each in found if each[0] is not None and each[0] != each[1]]
    # The labels are about storage and know no kind for a broken machine: DMA faults, objects registered twice.
    machine = {entry.kind for entry in read_entries("machine", read_text("machine"))}
    false = [each for each in found if each[0] is None and each[1] is not None and each[1] not in machine]
    labelled = sum(kind is not None for kind, _, _ in found)
    assert labelled > 1000
    assert len(wrong) <= 2, wrong
    assert false == []
