"""The output of ``plugpull log``: text with repeats combined, or JSON Lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from plugpull.kernel.catalogue.entry import Severity
from plugpull.kernel.catalogue.prefix import split_prefix
from plugpull.kernel.diagnosis.log_reader import LogEvent
from plugpull.plain import clean_json, clean_line

WIDTH = 24
"""Columns for a kind: a little more than the longest one has."""


def as_json(found: LogEvent) -> bytes:
    """One message as a line of JSON: file, line (from 1), kind, severity, subject, time (seconds since boot or null),
    text. The first line of a multi-line report also has its headline, its most important frames and its last line
    (``until``)."""
    data: dict[str, object] = {
        "file": found.file,
        "line": found.line,
        "kind": found.event.kind,
        "severity": found.event.severity.value,
        "subject": found.subject,
        "time": found.time,
        "text": found.event.text,
    }
    if found.report is not None:
        data |= {"headline": found.report.headline, "frames": found.report.frames, "until": found.report.last}
    return clean_json(msgspec.json.encode(data).decode()).encode()


def as_text(events: Iterable[LogEvent], *, several: bool = False) -> Iterator[str]:
    """What happened, in order: one line for each run of messages of one kind about one subject. Then the counts. The
    files are named if there are ``several``."""
    kinds: Counter[tuple[str, str]] = Counter()
    worst: dict[str, Severity] = {}
    last: LogEvent | None = None
    repeats = 0
    for found in events:
        key = (found.event.kind, found.subject)
        if found.in_earlier_report:
            continue
        kinds[key] += 1
        worst[found.event.kind] = found.event.severity
        if (
            last is not None
            and found.report is None
            and key == (last.event.kind, last.subject)
            and found.file == last.file
        ):
            repeats += 1
            continue
        if last is not None:
            yield _line(last, repeats, several)
        last, repeats = found, 0
    if last is not None:
        yield _line(last, repeats, several)
    yield from _counts(kinds, worst)


def _line(found: LogEvent, repeats: int, several: bool) -> str:
    when = f"{found.time:12.6f}" if found.time is not None else " " * 12
    body = clean_line(split_prefix(found.event.text)[1].strip() if found.report is None else found.report.headline)
    more = f"  (and {repeats} more like it)" if repeats else ""
    place = f"{clean_line(found.file)}:{found.line}" if several else f"{found.line:7}"
    if found.report is not None and found.report.frames:
        more = f"\n{'':>{len(place) + WIDTH + 15}}in {clean_line(' < '.join(found.report.frames))}{more}"
    return f"{place}: {when} {found.event.kind:{WIDTH}}{body}{more}"


def _counts(kinds: Counter[tuple[str, str]], worst: dict[str, Severity]) -> Iterator[str]:
    if not kinds:
        yield "no messages about storage, USB or a broken kernel"
        return
    yield ""
    order = list(Severity)
    for (kind, subject), count in sorted(kinds.items(), key=lambda each: (order.index(worst[each[0][0]]), -each[1])):
        yield f"{count:7}  {kind:{WIDTH}}{clean_line(subject)}".rstrip()
