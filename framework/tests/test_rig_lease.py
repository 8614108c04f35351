"""One rig is used by one run at a time, and a dead run holds nothing. The holders here are real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import plugpull
from plugpull.coordination.lease import Lease, lease_directory, resources
from plugpull.errors import RigError
from plugpull.rig.load import load_rig
from plugpull.rig.model import Rig

QUICK = Path(__file__).parents[2] / "rigs" / "quick.toml"

HOLDER = """
import sys
from pathlib import Path
from plugpull.coordination.lease import Lease
from plugpull.rig.model import Rig
rig = Rig.model_validate_json(sys.argv[1])
with Lease(rig, Path("other.toml"), run_dir=Path("runs/other"), directory=Path(sys.argv[2]), exclusive=True):
    print("held", flush=True)
    sys.stdin.read()
"""


def real(name: str = "bench", serials: tuple[str, ...] = ("A", "B"), switch: str = "YK1") -> Rig:
    return Rig.model_validate(
        {
            "rig": {"name": name},
            "dut": {"kind": "local"},
            "switch": [{"name": "y", "driver": "ykush", "ports": 3, "mechanism": "vbus", "serial": switch}],
            "controller": [{"name": "usb", "path": "0000:00:14.0"}],
            "disk": [
                {"name": f"disk{port}", "at": f"usb.{port}", "serial": serial, "size": 512}
                for port, serial in enumerate(serials, 1)
            ],
        }
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "locks"


def lease(rig: Rig, directory: Path, *, run_dir: str = "runs/mine", exclusive: bool | None = None) -> Lease:
    return Lease(rig, QUICK, run_dir=Path(run_dir), directory=directory, exclusive=exclusive)


@contextmanager
def holder(rig: Rig, directory: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(Path(plugpull.__file__).parents[1])}
    command = [sys.executable, "-c", HOLDER, rig.model_dump_json(), str(directory)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_real_rig_is_held_by_one_run_and_given_back(directory: Path) -> None:
    with lease(real(), directory), pytest.raises(RigError) as caught, lease(real(), directory):
        pass
    assert f"rig bench is in use by pid {os.getpid()} since 2" in str(caught.value)
    assert "(runs/mine)" in str(caught.value)
    assert "hint: wait until that run ends" in str(caught.value)
    with lease(real(), directory):
        pass


def test_a_run_that_was_refused_holds_nothing(directory: Path) -> None:
    with lease(real(serials=("B",), switch="YK2"), directory), pytest.raises(RigError), lease(real(), directory):
        pass
    with lease(real(), directory):
        pass


def test_rig_files_that_share_a_disk_or_a_switch_exclude_each_other(directory: Path) -> None:
    with lease(real("mine"), directory):
        with pytest.raises(RigError, match="as rig mine, which shares its disk with serial number B"):
            lease(real("yours", ("B", "C"), "YK2"), directory).__enter__()
        with pytest.raises(RigError, match="as rig mine, which shares its ykush switch serial=YK1"):
            lease(real("yours", ("C", "D"), "YK1"), directory).__enter__()
        with lease(real("yours", ("C", "D"), "YK2"), directory):
            pass


def test_how_a_switch_is_spoken_to_does_not_make_it_another_switch() -> None:
    rig = real()
    assert resources(rig, QUICK)[-1] == "ykush switch serial=YK1"
    options = {"name": "z", "driver": "ykush", "ports": 3, "mechanism": "vbus", "serial": "YK1", "settle": 0.5}
    other = Rig.model_validate({**rig.model_dump(), "switch": [options]})
    assert resources(other, QUICK) == resources(rig, QUICK)


def switched(dut: dict[str, object] | None = None, **switch: Any) -> str:
    """What a rig with this switch holds besides its disk."""
    rig = real().model_dump() | {"dut": dut or {"kind": "local"}}
    usual = {"name": "y", "ports": 1, "mechanism": "mains"}
    return resources(Rig.model_validate({**rig, "switch": [{**usual, **switch}]}), QUICK)[-1]


def test_each_kind_says_which_keys_identify_its_device() -> None:
    board: dict[str, Any] = {"driver": "kmtronic", "device": "/dev/ttyUSB0"}
    assert switched(**board, channels=4, baud=19200) == switched(**board) == "kmtronic switch device=/dev/ttyUSB0"
    strip: dict[str, Any] = {"driver": "pdudaemon", "pdu": "rack"}
    assert switched(**strip) == switched(**strip, server="http://localhost:16421")
    assert switched(**strip) != switched(**strip, server="http://other:16421")
    assert switched(driver="human", name="a") != switched(driver="human", name="b")


def test_a_key_that_nobody_guessed_identifies_a_device() -> None:
    """Two outlets of labgrid's with one environment file were one device, whatever their target."""
    one, other = (switched(driver="labgrid", environment="env.yaml", target=target) for target in ("main", "second"))
    assert one != other
    assert switched(driver="labgrid", environment="env.yaml", python="/opt/python") == one.replace("second", "main")


def test_the_only_device_of_a_kind_is_one_device_whatever_its_name() -> None:
    assert switched(driver="ykush", name="a") == switched(driver="ykush", name="b") == "ykush switch (the only one)"


def test_hubs_of_two_duts_with_one_name_are_two_hubs() -> None:
    hub: dict[str, Any] = {"driver": "uhubctl", "location": "1-1", "via": "dut"}
    one, other = (switched({"kind": "ssh", "host": f"root@{host}"}, **hub) for host in ("one", "two"))
    assert one == "uhubctl switch location=1-1 on ...@one"
    assert one != other
    assert switched(**hub) == "uhubctl switch location=1-1"


def test_virtual_rigs_are_shared_unless_one_is_wanted_alone(directory: Path) -> None:
    rig = load_rig(QUICK)
    with lease(rig, directory), lease(rig, directory), pytest.raises(RigError, match="in use by pid"):
        lease(rig, directory, exclusive=True).__enter__()
    with lease(rig, directory, exclusive=True), pytest.raises(RigError, match="in use by pid"):
        lease(rig, directory).__enter__()


def test_another_process_holds_the_rig_until_it_is_killed(directory: Path) -> None:
    with holder(real(), directory) as other:
        with pytest.raises(RigError, match=rf"in use by pid {other.pid} since .* \(runs/other\)"):
            lease(real(), directory).__enter__()
        other.send_signal(signal.SIGKILL)
        other.wait()
        with lease(real(), directory):
            pass


def test_children_do_not_keep_the_lease(directory: Path) -> None:
    held = lease(real(), directory).__enter__()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False):
        held.release()
        with lease(real(), directory):
            pass


def test_a_forked_child_neither_keeps_the_lease_nor_gives_it_back(directory: Path) -> None:
    held = lease(real(), directory).__enter__()
    to_child, from_parent = os.pipe()
    from_child, to_parent = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(from_parent)
        held.release()
        os.write(to_parent, b"x")
        os.read(to_child, 1)
        os._exit(0)
    os.read(from_child, 1)
    with pytest.raises(RigError):
        lease(real(), directory).__enter__()
    held.release()
    with lease(real(), directory):
        pass
    for fd in (from_parent, to_child, from_child, to_parent):
        os.close(fd)
    os.waitpid(child, 0)


def test_a_lock_file_that_was_removed_does_not_let_two_in(directory: Path) -> None:
    with lease(real(), directory):
        pass
    for file in directory.iterdir():
        file.unlink()
    with lease(real(), directory), pytest.raises(RigError):
        lease(real(), directory).__enter__()


def test_the_directory_of_the_locks_is_private(directory: Path, tmp_path: Path) -> None:
    with lease(real(), directory):
        assert directory.stat().st_mode & 0o777 == 0o700
    directory.chmod(0o755)
    with pytest.raises(RigError, match=r"open to others \(mode 755"):
        lease(real(), directory).__enter__()
    directory.chmod(0o700)
    link = tmp_path / "link"
    link.symlink_to(directory)
    with pytest.raises(RigError, match="is a symbolic link"):
        lease(real(), link).__enter__()
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(RigError, match="is not a directory"):
        lease(real(), file).__enter__()
    with pytest.raises(RigError, match="cannot be made"):
        lease(real(), tmp_path / "no" / "where").__enter__()


def test_a_lock_file_that_is_a_symbolic_link_is_refused(directory: Path, tmp_path: Path) -> None:
    with lease(real(), directory):
        pass
    target = tmp_path / "precious"
    target.write_text("kept")
    for file in directory.iterdir():
        file.unlink()
        file.symlink_to(target)
    with pytest.raises(RigError, match="cannot be opened"):
        lease(real(), directory).__enter__()
    assert target.read_text() == "kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_the_directory_of_somebody_else_is_refused(directory: Path) -> None:
    directory.mkdir(mode=0o700)
    os.chown(directory, 65534, 65534)
    with pytest.raises(RigError, match="belongs to uid 65534"):
        lease(real(), directory).__enter__()


def test_the_directory_does_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lease_directory()
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    assert lease_directory() == before
