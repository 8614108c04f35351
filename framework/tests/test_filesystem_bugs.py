"""Bugs put into filesystems are found by a stock scenario and named; the same modules without them pass."""

from __future__ import annotations

from pathlib import Path

import driver_build
import filesystem_bugs
import pytest
from defects_bench import Ended, run_small
from filesystem_bugs import BUGS, FilesystemBug
from rig_builder import a_rig

from plugpull.exit_status import EXIT_FAIL, EXIT_PASS
from plugpull.judging.results import Verdict

# Each run boots a guest of its own, because a snapshot holds its modules.
pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(not driver_build.ASKED, reason="takes long: PLUGPULL_DRIVER_BUGS=1 runs it"),
]

RIG = (
    a_rig("filesystem-bugs")
    .switch("mains", mechanism="mains")
    .stock_controller()
    .disk(
        *("victim", "usb.1", "FSBUG-1", "320 MiB"),
        rate="8 MiB/s",
        cache="1 MiB",
        eviction="random",
        scratch=True,
        power="mains.1",
    )
    .disk("survivor", "usb.2", "FSBUG-2", "16 MiB", rate="2 MiB/s", scratch=True)
    .text
)
MODULES = {bug.module: bug for bug in BUGS.values()}


def run_with(folder: Path, bug: FilesystemBug, *, planted: bool) -> Ended:
    # Among writes of all kinds, the last sync before the cut is often one that the bug does not touch.
    asked = f"power_fails_right_after_a_sync and {bug.fstype}-1]"
    built = filesystem_bugs.module(bug, planted=planted)
    return run_small(folder, "", "-k", asked, "--module", str(built), rig=RIG)


@pytest.mark.parametrize("name", MODULES)
def test_an_unchanged_module_passes(tmp_path: Path, name: str) -> None:
    ended = run_with(tmp_path, MODULES[name], planted=False)
    assert (ended.status, ended.only.verdict) == (EXIT_PASS, Verdict.PASS), ended.output


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_found_and_named(tmp_path: Path, name: str) -> None:
    bug = BUGS[name]
    ended = run_with(tmp_path, bug, planted=True)
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    found = [one for one in ended.only.findings if one.check == "files_kept"]
    assert {one.subject for one in found} == {"victim"}, ended.output
    assert f"the {bug.fstype} on victim" in found[0].summary
    assert any(word in found[0].summary for word in bug.shows), found[0].summary
