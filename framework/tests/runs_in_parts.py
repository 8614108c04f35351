"""Recorded runs with several parts, for tests: shards, and benches side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from stories import BACK, RIG, healthy, later

from plugpull.history import events as ev
from plugpull.history.reader import HISTORY_FILE
from plugpull.history.recorder import Recorder
from plugpull.merging.manifest import ListedPart, Manifest, digest_of, part_folder, write_manifest


def scenario(name: str, *, serial: str = "", kernel: str = "", boot_id: str = "") -> list[ev.Event]:
    """A healthy scenario of this name. ``serial``: its victim comes back with another serial number, a finding."""
    bench = healthy()
    if serial:
        bench.replace(ev.DiskAttached, lambda event: event.at == BACK, serial=serial)
    if kernel:
        bench.replace(ev.DutReady, kernel=kernel)
    if boot_id:
        bench.replace(ev.DutReady, boot_id=boot_id)
    begun, *middle, ended = bench.scenario()
    return [msgspec.structs.replace(begun, id=name), *middle, msgspec.structs.replace(ended, id=name)]


def begun(planned: Sequence[str], wall: str = "2030-01-01T00:00:00+00:00", **fields: object) -> ev.RunBegun:
    """The first event of a part."""
    first = ev.RunBegun(
        version=ev.HISTORY_VERSION, plugpull="1", wall=wall, rig_name="made-up", rig=RIG, seed=7, numbered=True
    )
    return msgspec.structs.replace(first, planned=tuple(planned), **fields)


def record(
    run: Path, opening: ev.RunBegun, *scenarios: list[ev.Event], ended: bool = True, interrupted: str = ""
) -> Path:
    """A run directory with these scenarios, as the recorder writes it."""
    run.mkdir(parents=True, exist_ok=True)
    with Recorder(run / HISTORY_FILE) as recorder:
        recorder.record(opening)
        for number, events in enumerate(scenarios):
            for event in events:
                recorder.record(later(event, 100.0 * number))
        if ended:
            recorder.record(ev.RunEnded(wall="2030-01-01T00:01:00+00:00", interrupted=interrupted))
    return run


def shard(run: Path, number: int, of: Sequence[Sequence[str]], *scenarios: list[ev.Event]) -> Path:
    """The run of one shard; ``of`` has the plans of all shards. Without scenarios, healthy ones are made."""
    plan, whole = of[number - 1], tuple(name for plan in of for name in plan)
    opening = begun(plan, shard=f"{number}/{len(of)}", whole=whole, argv=("plugpull", "run", "--shard", f"{number}/2"))
    return record(run, opening, *(scenarios or [scenario(name) for name in plan]))


def benches(run: Path, plan: Sequence[str], *parts: Sequence[list[ev.Event]], **listed: object) -> Path:
    """A run of several benches: what each of them ran."""
    run.mkdir(parents=True)
    names = [f"bench-{number}" for number in range(1, len(parts) + 1)]
    for number, (name, scenarios) in enumerate(zip(names, parts, strict=True), 1):
        record(part_folder(run, name), begun(plan, bench=number), *scenarios)
    manifest = Manifest(
        kind="benches",
        open=False,
        planned=tuple(plan),
        parts=tuple(ListedPart(name=name, sha256=digest_of(part_folder(run, name) / HISTORY_FILE)) for name in names),
    )
    write_manifest(run, msgspec.structs.replace(manifest, **listed))
    return run
