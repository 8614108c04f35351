"""``plugpull measure`` on a virtual rig of known truth: two disks of one rate, and a disk that stalls above 48 KiB
beside one that does not."""

from __future__ import annotations

import pytest
from long_tests import only_if_asked
from rig_builder import a_rig

from plugpull.cli import main
from plugpull.judging.results import Results
from plugpull.judging.results_io import read_results

pytestmark = [pytest.mark.bench, only_if_asked]

RATE = 2 << 20
SAFE = 48 << 10


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("measured")
    rig = (
        a_rig("truth")
        .stock_controller()
        .disks("disk1", "disk2", serial="TRUTH-{n}", size="64 MiB", rate=RATE, cache="1 MiB", scratch=True)
        .table(
            "defect", kind="long-transfer-stall", disk="disk1", sectors=SAFE // 512, every=8, scenario="safe_transfer"
        )
        .write(folder)
    )
    out = folder / "runs"
    main(["measure", "--rig", str(rig), "-k", "caches or safe_transfer", "--repeats", "2", "--out", str(out)])
    return read_results((out / "latest").resolve())


def test_the_largest_safe_size_is_exact_and_of_one_disk(measured: Results) -> None:
    found = [one for one in measured.conclusions if one.kind == "largest-safe-size"]
    assert [(one.subject, one.value) for one in found] == [("disk1", SAFE)]


def test_buffered_rates_are_impossible_and_their_sync_takes_the_time_of_the_disk(measured: Results) -> None:
    found = {one.subject for one in measured.conclusions if one.kind == "impossible-rate"}
    assert found == {"disk1", "disk2"}
    syncs = [one for one in measured.measurements if one.name == "final sync"]
    assert [one.value for one in syncs] == [pytest.approx(2.0, rel=0.25)] * 2


def test_nobody_is_accused_of_a_cache_that_the_study_switched(measured: Results) -> None:
    caches = next(one for one in measured.scenarios if "caches" in one.id)
    assert [one.summary for one in caches.findings] == []
    assert any(one.name == "write direct, drive cache off" for one in caches.measurements)
