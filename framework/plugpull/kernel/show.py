"""A kernel log as people and programs want to read it: by what happened, repeats folded; or one JSON object each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from plugpull.kernel.entry import Severity
from plugpull.kernel.log import LogEvent
from plugpull.kernel.prefix import split_prefix

WIDTH = 24
"""Columns of a kind: the longest there is and a little."""


def as_json(found: LogEvent) -> bytes:
    """One line of JSON: file, line (from 1), kind, severity, subject, time (seconds since boot or null), text; and for
    the first line of a multi-line report its headline, the frames that matter and its last line."""
    data: dict[str, object] = {
        "file": found.file,
        "line": found.line,
        "kind": found.event.kind,
        "severity": found.event.severity.value,
        "subject": found.event.subject,
        "time": found.time,
        "text": found.event.text,
    }
    if found.report is not None:
        data |= {"headline": found.report.headline, "frames": found.report.frames, "until": found.report.last}
    return msgspec.json.encode(data)


def as_text(events: Iterable[LogEvent]) -> Iterator[str]:
    """What happened, in order, a line for each run of the same kind about the same subject; then the sum of it."""
    kinds: Counter[tuple[str, str]] = Counter()
    worst: dict[str, Severity] = {}
    last: LogEvent | None = None
    repeats = 0
    for found in events:
        key = (found.event.kind, found.event.subject)
        if found.inside and found.event.alarming:
            continue  # told by the report's headline
        kinds[key] += 1
        worst[found.event.kind] = found.event.severity
        if (
            last is not None
            and found.report is None
            and key == (last.event.kind, last.event.subject)
            and found.file == last.file
        ):
            repeats += 1
            continue
        if last is not None:
            yield _line(last, repeats)
        last, repeats = found, 0
    if last is not None:
        yield _line(last, repeats)
    yield from _sum(kinds, worst)


def _line(found: LogEvent, repeats: int) -> str:
    when = f"{found.time:12.6f}" if found.time is not None else " " * 12
    # A log may hold anything; what would move a terminal's cursor or colour it is shown as a dot.
    said = split_prefix(found.event.text)[1].strip() if found.report is None else found.report.headline
    body = "".join(c if c.isprintable() else "." for c in said)
    more = f"  (and {repeats} more like it)" if repeats else ""
    if found.report is not None and found.report.frames:
        more = f"\n{'':>{len(found.file) + WIDTH + 16}}in {' < '.join(found.report.frames)}{more}"
    return f"{found.file}:{found.line}: {when} {found.event.kind:{WIDTH}}{body}{more}"


def _sum(kinds: Counter[tuple[str, str]], worst: dict[str, Severity]) -> Iterator[str]:
    if not kinds:
        yield "nothing in it that is about storage, USB or a broken kernel"
        return
    yield ""
    order = list(Severity)
    for (kind, subject), count in sorted(kinds.items(), key=lambda each: (order.index(worst[each[0][0]]), -each[1])):
        yield f"{count:7}  {kind:{WIDTH}}{subject}".rstrip()
