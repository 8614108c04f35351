"""Puts the histories of the parts of a run together, so that the run is judged as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from plugpull.history.events import HISTORY_VERSION, DutReady, Event, RigFault, RunBegun, RunEnded, ScenarioSkipped
from plugpull.history.reader import History
from plugpull.merging.manifest import Manifest

SHARD = ("--shard", "--plugpull-shard")
"""The option that chooses a shard."""


@dataclass(frozen=True)
class RecordedPart:
    """A part as it was found. ``history`` is ``None`` if it is missing. ``altered``: it is not the history that was
    listed. ``listed``: it is in the list of the parts."""

    name: str
    history: History | None
    altered: bool = False
    listed: bool = True


def combine(manifest: Manifest | None, parts: Sequence[RecordedPart]) -> History:
    """One history of all parts. Its scenarios are in the order of the plan, whatever part ran them.

    ``manifest`` is ``None`` if the list of the parts is missing or damaged. What is wrong with a part is named in the
    result, which then cannot pass.
    """
    known = [(part.name, part.history) for part in parts if part.history is not None]
    histories = [history for _, history in known]
    planned = _planned(manifest, histories)
    order = {scenario: number for number, scenario in reversed(list(enumerate(planned)))}
    turns = [(story, earlier, name) for name, history in known for story, earlier, _ in history.in_turn()]
    turns.sort(key=lambda turn: order.get(turn[0].id, len(order)))
    faults = [RigFault(summary=summary) for summary in _faults(manifest, known)]
    ended = None
    if manifest is not None and not manifest.open and all(history.ended for history in histories):
        ended = _ended(manifest, histories)
    return History(
        begun=_begun(manifest, planned, histories),
        ended=ended,
        stories=tuple(story for story, _, _ in turns),
        sources=tuple((earlier, name) for _, earlier, name in turns),
        stray=(*faults, *_skipped(manifest, histories), *_stray(known)),
        lost_lines=sum(history.lost_lines for history in histories),
        skipped_lines=sum(history.skipped_lines for history in histories),
        torn=any(history.torn for history in histories),
        flaws=tuple(_flaws(manifest, parts)),
        edited=any(history.edited for history in histories),
        parts=tuple(known),
    )


def _planned(manifest: Manifest | None, histories: Sequence[History]) -> tuple[str, ...]:
    """The scenarios that any part says are to be run: a shard knows the plan of all shards."""
    shards = manifest is None or manifest.kind == "shards"
    names = list(manifest.planned) if manifest is not None else []
    for begun in (history.begun for history in histories):
        if begun is not None:
            plan = begun.whole if shards and begun.whole is not None else begun.planned or ()
            known = set(names)
            names += [name for name in plan if name not in known]
    return tuple(names)


def _begun(manifest: Manifest | None, planned: tuple[str, ...], histories: Sequence[History]) -> RunBegun | None:
    known = [history.begun for history in histories if history.begun is not None]
    if known:
        argv = (manifest.argv if manifest is not None else ()) or _without_shard(known[0].argv)
        first = min(begun.wall for begun in known)
        return replace(known[0], wall=first, planned=planned, argv=argv, bench=0, shard="", whole=None)
    if manifest is None:
        return None
    return RunBegun(
        version=HISTORY_VERSION,
        plugpull=manifest.plugpull,
        wall=manifest.started,
        rig_name=manifest.rig_name,
        rig={},
        seed=manifest.seed,
        argv=manifest.argv,
        planned=planned,
    )


def _without_shard(argv: Sequence[str]) -> tuple[str, ...]:
    """The command line of one shard as that of the whole run."""
    words = zip(argv, ["", *argv], strict=False)
    return tuple(word for word, before in words if word.partition("=")[0] not in SHARD and before not in SHARD)


def _ended(manifest: Manifest, histories: Sequence[History]) -> RunEnded:
    walls = [history.ended.wall for history in histories if history.ended is not None]
    return RunEnded(wall=max(walls, default=manifest.started), interrupted=manifest.interrupted)


def _flaws(manifest: Manifest | None, parts: Sequence[RecordedPart]) -> Iterator[str]:
    if manifest is None:
        yield "the list of the run's parts is missing or damaged"
    for part in parts:
        if part.history is None:
            yield f"the history of {part.name} is missing"
            continue
        if part.altered:
            yield f"the history of {part.name} was altered after the parts were put together"
        if not part.listed and manifest is not None and not manifest.open:
            yield f"{part.name} is not in the list of the run's parts"
        yield from (f"{part.name}: {flaw}" for flaw in part.history.flaws)


def _faults(manifest: Manifest | None, known: Sequence[tuple[str, History]]) -> Iterator[str]:
    """Why parts do not fit together, or did not come to their ends."""
    if manifest is not None:
        yield from manifest.unknowns
    for name, history in known:
        if history.begun is None:
            yield f"{name}: the beginning of its history is missing"
        if history.ended is None:
            yield f"{name}: its history ends before its run did"
        elif history.ended.interrupted and not (manifest is not None and manifest.interrupted):
            yield f"{name} was interrupted ({history.ended.interrupted})"
    begun = [(name, history.begun) for name, history in known if history.begun is not None]
    yield from (f"{name} ran on another rig than {begun[0][0]}" for name, one in begun if one.rig != begun[0][1].rig)
    kernels: dict[str, str] = {}
    for name, history in known:
        for story in history.stories:
            for ready in story.of(DutReady):
                kernels.setdefault(ready.kernel, name)
    if len(kernels) > 1:
        yield f"the parts ran different kernels: {', '.join(f'{kernel} ({name})' for kernel, name in kernels.items())}"


def _stray(known: Sequence[tuple[str, History]]) -> Iterator[Event]:
    """The events of no scenario, with the part that a fault of the bench is from."""
    for name, history in known:
        for event in history.stray:
            yield replace(event, summary=f"{name}: {event.summary}") if isinstance(event, RigFault) else event


def _skipped(manifest: Manifest | None, histories: Sequence[History]) -> Iterator[Event]:
    """Scenarios that were skipped on a bench without a history."""
    recorded = {story.id for history in histories for story in history.stories}
    recorded |= {event.id for history in histories for event in history.stray if isinstance(event, ScenarioSkipped)}
    for skip in manifest.skipped if manifest is not None else ():
        if skip.id not in recorded:
            yield ScenarioSkipped(id=skip.id, reason=skip.reason)
