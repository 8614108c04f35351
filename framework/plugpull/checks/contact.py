"""When a cut point was closed in the middle of a cut: a plug with a bad contact lets its disk appear in between."""

from __future__ import annotations

import math
from collections.abc import Iterator

from plugpull.checks.starved import Span
from plugpull.history.cut import Cut
from plugpull.history.events import CutArmed, Edge
from plugpull.history.story import Story


def contacts(story: Story, cut: Cut) -> Iterator[Span]:
    """The times in which all points of a cut were closed although it was not over, DUT seconds. A cut of no
    group has none."""
    mates = [one for one in story.of(CutArmed) if cut.armed.group and one.group == cut.armed.group]
    points = {one.cut: one.point for one in mates if set(one.victims) & set(cut.armed.victims)}
    edges = [
        edge for edge in story.of(Edge) if edge.cut in points and edge.phase == "commanded" and edge.at is not None
    ]
    open_points: set[str] = set()
    closed_at = math.inf
    for edge in sorted(edges, key=lambda edge: edge.at or 0.0):
        was_open = bool(open_points)
        (open_points.add if edge.state == "off" else open_points.discard)(edge.point)
        if was_open and not open_points:
            closed_at = (edge.at or 0.0) - edge.error
        elif not was_open and open_points and closed_at < math.inf:
            yield Span(closed_at, edge.at or 0.0)
