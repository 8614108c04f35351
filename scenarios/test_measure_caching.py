import pytest

from plugpull.load import caching_design
from plugpull.scenario import ScenarioRig
from plugpull.studies import caching


@pytest.mark.study(design=caching_design)
@pytest.mark.row("U02")
@pytest.mark.row("A01")
@pytest.mark.row("U01")
def test_caches_and_what_they_hide(rig: ScenarioRig) -> None:
    """The same write as dd does it without options, with a final fsync, with O_SYNC and with O_DIRECT; the last two
    also with the drives' own caches switched off. A buffered rate that no path can carry is called impossible, with the
    time of the final sync; what a drive's cache is worth is a difference."""
    rig.run_tasks(caching_design(rig.disks))
    rig.judge(caching(rig.disks))
