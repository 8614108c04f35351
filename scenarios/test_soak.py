import pytest

from plugpull.load import fio_write
from plugpull.soak import Soak


@pytest.mark.row("X21")
def test_disks_last(soak: Soak) -> None:
    """All disks are written for hours or days, and one random fault follows another at random moments. A disk that does
    not come back is set aside, and the others go on."""
    for turn in soak.turns():
        with turn as rig:
            with rig.load(rig.disks, fio_write) as load:
                turn.run_until_fault()
                load.settle()
                with rig.fault(turn.fault):
                    pass
                load.regain_pace()
            rig.judge(*turn.checks())
