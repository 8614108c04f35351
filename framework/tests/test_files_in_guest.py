"""Power cuts under files of a guest: a disk that keeps its promises, and disks that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from defects_bench import Ended, run_small
from long_tests import only_if_asked
from rig_builder import a_rig

from plugpull.exit_status import EXIT_FAIL, EXIT_PASS
from plugpull.integrity.oracle.files.wrong import FileDamage
from plugpull.judging.results import Verdict

pytestmark = pytest.mark.bench

RIG = (
    a_rig("files")
    .switch("mains", mechanism="mains")
    .stock_controller()
    .disk(
        *("victim", "usb.1", "FILES-1", "64 MiB"),
        rate="8 MiB/s",
        cache="1 MiB",
        eviction="random",
        scratch=True,
        power="mains.1",
    )
    .disk("survivor", "usb.2", "FILES-2", "16 MiB", rate="2 MiB/s", scratch=True)
    .text
)
WORDS = {str(kind) for kind in FileDamage} | {"has errors"}


def run(folder: Path, defects: str = "") -> Ended:
    return run_small(folder, defects, "-k", "power_fails_while_files_are_written and ext4", rig=RIG)


def test_a_disk_that_keeps_its_promises_is_not_accused(tmp_path: Path) -> None:
    ended = run(tmp_path)
    assert (ended.status, ended.only.verdict) == (EXIT_PASS, Verdict.PASS), ended.output
    (kept,) = [check for check in ended.only.checks if check.check == "files_kept"]
    assert "every promised file is there: ext4" in kept.worst


@pytest.mark.parametrize(
    "kind", ["flush-lost", *(pytest.param(kind, marks=only_if_asked) for kind in ("reordered", "stale"))]
)
def test_a_disk_that_breaks_its_promises_is_found_out(tmp_path: Path, kind: str) -> None:
    ended = run(tmp_path, f'\n[[defect]]\nkind = "{kind}"\ndisk = "victim"\n')
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    found = [finding for finding in ended.only.findings if finding.check == "files_kept"]
    assert found, ended.only.findings
    assert {finding.subject for finding in found} == {"victim"}
    assert any(word in found[0].summary for word in WORDS), found[0].summary
