"""A bug put into usb-storage is found by a stock scenario and named; the same module without it passes."""

from __future__ import annotations

from pathlib import Path

import driver_build
import pytest
from defects_bench import RIG, Ended, run_small

from plugpull.exit_status import EXIT_FAIL, EXIT_PASS
from plugpull.judging.results import Verdict

pytestmark = pytest.mark.bench

# Each run boots a guest of its own, because a snapshot holds its modules.
dear = pytest.mark.skipif(not driver_build.ASKED, reason="takes long: PLUGPULL_DRIVER_BUGS=1 runs it")


def run_with(folder: Path, patch: str = "") -> Ended:
    module = driver_build.usb_storage(patch)
    # Serial numbers of its own: a rig is leased by those of its disks.
    ended = run_small(folder, "", "-k", "while_writing", "--module", str(module), rig=RIG.replace("SMALL-", "BUGS-"))
    assert [cut.read_back for cut in ended.only.cuts] == [True], ended.output
    return ended


@dear
def test_the_unmodified_driver_passes(tmp_path: Path) -> None:
    ended = run_with(tmp_path)
    assert (ended.status, ended.only.verdict) == (EXIT_PASS, Verdict.PASS), ended.output
    assert "nothing left over" in ended.only.sentence


def test_a_scsi_host_that_is_never_freed_is_named(tmp_path: Path) -> None:
    ended = run_with(tmp_path, "usb_storage_leaks")
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    # Its error handler's thread is left over with it.
    assert {finding.check for finding in ended.only.findings} == {"nothing_left"}
    finding = ended.only.findings[0]
    assert finding.subject == "scsi host"
    assert "removed, not freed: scsi_eh_" in ended.only.sentence
    # Whose it was, in the kernel's words.
    assert any(": usb-storage " in line for line in finding.evidence), finding.evidence


@dear
def test_error_handling_that_stalls_other_disks_is_named(tmp_path: Path) -> None:
    ended = run_with(tmp_path, "usb_storage_stalls")
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    assert ("kept_pace", "survivor") in {(finding.check, finding.subject) for finding in ended.only.findings}
    # A stall of more than 5 s is a finding on its longest request, too, and any of them may come first.
    assert any("survivor stood still for" in finding.summary for finding in ended.only.findings), ended.output
    (survivor,) = ended.only.survivors
    assert survivor.stall_s is not None
    assert survivor.stall_s > 3
