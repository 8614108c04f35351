"""A real guest on the virtual bench for a test to work with: restored from its snapshot, with its disks plugged in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from plugpull.cache import Cache
from plugpull.coordination.journal import Journal
from plugpull.dut.listener import Listener
from plugpull.dut.scenario_context import ScenarioContext
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder
from plugpull.rig.load import load_rig
from plugpull.rig.topology import Topology
from plugpull.streams import Streams
from plugpull.virtual.bench import VirtualBench
from plugpull.virtual.setting import prepare

FOUND_WITHIN = 60.0
"""Seconds until every disk must be on the kernel's list; generous, because the machine may be busy."""


@dataclass(frozen=True)
class Guest:
    """A running guest. ``context`` is what loads and faults work with; ``directory`` holds its logs while it runs."""

    bench: VirtualBench
    recorder: Recorder
    listener: Listener
    context: ScenarioContext
    directory: Path

    def call(self, op: str, timeout: float = 60.0, /, **arguments: Any) -> Any:
        """Ask the agent. Raises what ``AgentLink.call`` raises."""
        return self.bench.link.call(op, timeout, **arguments)

    def medium(self, disk: str) -> Path:
        """The file that holds a disk's bytes: the disk as seen from outside, behind the guest's back."""
        return self.bench._firmware[disk].medium

    def unplug(self, switch: str, *ports: str) -> None:
        """Cut these ports, in this order, and wait until their disks are off the kernel's list."""
        points = self.context.topology.cut_points().values()
        outlets = {f"{switch}.{port}" for port in ports}
        victims = tuple(victim for point in points if point.outlet in outlets for victim in point.victims)
        mark = self.recorder.mark()
        for port in ports:
            self.bench.switch(switch).set(port, False)
        self._wait_detached(victims, mark)
        left = [name for name in victims if self.bench.disk_table.attached(name) is not None]
        assert not left, f"still there {FOUND_WITHIN:g} s after being unplugged: {left}"

    def _wait_detached(self, names: tuple[str, ...], mark: int) -> None:
        deadline = time.monotonic() + FOUND_WITHIN
        while any(self.bench.disk_table.attached(name) is not None for name in names):
            left = deadline - time.monotonic()
            gone = self.context.wait_for(lambda event: isinstance(event, ev.DiskDetached), max(0.0, left), since=mark)
            if gone is None:
                return
            mark = self.recorder.mark()

    def plug(self, switch: str, port: str) -> None:
        """Restore this port and wait until its disks are on the kernel's list."""
        points = self.context.topology.cut_points().values()
        victims = tuple(v for point in points if point.outlet == f"{switch}.{port}" for v in point.victims)
        self.bench.switch(switch).set(port, True)
        missing = self.context.wait_attached(victims, FOUND_WITHIN)
        assert not missing, f"not found within {FOUND_WITHIN:g} s of being plugged in: {missing}"


@contextmanager
def guest(rig: str | Path, scenario: str = "test") -> Iterator[Guest]:
    """Start a guest for a rig (the text of a rig file, or its path) as a scenario of a run does, and plug in its disks.

    Enter it in the main thread: the guest's processes end with the thread that started them.
    """
    with TemporaryDirectory(prefix="plugpull-guest-") as folder, ExitStack() as held:
        directory = Path(folder)
        if isinstance(rig, str):
            text, rig = rig, directory / "rig.toml"
            rig.write_text(text)
        model = load_rig(rig)
        progress: list[str] = []
        cache = Cache.default(notify=progress.append)
        journal = Journal(cache.journals(), directory)
        held.callback(journal.close)
        # Other tests run beside it, on the same CPUs, as another bench would.
        open_bench = prepare(model, None, (), "auto", 2, cache, journal, held, progress.append)
        recorder = held.enter_context(Recorder(directory / "history.jsonl"))
        recorder.record(ev.ScenarioBegun(id=scenario, wall="2026-01-01T00:00:00Z", seed=1, story="", row=""))
        listener = Listener(recorder)
        bench = open_bench(recorder, directory, listener, scenario)
        held.callback(bench.close)
        held.callback(listener.end)
        listener.begin(bench)
        context = ScenarioContext(model, Topology(model), bench, listener, recorder, Streams(1, ""))
        recorder.record(bench.ready())
        bench.link.call("sample", interval=0.1)
        bench.power_everything()
        missing = context.wait_attached(tuple(disk.name for disk in model.disk), FOUND_WITHIN)
        assert not missing, f"not found within {FOUND_WITHIN:g} s: {missing}; see {directory}\n{progress}"
        yield Guest(bench, recorder, listener, context, directory)
