"""The parts of ``plugpull run`` inside pytest: it announces what will run and for how long, and notes how the run
ended."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from plugpull.draw import disks_behind_meters
from plugpull.errors import UsageError
from plugpull.jobs.usual_times import USUAL
from plugpull.load.timed import REPEATS, expected_seconds
from plugpull.plain import clean
from plugpull.plugin import SESSION
from plugpull.plugin_session import is_scenario, scenario_id
from plugpull.plugin_stash import WHOLE
from plugpull.report.text import title_of
from plugpull.rig.model import Rig
from plugpull.rig.topology import Topology
from plugpull.targets.disk import RigDisk

BEGIN_AND_END = 7.0
"""Seconds that a study takes beside its measurements: the guest is restored, and looked at in the end."""
NAMED = 6
"""The maximum number of scenarios named before the run."""
_SHOWN = 8
"""The maximum number of scenarios named when none matches."""

HYPOTHESIS = "hypothesispytest"
"""The name under which Hypothesis is a plugin of pytest."""


class RunPlugin:
    """A pytest plugin that announces the run, and notes which scenarios were deselected and how the run ended."""

    def __init__(self, rig: Rig, out: Path, repeats: int | None = None) -> None:
        self._rig = rig
        self._out = out
        self._repeats = repeats or REPEATS
        self.deselected: list[str] = []
        self.whole: int | None = None
        self.directory: Path | None = None
        self.interrupted = ""

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.deselected += [item.name for item in items]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        terminal = session.config.pluginmanager.getplugin("terminalreporter")
        ids = [scenario_id(item) for item in session.items if is_scenario(item)]
        whole = session.config.stash.get(WHOLE, None)
        self.whole = None if whole is None else len(whole)
        if terminal is not None and ids and not session.config.option.collectonly:
            terminal.ensure_newline()
            times = {**earlier_times(self._out), **study_times(self._rig, session.items, self._repeats)}
            times |= soak_times(session.config, ids)
            for line in announced(self._rig, ids, times):
                terminal.write_line(f"plugpull: {clean(line)}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Leave Hypothesis, which takes time to import, out of the summary, unless a scenario uses it."""
        if "hypothesis" not in sys.modules:
            session.config.pluginmanager.unregister(name=HYPOTHESIS)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        session = config.stash.get(SESSION, None)
        if session is not None:
            self.directory, self.interrupted = session.directory, session.interrupted


def nothing_to_run(arguments: argparse.Namespace, rig: Rig, deselected: Sequence[str]) -> UsageError:
    """The error to raise when no scenario is left, with the names of the available ones."""
    if getattr(arguments, "lasting", None):
        where = " ".join(arguments.path) or "the stock scenarios"
        return UsageError(f"no soak in {where}: --for needs a scenario that uses the fixture soak")
    if not deselected:
        return UsageError(f"no scenario in {' '.join(arguments.path) or 'the stock scenarios'}")
    hint = f"choose from: {_nearest(arguments.expression or '', deselected)}"
    if arguments.expression:
        return UsageError(f"no scenario matches -k {arguments.expression!r}", hint=hint)
    if getattr(arguments, "markers", None):
        return UsageError(f"no scenario matches -m {arguments.markers!r}", hint=hint)
    return UsageError(
        f"no scenario is marked with a row of the rig {rig.rig.name}: {', '.join(rig.rig.rows)}", hint=hint
    )


def _nearest(wanted: str, ids: Iterable[str]) -> str:
    """Some names of scenarios, without parameters, those first that are most like what was asked for."""
    names = list(dict.fromkeys(name.split("[")[0] for name in ids))
    near = difflib.get_close_matches(f"test_{wanted}", names, n=_SHOWN, cutoff=0.5)
    shown = [*near, *(name for name in names if name not in near)][:_SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def root_of(paths: Sequence[str], stock: Path) -> Path:
    """The root directory for pytest, from which its test names begin.

    With a stock scenario among them, it is the stock directory. Otherwise it is the current directory, if all are below
    it, or the folder that all are in. pytest leaves the file out of the names of tests outside its root directory.
    """
    here, places = Path.cwd(), [Path(path.split("::")[0]).resolve() for path in paths]
    if not places or any(place.is_relative_to(stock) for place in places):
        return stock
    if all(place.is_relative_to(here) for place in places):
        return here
    return Path(os.path.commonpath([place if place.is_dir() else place.parent for place in places]))


def announced(rig: Rig, ids: Sequence[str], earlier: Mapping[str, float], benches: int = 1) -> Iterator[str]:
    """A few lines that announce the run, on so many benches side by side."""
    count = "1 scenario" if len(ids) == 1 else f"{len(ids)} scenarios"
    described = f" ({rig.rig.description})" if rig.rig.description else ""
    times = [earlier.get(name, USUAL) for name in ids]
    where = "" if benches == 1 else f" on {benches} benches"
    yield f"{count} on the rig {rig.rig.name}{described}, about {_rough(max([*times, sum(times) / benches]))}{where}"
    yield from (f"  {title_of(name)}" for name in ids[:NAMED])
    if len(ids) > NAMED:
        yield f"  and {len(ids) - NAMED} more"
    if rig.dut.kind == "virtual":
        yield "the bench is a QEMU guest with emulated disks; no disk of this machine is touched"
    else:
        yield f"the DUT is {rig.dut.host or 'this machine'}; the rig's scratch disks will be overwritten"


def earlier_times(out: Path) -> dict[str, float]:
    """Seconds that each scenario took in the newest run in ``out``; empty if there is none that can be read."""
    return times_of(out / "latest")


def times_of(run: Path) -> dict[str, float]:
    """Seconds that each scenario of a run took; empty if its results cannot be read."""
    try:
        results = json.loads((run / "results.json").read_bytes())
        return {str(scenario["id"]): float(scenario["seconds"]) for scenario in results["scenarios"]}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def study_times(rig: Rig, items: Sequence[pytest.Item], repeats: int) -> dict[str, float]:
    """Seconds that each study takes: its mark has the design, which gives the number of measurements."""
    topology, behind = Topology(rig), disks_behind_meters(rig)
    disks, times = [RigDisk(disk.name, topology) for disk in rig.disk if disk.scratch], {}
    for item in items:
        mark = item.get_closest_marker("study")
        if mark is not None:
            of_meters = mark.kwargs.get("meter", False)
            design = mark.kwargs["design"]([disk for disk in disks if not of_meters or disk.name in behind])
            rounds = mark.kwargs.get("repeats", repeats) if design else 0
            took = expected_seconds(design, rounds, virtual=rig.dut.kind == "virtual")
            times[scenario_id(item)] = BEGIN_AND_END + took
    return times


def soak_times(config: pytest.Config, ids: Sequence[str]) -> dict[str, float]:
    """Seconds that the soak takes from now on, if this run is one."""
    lasting, resume = config.getoption("--plugpull-for"), config.getoption("--plugpull-resume")
    if not lasting and not resume:
        return {}
    from plugpull.soak.length import parse_length
    from plugpull.soak.state import read_state

    seconds = read_state(Path(resume)).left if resume else parse_length(lasting)
    return dict.fromkeys(ids, seconds)


def _rough(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds / 10), 1) * 10} s"
    if seconds < 3 * 3600:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"
