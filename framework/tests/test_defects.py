"""Each seeded defect of a bench is found, with the right verdict and a sentence that names it.

A flipped bit and other damage to data: ``test_survivors_data_in_guest.py``.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from defects_bench import Ended, run_small
from long_tests import only_if_asked
from rig_builder import a_rig

from plugpull.checks.survivors.survivor import watched
from plugpull.exit_status import EXIT_FAIL, EXIT_UNKNOWN
from plugpull.judging.outcome import judge_run
from plugpull.judging.results import Verdict

pytestmark = pytest.mark.bench

WRITING = ("-k", "while_writing")


def defect(kind: str, **keys: object) -> str:
    lines = [f"{key} = {value!r}" if isinstance(value, str) else f"{key} = {value}" for key, value in keys.items()]
    return "\n".join(["\n[[defect]]", f"kind = '{kind}'", *lines, ""])


@pytest.fixture(scope="module")
def panicked(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Two scenarios: the first one's kernel panics, and the second one's bench is healthy."""
    panic = defect("kernel-panic", scenario="while_reading")
    return run_small(tmp_path_factory.mktemp("panic"), panic, "-k", "while_reading or while_writing", steady=True)


def test_a_kernel_panic_fails_with_its_headline_and_the_next_scenario_runs(panicked: Ended) -> None:
    ended = panicked
    assert ended.status == EXIT_FAIL, ended.output
    reading, writing = ended.results.scenarios
    assert reading.verdict is Verdict.FAIL
    assert "sysrq triggered crash" in reading.sentence
    assert writing.verdict is Verdict.PASS, ended.output
    consoles = [path.read_text(errors="replace") for path in ended.directory.glob("scenarios/*reading*/console.log")]
    assert any("Kernel panic - not syncing" in text for text in consoles)


def test_a_healthy_bench_passes(panicked: Ended) -> None:
    ended, healthy = panicked, panicked.results.scenarios[1]
    assert (healthy.verdict, healthy.findings) == (Verdict.PASS, ()), ended.output
    (cut,) = healthy.cuts
    assert cut.read_back is True
    times = [cut.commanded_at, cut.kernel_saw_at, cut.restored_at, cut.returned_at]
    known = [time for time in times if time is not None]
    assert len(known) == len(times)
    # Two clocks are compared: an effect may seem to come before its cause by as much as their mapping is uncertain.
    assert all(later - earlier >= -cut.error for earlier, later in pairwise(known)), cut
    assert 0 < cut.error < 0.5
    assert healthy.integrity.sectors_checked > 0
    assert (ended.directory / "report.html").stat().st_size > 10_000


def test_a_switch_that_cuts_nothing_is_unknown(tmp_path: Path) -> None:
    ended = run_small(tmp_path, defect("switch-lies", disk="victim"), *WRITING)
    assert (ended.status, ended.only.verdict) == (EXIT_UNKNOWN, Verdict.UNKNOWN), ended.output
    assert ended.only.findings == ()
    assert "switch cables port 1 said off" in ended.only.sentence


THREE = (
    a_rig("two-cut")
    .switch(ports=2)
    .stock_controller()
    .disk("lost", "usb.1", "TWOCUT-1", "16 MiB", rate="2 MiB/s", scratch=True, cable="cables.1")
    .disk("exchanged", "usb.2", "TWOCUT-2", "16 MiB", rate="2 MiB/s", scratch=True, cable="cables.2")
    .disk("slow", "usb.3", "TWOCUT-3", "16 MiB", rate="2 MiB/s", scratch=True)
    .table("defect", kind="never-returns", disk="lost")
    .table("defect", kind="serial-changes", disk="exchanged")
    .table("defect", kind="slows", disk="slow", factor=0.5)
    .text
)
TWO_CUT = '''
from plugpull.checks import data_intact, removed, returned, undisturbed
from plugpull.load import sequential_write


def test_two_of_three(rig):
    """Two cables come loose while all disks are written, and are put back."""
    lost, exchanged, slow = rig.disks
    with rig.load(rig.disks, sequential_write) as load:
        load.settle()
        with rig.cut(lost.cable, exchanged.cable):
            rig.wait(seconds=0.5)
        load.regain_pace()
    rig.judge(removed([lost, exchanged]), returned([lost, exchanged]), *undisturbed([slow]), data_intact(rig.disks))
'''


@pytest.fixture(scope="module")
def three_defects(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Of two disks that are cut, one stays away and one has another serial number then. The survivor slows down."""
    folder = tmp_path_factory.mktemp("three")
    (folder / "test_two.py").write_text(TWO_CUT)
    ended = run_small(folder, "", "test_two.py", rig=THREE, steady=True)
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    # What hung at its place is missing too, and said after it.
    found = {(finding.check, finding.subject) for finding in ended.only.findings if finding.check != "nothing_left"}
    assert found == {("returned", "lost"), ("returned", "exchanged"), ("kept_pace", "slow")}, ended.output
    return ended


def summary_of(ended: Ended, subject: str) -> str:
    (finding,) = [finding for finding in ended.only.findings if finding.subject == subject]
    return finding.summary


def test_a_disk_that_never_returns_fails(three_defects: Ended) -> None:
    assert "lost did not come back" in summary_of(three_defects, "lost")
    assert three_defects.only.findings[0].check == "returned"
    assert three_defects.only.findings[0].summary in three_defects.only.sentence


def test_a_disk_that_returns_with_another_serial_fails(three_defects: Ended) -> None:
    assert "CHANGED-TWOCUT-2" in summary_of(three_defects, "exchanged")


def test_a_survivor_throttled_to_half_fails(three_defects: Ended) -> None:
    # Its limit is half of 2 MiB/s on any host. How much of its baseline that is depends on what the host gave the DUT.
    seen = watched(judge_run(three_defects.directory)[0].stories[0], "slow")
    after = seen.line.rate(seen.line.at(seen.cut), seen.line.end)
    assert after < 0.65 * (2 << 20)
    assert "slow" in summary_of(three_defects, "slow")


@only_if_asked
def test_a_disk_that_does_not_survive_a_bad_contact_fails(tmp_path: Path) -> None:
    ended = run_small(tmp_path, defect("never-returns", disk="victim"), "-k", "bad_contact and touch")
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    assert (ended.only.findings[0].check, ended.only.findings[0].subject) == ("returned", "victim")


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


@only_if_asked  # what falls silent is in test_death_in_guest.py too
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


def test_a_recorded_failure_is_judged_the_same_again(three_defects: Ended) -> None:
    _, again = judge_run(three_defects.directory)
    assert again == three_defects.results
