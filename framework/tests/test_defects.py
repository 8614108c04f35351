"""Each seeded defect of a bench is found, with the right verdict and a sentence that names it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from defects_bench import Ended, run_small
from long_tests import only_if_asked

from plugpull.checks.survivor import watched
from plugpull.exit_status import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN
from plugpull.judging.outcome import judge_run
from plugpull.judging.results import Verdict
from plugpull.virtual.defects import FLIPPED_AT

pytestmark = pytest.mark.bench

WRITING = ("-k", "while_writing")


def defect(kind: str, **keys: object) -> str:
    lines = [f"{key} = {value!r}" if isinstance(value, str) else f"{key} = {value}" for key, value in keys.items()]
    return "\n".join(["\n[[defect]]", f"kind = '{kind}'", *lines, ""])


def test_a_healthy_bench_passes(tmp_path: Path) -> None:
    ended = run_small(tmp_path, "", *WRITING)
    assert (ended.status, ended.only.verdict) == (EXIT_PASS, Verdict.PASS), ended.output
    (cut,) = ended.only.cuts
    assert cut.read_back is True
    times = [cut.commanded_at, cut.kernel_saw_at, cut.restored_at, cut.returned_at]
    known = [time for time in times if time is not None]
    assert len(known) == len(times)
    # Two clocks are compared: an effect may seem to come before its cause by as much as their mapping is uncertain.
    assert all(later - earlier >= -cut.error for earlier, later in pairwise(known)), cut
    assert 0 < cut.error < 0.5
    assert ended.only.integrity.sectors_checked > 0
    assert (ended.directory / "report.html").stat().st_size > 10_000


def test_a_switch_that_cuts_nothing_is_unknown(tmp_path: Path) -> None:
    ended = run_small(tmp_path, defect("switch-lies", disk="victim"), *WRITING)
    assert (ended.status, ended.only.verdict) == (EXIT_UNKNOWN, Verdict.UNKNOWN), ended.output
    assert ended.only.findings == ()
    assert "switch cables port 1 said off" in ended.only.sentence


@pytest.fixture(scope="module")
def never_returned(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return run_small(tmp_path_factory.mktemp("never"), defect("never-returns", disk="victim"), *WRITING)


def test_a_disk_that_never_returns_fails(never_returned: Ended) -> None:
    ended = never_returned
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    # What hung at its place is missing too, and said after it.
    assert (ended.only.findings[0].check, ended.only.findings[0].subject) == ("returned", "victim")
    assert {finding.check for finding in ended.only.findings[1:]} <= {"nothing_left"}
    assert "victim did not come back" in ended.only.sentence


@only_if_asked
def test_a_disk_that_does_not_survive_a_bad_contact_fails(tmp_path: Path) -> None:
    ended = run_small(tmp_path, defect("never-returns", disk="victim"), "-k", "bad_contact and touch")
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    assert (ended.only.findings[0].check, ended.only.findings[0].subject) == ("returned", "victim")


def test_a_disk_that_returns_with_another_serial_fails(tmp_path: Path) -> None:
    ended = run_small(tmp_path, defect("serial-changes", disk="victim"), *WRITING)
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    (finding,) = ended.only.findings
    assert (finding.check, finding.subject) == ("returned", "victim")
    assert "CHANGED-SMALL-1" in finding.summary
    assert "SMALL-1" in ended.only.sentence


def test_a_survivor_throttled_to_half_fails(tmp_path: Path) -> None:
    ended = run_small(tmp_path, defect("slows", disk="survivor", factor=0.5), *WRITING)
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    assert {f.check for f in ended.only.findings} == {"kept_pace"}
    # Its limit is half of 2 MiB/s on any host. How much of its baseline that is depends on what the host gave the DUT.
    seen = watched(judge_run(ended.directory)[0].stories[0], "survivor")
    after = seen.line.rate(seen.line.at(seen.cut), seen.line.end)
    assert after < 0.65 * (2 << 20)
    assert "survivor" in ended.only.sentence


def test_a_survivor_that_stalls_fails(tmp_path: Path) -> None:
    # The victim stays away: QEMU 10 stops the guest while it plugs a device in beside one that stalls. How much of the
    # 6 s counts depends on how busy the machine is; more than the limit of a stall does.
    ended = run_small(tmp_path, defect("stalls", disk="survivor", seconds=6.0), "-k", "keep_their_pace")
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    assert any(f.check == "kept_pace" and "survivor stood still for" in f.summary for f in ended.only.findings)


@only_if_asked
def test_a_survivor_stalled_below_the_limit_is_reported_and_accused_of_nothing(tmp_path: Path) -> None:
    ended = run_small(tmp_path, defect("stalls", disk="survivor", seconds=0.25), *WRITING)
    (survivor,) = ended.only.survivors
    assert survivor.stall_s is not None
    assert survivor.stall_s >= 0.1
    assert ended.only.findings == (), ended.output


def test_a_flipped_bit_on_a_survivor_fails(tmp_path: Path) -> None:
    ended = run_small(tmp_path, defect("bit-flip", disk="survivor"), *WRITING)
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    (finding,) = ended.only.findings
    assert (finding.check, finding.subject) == ("data_intact", "survivor")
    assert f"corrupt at sector {FLIPPED_AT // 512}" in finding.summary
    assert "1 bit flipped in write" in finding.summary


def test_a_kernel_panic_fails_with_its_headline_and_the_next_scenario_runs(tmp_path: Path) -> None:
    panic = defect("kernel-panic", scenario="while_reading")
    ended = run_small(tmp_path, panic, "-k", "while_reading or while_writing")
    assert ended.status == EXIT_FAIL, ended.output
    reading, writing = ended.results.scenarios
    assert reading.verdict is Verdict.FAIL
    assert "sysrq triggered crash" in reading.sentence
    assert writing.verdict is Verdict.PASS, ended.output
    consoles = [path.read_text(errors="replace") for path in ended.directory.glob("scenarios/*reading*/console.log")]
    assert any("Kernel panic - not syncing" in text for text in consoles)


def test_an_agent_that_falls_silent_is_unknown(tmp_path: Path) -> None:
    ended = run_small(tmp_path, defect("agent-silent"), *WRITING)
    assert (ended.status, ended.only.verdict) == (EXIT_UNKNOWN, Verdict.UNKNOWN), ended.output
    assert ended.only.findings == ()
    assert "agent" in ended.only.sentence


@only_if_asked  # it boots an image of its own
def test_fio_missing_is_unknown_before_anything_is_cut(tmp_path: Path) -> None:
    ended = run_small(tmp_path, defect("fio-missing"), *WRITING)
    assert (ended.status, ended.only.verdict) == (EXIT_UNKNOWN, Verdict.UNKNOWN), ended.output
    assert ended.only.cuts == ()
    assert "fio is not installed on the DUT" in ended.only.sentence


def test_a_recorded_failure_is_judged_the_same_again(never_returned: Ended) -> None:
    _, again = judge_run(never_returned.directory)
    assert again == never_returned.results
