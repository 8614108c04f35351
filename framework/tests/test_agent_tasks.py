"""Which tasks count as blocked, what kernel threads cost, and what the agent reads of disks and the kernel's state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sysfs_tree import Sysfs

from plugpull.dut.agent import tasks
from plugpull.dut.agent.properties import properties
from plugpull.dut.agent.state import state
from plugpull.dut.agent.tasks import TaskWatch, all_tasks, parse_stat

KTHREAD = 0x00208040


class Proc:
    """A /proc with tasks in it, and a clock that a test moves."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.time = 100.0
        self.said: list[dict[str, Any]] = []
        monkeypatch.setattr(tasks, "now", lambda: self.time)
        self.watch = TaskWatch(self.said.append, str(root))

    def task(
        self,
        pid: int,
        name: str,
        state: str,
        *,
        kernel: bool = True,
        switched: int = 7,
        ticks: int = 0,
        started: int = 5,
    ) -> None:
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        flags = KTHREAD if kernel else 0x00400000
        fields = [state, 2, 0, 0, 0, -1, flags, 0, 0, 0, 0, ticks, 0, 0, 0, 20, 0, 1, 0, started, 0, 0]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, fields))}\n")
        (folder / "status").write_text(
            f"Name:\t{name}\nvoluntary_ctxt_switches:\t{switched}\nnonvoluntary_ctxt_switches:\t1\n"
        )
        (folder / "comm").write_text(name + "\n")
        (folder / "cmdline").write_text("" if kernel else f"{name}\0--filename=/dev/sda\0")
        (folder / "wchan").write_text("usb_stor_disconnect")
        (folder / "stack").write_text("[<0>] usb_stor_disconnect+0x1/0x2\n[<0>] usb_unbind_interface+0x1/0x2\n")

    def stat(self, soft: int = 0, count: int = 0) -> None:
        (self.root / "stat").write_text(f"cpu  1 2 3 4 5 6 {soft} 0 0 0\nintr {count} 0 0\n")

    def look(self, seconds: float = tasks.INTERVAL) -> None:
        self.watch.look()
        self.time += seconds

    def blocked(self) -> list[dict[str, Any]]:
        return [message for message in self.said if message["ev"] == "task.blocked"]


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    made = Proc(tmp_path, monkeypatch)
    made.task(1, "init", "S", kernel=False)
    made.stat()
    return made


def test_a_worker_that_does_not_run_is_reported_with_its_stack(proc: Proc) -> None:
    proc.look()
    proc.task(9, "kworker/1:2+usb_hub_wq", "D")
    for _ in range(4):
        proc.look()
    first, *_ = proc.blocked()
    assert (first["name"], first["kernel"], first["seconds"], first["before"]) == (
        "kworker/1:2+usb_hub_wq",
        True,
        4.0,
        False,
    )
    assert first["since"] == 102.0
    assert first["stack"][0].endswith("usb_stor_disconnect+0x1/0x2")
    proc.task(9, "kworker/1:2", "S", switched=8)
    proc.look()
    assert proc.blocked()[-1]["ended"]


def test_reports_come_further_and_further_apart(proc: Proc) -> None:
    proc.look()
    proc.task(9, "mount", "D", kernel=False)
    for _ in range(40):
        proc.look()
    assert [message["seconds"] for message in proc.blocked()] == [4.0, 8.0, 16.0, 32.0, 64.0]
    assert proc.blocked()[0]["name"] == "mount --filename=/dev/sda"


def test_a_task_that_waits_again_and_again_is_not_blocked(proc: Proc) -> None:
    for switched in range(20):
        proc.task(9, "fio", "D", kernel=False, switched=switched)
        proc.look()
    assert proc.blocked() == []


def test_another_task_with_the_same_number_is_another_task(proc: Proc) -> None:
    for started in range(20):
        proc.task(9, "fio", "D", started=started)
        proc.look()
    assert proc.blocked() == []


def test_time_in_which_the_machine_was_starved_does_not_count(proc: Proc) -> None:
    proc.look()
    proc.task(9, "fio", "D")
    proc.look(60.0)  # nothing ran for a minute, the watch neither
    proc.look()
    assert [message["seconds"] for message in proc.blocked()] == [2 * tasks.INTERVAL]


def test_what_was_blocked_before_is_marked(proc: Proc) -> None:
    proc.task(9, "hwrng", "D")
    for _ in range(4):
        proc.look()
    assert proc.blocked()[0]["before"]
    assert proc.watch.settle(8.0) == []


def test_nothing_is_waited_for_where_nothing_is_blocked(proc: Proc) -> None:
    proc.look()
    assert proc.watch.settle(8.0) == []
    assert proc.blocked() == []


def test_a_worker_that_is_stuck_at_the_end_is_waited_for(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.look()
    proc.task(9, "kworker/1:2+usb_hub_wq", "D")

    def wait(seconds: float) -> bool:
        proc.time += seconds
        return False

    monkeypatch.setattr(proc.watch._stop, "wait", wait)
    (left,) = proc.watch.settle(8.0)
    assert left["pid"] == 9
    assert left["seconds"] >= 8.0
    assert proc.blocked()[-1]["seconds"] >= 8.0
    assert proc.time < 115.0


def test_a_task_that_runs_again_at_the_end_is_not_waited_for(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.look()
    proc.task(9, "fio", "D", switched=1)

    def wait(seconds: float) -> bool:
        proc.time += seconds
        proc.task(9, "fio", "D", switched=int(proc.time * 1000))
        return False

    monkeypatch.setattr(proc.watch._stop, "wait", wait)
    assert proc.watch.settle(8.0) == []
    assert proc.time < 103.0


def test_a_kernel_thread_that_does_not_stop_is_on_record(proc: Proc) -> None:
    hertz = tasks._TICKS
    proc.task(9, "kworker/0:1+events", "R")
    proc.look()
    for number in (1, 2):
        proc.task(9, "kworker/0:1+events", "R", ticks=int(number * 2 * hertz * 0.95))
        proc.task(1, "init", "R", kernel=False, ticks=number * 2 * hertz)
        proc.stat(soft=number * hertz, count=number * 1000)
        proc.look()
    activity = [message for message in proc.said if message["ev"] == "activity"]
    assert [message["threads"] for message in activity] == [{"kworker/0:1+events (9)": 0.95}] * 2
    assert [(message["soft"], message["interrupts"]) for message in activity] == [(0.5, 500)] * 2


def test_names_with_brackets_and_blanks_are_read() -> None:
    task = parse_stat("7 ((sd-pam) x) D 1 1 1 0 -1 2097152 0 0 0 0 3 4 0 0 20 0 1 0 99 0 0")
    assert task is not None
    assert (task.pid, task.name, task.state, task.kernel, task.cpu, task.started) == (
        7,
        "(sd-pam) x",
        "D",
        True,
        7,
        "99",
    )
    assert parse_stat("") is None


def test_this_machine_has_tasks() -> None:
    assert 1 in {task.pid for task in all_tasks()}


# --- disks and the kernel --------------------------------------------------------------------------------------------


def test_properties_are_those_the_kernel_has(tmp_path: Path) -> None:
    sysfs = Sysfs(tmp_path)
    base = sysfs.usb_disk("sda", "pci0000:00/0000:00:05.0/usb2/2-1", "uas", "S-1", size="131072")
    sysfs.write(base / "queue", write_cache="write back", logical_block_size="512")
    sysfs.write(base / "device", queue_depth="28", eh_timeout="10", vpd_pg83="", vpd_pg80="")
    address = (base / "device").resolve().name
    sysfs.write(base / "device" / "scsi_disk" / address, max_retries="5")
    found = properties("sda", str(tmp_path))
    assert found == {
        "size": "131072",
        "ro": "0",
        "write_cache": "write back",
        "logical_block_size": "512",
        "queue_depth": "28",
        "eh_timeout": "10",
        "max_retries": "5",
        "product_pages": "80 83",
        "speed": "5000",
        "driver": "uas",
    }
    assert properties("sdz", str(tmp_path)).get("size") is None


def test_the_state_of_the_kernel(tmp_path: Path) -> None:
    files = {
        "sys/kernel/tainted": "4609",
        "sys/kernel/osrelease": "6.1.0",
        "sys/kernel/random/boot_id": "abc",
        "modules": "uas 32768 1 - Live 0\nusb_storage 81920 2 uas, Live 0\nsd_mod 1 - - Unloading 0\n",
        "meminfo": "MemTotal: 100 kB\nSUnreclaim:  12 kB\nKernelStack: 3 kB\n",
        "interrupts": " CPU0 CPU1\n 28: 5 7 PCI-MSI 49152-edge xhci_hcd\n LOC: 1 2 Local interrupts\n",
        "pressure/io": "some avg10=0.00 avg60=0.00 total=12\nfull avg10=0.00 avg60=0.00 total=5\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert state(str(tmp_path)) == {
        "boot_id": "abc",
        "kernel": "6.1.0",
        "taint": 4609,
        "modules": {"uas": 1, "usb_storage": 2, "sd_mod": -1},
        "memory": {"SUnreclaim": 12288, "KernelStack": 3072},
        "interrupts": {"28 xhci_hcd": 12, "LOC interrupts": 3},
        "pressure": {"io some": 12, "io full": 5},
    }


def test_a_kernel_that_has_none_of_this_is_no_error(tmp_path: Path) -> None:
    assert state(str(tmp_path))["taint"] == 0


def test_what_was_blocked_when_the_scenario_began_is_not_what_was_when_the_watch_did(proc: Proc) -> None:
    proc.task(9, "hwrng", "D")
    before = tasks.waiting_now(str(proc.root))
    proc.task(10, "kworker/0:1", "D")
    proc.watch = TaskWatch(proc.said.append, str(proc.root), before)
    for _ in range(4):
        proc.look()
    assert {said["pid"]: said["before"] for said in proc.blocked()} == {9: True, 10: False}
