"""The quirks of USB ports, which say how quickly the kernel sets up what is plugged into them."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugpull.dut.agent import ports
from plugpull.dut.agent.ports import PORTS, set_quirks


def port(root: Path, hub: str, number: int, quirks: str = "00000000") -> Path:
    folder = root / "sys/bus/usb/devices" / f"{hub}:1.0" / f"{hub}-port{number}"
    folder.mkdir(parents=True)
    (folder / "quirks").write_text(quirks + "\n")
    return folder / "quirks"


def test_every_port_of_every_hub_gets_them_and_gets_its_own_back(tmp_path: Path) -> None:
    files = [port(tmp_path, "1-0", 1), port(tmp_path, "1-1.4", 2)]
    name = f"{tmp_path}/{PORTS}"
    assert set_quirks("3", str(tmp_path)) == {"changed": [(name, "00000000", "3")], "failed": {}}
    assert [file.read_text() for file in files] == ["3", "3"]
    assert set_quirks("0", str(tmp_path)) == {"changed": [(name, "3", "0")], "failed": {}}
    assert [file.read_text() for file in files] == ["0", "0"]


def test_a_port_that_has_them_is_left_alone(tmp_path: Path) -> None:
    file = port(tmp_path, "1-0", 1, "00000003")
    assert set_quirks("3", str(tmp_path)) == {"changed": [], "failed": {}}
    assert file.read_text() == "00000003\n"


def test_a_kernel_without_quirks_of_ports_has_nothing_to_change(tmp_path: Path) -> None:
    assert set_quirks("3", str(tmp_path)) == {"changed": [], "failed": {}}


@pytest.mark.parametrize("stays", [True, False], ids=["refuses", "goes"])
def test_a_port_that_refuses_is_named_and_one_that_goes_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, stays: bool
) -> None:
    file = port(tmp_path, "1-0", 1)

    def read(path: str) -> str:
        """As the file is read, and then it becomes a folder, or its port is gone."""
        file.unlink()
        file.mkdir() if stays else file.parent.rmdir()
        return "00000000"

    monkeypatch.setattr(ports, "read_attribute", read)
    failed = {str(file): "Is a directory"} if stays else {}
    assert set_quirks("3", str(tmp_path)) == {"changed": [], "failed": failed}
