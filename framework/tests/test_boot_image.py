"""The initramfs and the command line that a guest is booted with."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugpull.virtual import snapshot
from plugpull.virtual.image import Additions, Tree
from plugpull.virtual.machine import COMMAND_LINE


@pytest.mark.parametrize("own", [{}, {"usbcore": "autosuspend=2"}])
def test_idle_hubs_stay_awake(own: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a module and built in: a disk that is plugged into a hub that QEMU's kernel is suspending is not noticed."""
    monkeypatch.setattr(snapshot, "base_tree", lambda **_: Tree())
    module = tmp_path / "usbcore.ko"
    module.write_bytes(b"module")
    image = snapshot.boot_image([module], frozenset(), Additions(options=own))
    assert f"usbcore.ko {own.get('usbcore', 'autosuspend=-1')}\n".encode() in image
    assert "usbcore.autosuspend=-1" in COMMAND_LINE.split()
