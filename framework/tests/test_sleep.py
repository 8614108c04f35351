"""A DUT that sleeps on request: the agent's part, and what the checks make of it."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
from desks import desk
from msgspec.structs import replace
from stories import CUT, VICTIM, healthy

from plugpull.checks import kernel_clean, removed, undisturbed
from plugpull.checks.record.uevent_record import uevents_doubted
from plugpull.dut.agent.disks import Refused
from plugpull.dut.agent.sleep import Sleep
from plugpull.dut.conversation.link import AgentGone
from plugpull.dut.suspended import Suspended
from plugpull.errors import NotServed, RigError
from plugpull.history import events as ev
from plugpull.locate import rigs_dir
from plugpull.rig.load import load_rig
from plugpull.virtual.sleeping import harmed_by_sleep


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "power").mkdir()
    (tmp_path / "power/state").write_text("freeze mem disk\n")
    (tmp_path / "power/pm_test").write_text("[none] core processors platform devices freezer\n")
    folder = tmp_path / "module/suspend/parameters"
    folder.mkdir(parents=True)
    (folder / "pm_test_delay").write_text("5\n")
    return tmp_path


def test_the_kernels_own_test_is_asked_and_put_back(machine: Path) -> None:
    sleep = Sleep(str(machine))
    assert sleep.begin(3)
    said = sleep.end()
    assert (said["ok"], said["stuck"], said["why"]) == (True, False, "")
    assert said["begun"] <= said["until"]
    assert (machine / "power/state").read_text() == "freeze"
    assert (machine / "power/pm_test").read_text() == "none"
    assert (machine / "module/suspend/parameters/pm_test_delay").read_text() == "5"


def test_a_kernel_without_that_test_is_left_alone(machine: Path) -> None:
    (machine / "power/pm_test").unlink()
    assert not Sleep(str(machine)).begin(3)
    assert (machine / "power/state").read_text() == "freeze mem disk\n"


def test_a_long_sleep_is_refused(machine: Path) -> None:
    with pytest.raises(Refused, match="1 to 8 s here, not 60"):
        Sleep(str(machine)).begin(60)


RESET = ev.KernelMessage(at=CUT + 3.0, text="usb 1-1.2: reset high-speed USB device number 5 using xhci_hcd")
LOST = ev.KernelMessage(at=CUT + 3.0, text="usb usb1: root hub lost power or was reset", level=4)


def test_resets_of_a_machine_that_slept_are_explained() -> None:
    bench = healthy()
    bench.add(RESET, LOST)
    assert bench.judge(undisturbed()).findings
    assert bench.judge(kernel_clean()).findings
    bench.add(ev.DutSuspended(at=CUT - 1.0, until=CUT + 2.5, ok=True))
    assert not bench.judge(undisturbed()).findings
    assert not bench.judge(kernel_clean()).findings


BEGIN, AWAKE = CUT - 3.0, CUT + 2.0
OTHER = "1-1.2", "sdc"
"""The USB path and the kernel name of a disk that is not cut."""
ERROR = f"I/O error, dev {OTHER[1]}, sector 128 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"
FAILED_COMMAND = "sd 2:0:0:0: [sdc] tag#12 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=0s"
POWER_ON = "sd 2:0:0:0: [sdc] Power-on or device reset occurred"


def slept(*lines: tuple[float, str]) -> list[str]:
    """What is said of a machine that slept from ``BEGIN`` until ``AWAKE``, and logged these lines."""
    bench = healthy()
    bench.add(ev.DutSuspended(at=BEGIN, until=AWAKE, ok=True))
    bench.add(*(ev.KernelMessage(at=at, text=text, level=3) for at, text in lines))
    return [finding.summary for finding in bench.judge(undisturbed()).findings]


@pytest.mark.parametrize("text", [ERROR, FAILED_COMMAND])
@pytest.mark.parametrize("at", [BEGIN + 1.0, AWAKE - 0.5, AWAKE + 1.0, AWAKE + 6.0])
def test_sleep_explains_no_request_of_a_disk_that_was_not_cut_that_failed(at: float, text: str) -> None:
    (said,) = slept((at, text))
    assert f"reported an error on disk2: {text}" in said


@pytest.mark.parametrize(("at", "many"), [(AWAKE - 0.5, 0), (AWAKE + 1.0, 0), (AWAKE + 5.9, 1)])
def test_sleep_explains_resets_until_the_machine_is_awake(at: float, many: int) -> None:
    assert len(slept((at, RESET.text))) == many


@pytest.mark.parametrize("at", [AWAKE + 0.1, AWAKE + 8.0])
def test_a_disk_reports_the_reset_of_its_sleep_with_its_first_command_and_once(at: float) -> None:
    assert slept((at, POWER_ON)) == []
    assert len(slept((at, POWER_ON), (AWAKE + 9.0, POWER_ON))) == 1
    awake = healthy()
    awake.add(ev.KernelMessage(at=at, text=POWER_ON, level=3))
    assert len(awake.judge(undisturbed()).findings) == 1


def changed(*times: float, asleep: bool = True, subsystem: str = "scsi") -> list[str]:
    """What is said of a disk of which the kernel announces changes at these times."""
    bench = healthy()
    if asleep:
        bench.add(ev.DutSuspended(at=BEGIN, until=AWAKE, ok=True))
    path = next(one.sysfs for one in bench.events if isinstance(one, ev.DiskAttached) and one.disk == "disk2")
    devpath = path.removeprefix("/sys").partition("/block/")[0]
    bench.add(*(ev.Uevent(at=at, action="change", subsystem=subsystem, devpath=devpath) for at in times))
    return [what for what in uevents_doubted(bench.story()) if "had changed" in what]


def test_a_change_that_the_kernel_announces_long_after_a_disk_came_is_a_doubt() -> None:
    assert len(changed(AWAKE + 8.0, asleep=False)) == 1
    assert changed(11.5, asleep=False) == [], "it had just come"


@pytest.mark.parametrize(("at", "many"), [(AWAKE - 0.1, 0), (AWAKE + 1.0, 0), (AWAKE + 6.0, 1)])
def test_sleep_explains_changes_of_usb_devices_until_the_machine_is_awake(at: float, many: int) -> None:
    assert len(changed(at, subsystem="usb")) == many


@pytest.mark.parametrize("at", [AWAKE + 0.4, AWAKE + 7.0])
def test_sleep_explains_one_change_of_a_scsi_device_with_its_first_command(at: float) -> None:
    assert changed(at) == []
    assert len(changed(at, AWAKE + 8.0)) == 1


def test_a_reset_on_request_explains_no_request_that_failed() -> None:
    bench = healthy()
    bench.add(ev.DiskRecovered(at=20.0, disk="disk2", until=21.0, resets=1))
    bench.add(ev.KernelMessage(at=20.3, text=RESET.text, level=6))
    bench.add(ev.KernelMessage(at=20.4, text="sd 2:0:0:0: device reset", level=6))
    assert bench.judge(undisturbed()).findings == ()
    bench.add(ev.KernelMessage(at=20.5, text=ERROR, level=3))
    assert len(bench.judge(undisturbed()).findings) == 1


def test_a_machine_that_was_lost_while_it_slept_had_been_asked_to_sleep() -> None:
    context = Mock()
    context.bench.harmed_by_sleep.return_value = ""
    context.now.return_value, context.listener.lost = 100.0, ""
    context.bench.flushes.return_value = {}
    with Suspended(context, 3):
        context.listener.lost = "the agent fell silent"
    (slept,) = context.recorder.record.call_args.args
    assert (slept.at, slept.until, slept.ok) == (100.0, 104.0, False)
    assert "its agent fell silent" in slept.detail
    bench = healthy()
    bench.add(RESET, LOST, replace(slept, at=CUT - 1.0, until=CUT + 3.0))
    assert not bench.judge(undisturbed()).findings


class Slept(Mock):
    """A context whose machine is heard again at the third look."""

    looks = 0

    def pause(self, seconds: float) -> None:
        self.looks += 1
        self.listener.asleep = self.looks < 3


def a_machine(*, ok: bool = True) -> Slept:
    context = Slept()
    context.bench.harmed_by_sleep.return_value = ""
    context.now.return_value, context.listener.lost, context.listener.asleep = 100.0, "", True
    context.bench.flushes.side_effect = [{"disk1": 4, "disk2": 2}, {"disk1": 5, "disk2": 2}]
    context.bench.link.call.return_value = {"begun": 100.5, "until": 109.0, "ok": ok, "why": "" if ok else "busy"}
    return context


def test_what_has_to_wait_until_the_machine_is_awake_does() -> None:
    context = a_machine()
    with Suspended(context, 3) as sleep:
        assert context.looks == 1, "the one that lets the kernel fall asleep"
        sleep.wait_awake()
        assert context.looks == 3
        (slept,) = context.recorder.record.call_args.args
        assert (slept.at, slept.until, slept.ok) == (100.5, 109.0, True)
        assert slept.flushes == {"disk1": 1, "disk2": 0}
    assert context.recorder.record.call_count == 1


def test_a_block_ends_when_the_machine_is_awake() -> None:
    context = a_machine()
    with Suspended(context, 3):
        pass
    assert context.looks == 3
    assert context.recorder.record.call_count == 1


def test_a_machine_that_would_not_sleep_is_recorded_once() -> None:
    context = a_machine(ok=False)
    with pytest.raises(RigError, match="was not suspended: busy"), Suspended(context, 3) as sleep:
        sleep.wait_awake()
    (slept,) = context.recorder.record.call_args.args
    assert (slept.ok, slept.detail) == (False, "busy")
    assert context.recorder.record.call_count == 1


def test_a_machine_that_does_not_answer_when_it_should_be_awake_was_asked_to_sleep() -> None:
    context = a_machine()
    with pytest.raises(AgentGone, match="nothing was heard"), Suspended(context, 3):
        context.bench.link.call.side_effect = AgentGone("nothing was heard")
    (slept,) = context.recorder.record.call_args.args
    assert (slept.at, slept.until, slept.ok) == (100.0, 104.0, False)
    assert "nothing was heard" in slept.detail


def test_the_error_that_ended_the_block_is_the_one_to_report() -> None:
    context = a_machine()
    sleep = Suspended(context, 3).__enter__()
    context.bench.link.call.side_effect = AgentGone("nothing was heard")
    sleep.__exit__(ValueError, ValueError("a scenario's own"), None)
    assert context.recorder.record.call_count == 1


def test_a_disk_that_leaves_when_the_machine_wakes_is_a_finding_all_the_same() -> None:
    bench = healthy()
    bench.add(ev.DutSuspended(at=CUT - 1.0, until=CUT + 2.5, ok=True))
    bench.detach("disk2", CUT + 2.6)
    assert "disk2 left at" in bench.judge(undisturbed()).findings[0].summary


def test_time_asleep_does_not_count() -> None:
    bench = healthy()
    bench.starved = ((CUT - 1.0, CUT + 1.0),)
    gone = CUT + 1.05
    bench.replace(ev.DiskDetached, lambda event: event.disk == VICTIM, at=gone)
    begin, _, kname, number = bench._attached[VICTIM][0]
    bench._attached[VICTIM][0] = (begin, gone, kname, number)
    bench.add(ev.DutSuspended(at=CUT - 1.0, until=CUT + 1.0, ok=True))
    assert bench.judge(removed(VICTIM, within=0.5)).findings == ()


@pytest.mark.parametrize(
    ("rig", "kernel", "harmed"),
    [
        ("quick", "6.12.117+deb12-amd64", True),
        ("quick", "7.0.0-rc1", True),
        ("quick", "6.9.7", False),
        ("quick", "6.1.0-56-amd64", False),
        ("odd-enclosures", "6.12.117+deb12-amd64", False),
    ],
)
def test_an_emulated_hub_must_not_sleep_with_kernels_whose_memory_qemu_then_overwrites(
    rig: str, kernel: str, harmed: bool
) -> None:
    assert bool(harmed_by_sleep(load_rig(rigs_dir() / f"{rig}.toml"), kernel)) == harmed


def test_a_bench_that_a_sleep_would_harm_is_not_suspended() -> None:
    context = Mock()
    context.bench.harmed_by_sleep.return_value = "QEMU's xHCI writes where it must not"
    with pytest.raises(NotServed, match="QEMU's xHCI writes"):
        Suspended(context, 3).__enter__()
    context.bench.link.call.assert_not_called()


def test_whether_a_sleep_would_harm_is_known_without_asking_the_machine(tmp_path: Path) -> None:
    """It says what it is when it is ready. To ask again writes marks into its log, whose numbers are then missing."""
    with desk(tmp_path) as opened:
        context = opened.context
        assert context.kernel == ""
        for kernel in ("6.1.0", "6.12.117+deb12-amd64"):
            context.recorder.record(ev.DutReady(at=1.0, kernel=kernel, kind="virtual", how="restored", took=1.0))
        assert context.kernel == "6.12.117+deb12-amd64"
    context = a_machine()
    context.kernel = "6.12.117+deb12-amd64"
    with Suspended(context, 3):
        context.bench.harmed_by_sleep.assert_called_once_with("6.12.117+deb12-amd64")
    context.bench.ready.assert_not_called()
