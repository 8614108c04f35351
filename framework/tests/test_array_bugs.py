"""A bug put into md's RAID 1 is found by a stock scenario and named; the same module without it passes."""

from __future__ import annotations

from pathlib import Path

import driver_build
import pytest
from arrays_bench import arrays_rig
from defects_bench import Ended, run_small

from plugpull.exit_status import EXIT_FAIL, EXIT_PASS
from plugpull.judging.results import Verdict

pytestmark = pytest.mark.bench

# Each run boots a guest of its own, because a snapshot holds its modules.
dear = pytest.mark.skipif(not driver_build.ASKED, reason="takes long: PLUGPULL_DRIVER_BUGS=1 runs it")

FILE = "drivers/md/raid1.c"
DEGRADED = "test_bit(R1BIO_Degraded, &r1_bio->state)"
BUGS = {
    "": ("", ""),
    # What is written while a member is away is not marked in the bitmap, so nobody copies it when it is back.
    "forgets": (f"!{DEGRADED},", "1,"),
}
"""What is changed in the source, by the name of the bug."""


def raid1(bug: str) -> Path:
    before, after = BUGS[bug]

    def edit(tree: Path) -> None:
        text = (tree / FILE).read_text()
        assert text.count(before) >= 1, f"the source of this kernel has no {before!r}"
        (tree / FILE).write_text(text.replace(before, after, 1))

    return driver_build.driver(
        "drivers/md", "raid1", edit if bug else lambda tree: None, bug or "plain", driver_build.MD
    )


def run_with(folder: Path, bug: str) -> Ended:
    # Serial numbers of its own: a rig is leased by those of its disks.
    rig = arrays_rig("ARRBUG-{n}").text
    return run_small(folder, "", "-k", "gets_it_back and raid1]", "--module", str(raid1(bug)), rig=rig)


@dear
def test_the_unmodified_module_passes(tmp_path: Path) -> None:
    ended = run_with(tmp_path, "")
    assert (ended.status, ended.only.verdict) == (EXIT_PASS, Verdict.PASS), ended.output


@dear
def test_a_bitmap_that_forgets_what_a_member_missed_is_found_on_its_leg(tmp_path: Path) -> None:
    ended = run_with(tmp_path, "forgets")
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    found = [one for one in ended.only.findings if one.check == "legs_hold"]
    assert [one.subject for one in found] == [ended.only.cuts[0].point.removesuffix(".cable")], ended.output
    assert "does not hold what array1 was given" in found[0].summary
