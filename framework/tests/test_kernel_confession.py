"""The kernel's reports about itself and its machine are judged in every scenario; messages of healthy ones are not."""

from __future__ import annotations

import msgspec
import pytest
from stories import BACK, CUT, DISKS, VICTIM, Bench, healthy

from plugpull.checks import kernel_clean, no_errors, removed
from plugpull.history import events as ev
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict


def said(text: str, at: float = 13.5, level: int = 4, facility: int = 0) -> Bench:
    bench = healthy()
    bench.add(ev.KernelMessage(at=at, text=text, level=level, facility=facility))
    return bench


def outcome(bench: Bench) -> tuple[list[str], list[str]]:
    judgement = bench.judge(kernel_clean())
    return [finding.summary for finding in judgement.findings], [*judgement.unknowns, *bench.unreached(kernel_clean())]


CONFESSIONS = [
    'irq 16: nobody cared (try booting with the "irqpoll" option)',
    "Disabling IRQ #16",
    "DMAR: DRHD: handling fault status reg 2",
    "DMAR: [DMA Write NO_PASID] Request device [00:14.0] fault addr 0xffffe000 [fault reason 0x05] PTE Write access",
    "dmar: DMAR:[DMA Read] Request device [00:14.0] fault addr ffffe000",
    "xhci_hcd 0000:02:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000f address=0xff00 flags=0x0000]",
    "AMD-Vi: Event logged [IO_PAGE_FAULT device=0a:00.0 domain=0x001d address=0x637c000 flags=0x0000]",
    "arm-smmu 15000000.iommu: Unhandled context fault: fsr=0x402, iova=0xd6550, fsynr=0x10, cbfrsynra=0x0, cb=6",
    "usb-storage: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null)",
    "kswapd1: page allocation failure. order:2, mode:0x4020",
    "fio invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0",
    "Out of memory: Killed process 812 (fio) total-vm:412kB, anon-rss:300kB, file-rss:0kB, shmem-rss:0kB, UID:0",
    "xhci_hcd 0000:00:05.0: swiotlb buffer is full (sz: 65536 bytes), total 32768 (slots), used 128 (slots)",
    "workqueue: hub_event hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
    "debugfs: Directory 'sdb' with parent 'block' already present!",
    "ref_tracker: eth%d@ffff888104a52000 has 1/1 users at",
    "kobject: 'host3' (00000000a1b2c3d4): does not have a release() function, it is broken and must be fixed.",
    "kobject: kobject_add_internal failed for sdb with -EEXIST, don't try to register things with the same name",
    "kobject_add_internal failed for 1-1 (error: -2 parent: usb1)",
    "sysfs: cannot create duplicate filename '/devices/virtual/bdi/8:16'",
    "Uhhuh. NMI received for unknown reason 3d on CPU 0.",
    "mce: [Hardware Error]: Machine check events logged",
    "pcieport 0000:00:1c.0: AER: Uncorrected (Non-Fatal) error received: 0000:02:00.0",
    "pcieport 0000:00:1c.0: AER: Multiple Uncorrectable (Non-Fatal) error message received from 0000:73:00.1",
    "pcieport 0000:00:1c.5: AER: Corrected error received: 0000:00:1c.5",
    "list_del corruption. prev->next should be ffff888104a52000, but was dead000000000100",
    "unregister_netdevice: waiting for lo to become free. Usage count = 2",
    "xhci_hcd 0000:00:05.0: xHCI host controller not responding, assume dead",
    "xhci_hcd 0000:00:05.0: HC died; cleaning up",
    "xhci_hcd 0000:00:05.0: WARNING: Host System Error",
    "xhci-hcd xhci-hcd.0.auto: WARNING: Host Controller Error",
    "xhci_hcd 0000:00:05.0: xHCI host not responding to stop endpoint command",
    "xhci_hcd 0000:00:05.0: Abort failed to stop command ring: -110",
    "CFI failure at usb_hcd_giveback_urb+0x1/0x2 (target: foo+0x0/0x10; expected type: 0x12345678)",
    "INFO: task kworker/0:2:88 is blocked on a mutex likely owned by task kworker/1:1:90.",
]


@pytest.mark.parametrize("text", CONFESSIONS)
@pytest.mark.parametrize("at", [13.5, CUT + 0.2, BACK + 2])
def test_what_no_healthy_kernel_prints_is_a_finding_whenever_it_comes(text: str, at: float) -> None:
    found, doubts = outcome(said(text, at))
    assert (found, doubts) == ([text], [])


def test_it_is_judged_though_nobody_asked() -> None:
    bench = said(CONFESSIONS[0])
    bench.checks = (removed(VICTIM),)
    result = judge_story(bench.story())
    assert result.verdict is Verdict.FAIL
    assert [finding.check for finding in result.findings] == ["kernel_clean"]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        (
            "ACPI BIOS Error (bug): Could not resolve symbol [\\_SB.PCI0.XHC], AE_NOT_FOUND (20220331/dswload2-162)",
            3,
        ),
        ("DMAR: IOMMU enabled", 6),
        ("AMD-Vi: Interrupt remapping enabled", 6),
        ("mce: CPU supports 9 MCE banks", 6),
        ("pcieport 0000:00:1c.0: AER: enabled with IRQ 122", 6),
        ("EDAC MC: Ver: 3.0.0", 6),
        ("perf: interrupt took too long (2507 > 2500), lowering kernel.perf_event_max_sample_rate to 79750", 6),
        ("INFO: NMI handler (perf_event_nmi_handler) took too long to run: 1.234 msecs", 6),
        ("hrtimer: interrupt took 12345678 ns", 4),
        ("workqueue: drm_fb_helper_damage_work hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND", 4),
        ("scsi_io_completion_action: 4 callbacks suppressed", 4),
        ("scsi 2:0:0:0: Wrong diagnostic page; asked for 1 got 8", 3),
        ("mce: CPU0: Core temperature is above threshold, cpu clock is throttled (total events = 1)", 2),
        ("watchdog: watchdog0: watchdog did not stop!", 2),
        ("reboot: Restarting system", 0),
        ("usb 3-4: some error that nobody knows", 3),
        ("sd 9:0:0:0: [sdx] some error that nobody knows", 3),
    ],
)
def test_what_healthy_kernels_print(text: str, level: int) -> None:
    assert outcome(said(text, level=level)) == ([], [])
    assert outcome(on_metal(text, level=level)) == ([], [])


def on_metal(text: str, at: float = 13.5, level: int = 4) -> Bench:
    bench = said(text, at, level)
    (ready,) = (one for one in bench.events if isinstance(one, ev.DutReady))
    bench.drop(ev.DutReady)
    bench.add(msgspec.structs.replace(ready, kind="ssh"))
    return bench


@pytest.mark.parametrize(
    "text",
    [
        "debugfs: File 'Capture' in directory 'dapm' already present!",
        "uvcvideo 3-4:1.1: Non-zero status (-71) in video completion handler.",
        "i915 0000:00:02.0: some error that nobody knows",
        "Bluetooth: hci0: unexpected event for opcode 0xfc2f",
    ],
)
def test_errors_that_nobody_knows_are_a_doubt_where_no_other_hardware_is(text: str) -> None:
    assert outcome(on_metal(text, level=3)) == ([], []), "a real machine has cameras and displays"
    for at in (13.5, CUT + 0.3, BACK + 1):
        doubt = f"the kernel logged an uncatalogued error: {text}"
        assert outcome(said(text, at, level=3)) == ([], [doubt]), "no cut explains it"
    assert outcome(said(text, level=4)) == ([], [])


def test_a_corrected_bit_on_a_real_machine_accuses_the_way_to_the_rig_alone() -> None:
    elsewhere = "pcieport 0000:00:1c.5: AER: Corrected error received: 0000:07:00.0"
    assert outcome(on_metal(elsewhere))[0] == []
    ours = "xhci_hcd 0000:00:05.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
    assert outcome(on_metal(ours))[0] == [ours]


def test_a_container_at_its_own_limit_of_memory_is_not_the_kernels_fault() -> None:
    bench = said("stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0")
    bench.add(
        ev.KernelMessage(at=13.51, text="oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,oom_memcg=/x"),
        ev.KernelMessage(at=13.52, text="Memory cgroup out of memory: Killed process 7 (stress)", level=3),
    )
    assert outcome(bench) == ([], [])


# --- in no catalogue -----------------------------------------------------------------------------------------------


def test_something_critical_that_nobody_knows_is_a_finding() -> None:
    bench = said("the flux capacitor exploded in bay 1", level=2)
    bench.add(ev.KernelMessage(at=14.0, text="the flux capacitor exploded in bay 2", level=2))
    found, doubts = outcome(bench)
    words = "the kernel logged an uncatalogued critical message"
    assert found == [f"{words}: the flux capacitor exploded in bay 1 (and 1 more like it)"]
    assert doubts == []


def test_of_a_victim_that_is_cut_it_is_expected() -> None:
    text = "GREATFS (sdb): lost the flux capacitor"
    assert outcome(said(text, CUT + 0.3, 1)) == ([], [])
    assert outcome(said(text, CUT - 0.3, 1))[0] != []
    assert outcome(said(text, BACK + 1, 1))[0] != []


@pytest.mark.parametrize("text", ["usbcore: the flux capacitor is out of phase", "md: the flux capacitor", "blk: flux"])
def test_an_error_of_the_storage_path_that_nobody_knows_is_a_doubt(text: str) -> None:
    assert outcome(said(text, level=3)) == ([], [f"the kernel logged an uncatalogued error: {text}"])
    assert outcome(said(text, level=4)) == ([], [])
    assert outcome(said(text, CUT + 0.3, 3)) == ([], []), "the cut may be why"


def test_a_cut_of_one_disk_does_not_explain_what_the_controller_of_all_says() -> None:
    text = "xhci_hcd 0000:00:05.0: the flux capacitor is out of phase"
    assert outcome(said(text, CUT + 0.3, 3)) == ([], [f"the kernel logged an uncatalogued error: {text}"])
    assert outcome(said(text, CUT + 0.3, 2))[0] != []
    assert outcome(said(text, CUT + 0.3, 4)) == ([], [])


def test_a_warning_of_an_emulated_controller_that_nobody_knows_is_a_doubt_while_nothing_is_cut() -> None:
    text = "xhci_hcd 0000:00:05.0: the flux capacitor is out of phase"
    doubt = f"the kernel logged an uncatalogued warning: {text}"
    for at in (CUT - 1.0, BACK + 3.0):
        assert outcome(said(text, at, 4)) == ([], [doubt])
        assert outcome(said(text, at, 5)) == ([], [])
    assert outcome(said(text.replace("00:05", "00:06"), BACK + 3.0, 4)) == ([], []), "not the rig's"
    real = said(text, BACK + 3.0, 4)
    real.events = [
        msgspec.structs.replace(one, kind="ssh") if isinstance(one, ev.DutReady) else one for one in real.events
    ]
    assert outcome(real) == ([], []), "its controllers have others"
    asleep = said(text, BACK + 3.0, 4)
    asleep.add(ev.DutSuspended(at=BACK + 1.0, until=BACK + 3.5, ok=True))
    assert doubt not in outcome(asleep)[1]


def test_a_cut_of_every_disk_may_explain_what_their_controller_says() -> None:
    bench = said("xhci_hcd 0000:00:05.0: the flux capacitor is out of phase", CUT + 0.3, 3)
    bench.replace(ev.CutArmed, victims=DISKS)
    assert outcome(bench)[0] == []
    assert not any("flux" in doubt for doubt in outcome(bench)[1])


def test_the_lines_of_a_report_are_no_criticals_of_their_own() -> None:
    bench = said("BUG: kernel NULL pointer dereference, address: 0000000000000010", 13.5, 1)
    bench.add(ev.KernelMessage(at=13.501, text="some line that only this oops has", level=0))
    found, _ = outcome(bench)
    assert found == ["BUG: kernel NULL pointer dereference, address: 0000000000000010"]


def test_a_dut_whose_supply_breaks_down_is_the_benchs() -> None:
    found, doubts = outcome(said("hwmon hwmon1: Undervoltage detected!", level=2))
    assert found == []
    assert "power supply failed" in doubts[0]


# --- what processes write --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["Kernel panic - not syncing: just kidding", *CONFESSIONS[:3], "made up, critical"])
def test_what_a_process_writes_to_the_log_is_not_the_kernels(text: str) -> None:
    bench = said(text, level=2, facility=1)
    assert outcome(bench) == ([], [])
    bench.add(ev.KernelMessage(at=13.6, text="I/O error, dev sdc, sector 8 op 0x1:(WRITE)", level=3, facility=3))
    assert bench.judge(no_errors("disk2")).findings == ()


def test_what_a_process_writes_shows_no_removal() -> None:
    bench = healthy()
    bench.drop(ev.Uevent)
    bench.replace(ev.KernelMessage, lambda event: "disconnect" in event.text, facility=1)
    (cut,) = bench.story().cut_records
    assert cut.kernel_saw_at is None


# --- a DUT that its host did not run ---------------------------------------------------------------------------------


LOCKUP = "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [kworker/1:1:33]"


STUCK = [
    "watchdog: BUG: soft lockup - CPU#1 stuck for 7s! [kworker/1:1:33]",
    "rcu: INFO: rcu_preempt self-detected stall on CPU",
    "workqueue: hub_event hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
]


def starved_bench(text: str, *, jiffies_in_the_gap: int) -> Bench:
    """Nothing is heard of the DUT from 16 s to 23 s; the CPUs' counters say whether they ran."""
    bench = said(text, 22.9, 0)
    bench.starved = ((16.0, 23.0),)
    bench.replace(ev.DutReady, cpus=2)
    bench.add(
        ev.Sampled(at=15.99, disks={}, cpu=(100, 10_000)),
        ev.Sampled(at=23.01, disks={}, cpu=(100, 10_000 + jiffies_in_the_gap)),
    )
    return bench


@pytest.mark.parametrize("text", STUCK)
def test_a_lockup_of_a_dut_that_its_host_did_not_run_is_a_doubt(text: str) -> None:
    found, doubts = outcome(starved_bench(text, jiffies_in_the_gap=40))
    assert found == []
    assert "its host did not run" in doubts[0]


@pytest.mark.parametrize("text", STUCK)
def test_a_lockup_in_which_the_cpus_counted_time_is_the_duts(text: str) -> None:
    assert outcome(starved_bench(text, jiffies_in_the_gap=1390))[0] == [text]
    assert outcome(said(LOCKUP, 22.0))[0] == [LOCKUP]


@pytest.mark.parametrize("text", STUCK)
def test_a_lockup_while_the_host_ran_the_dut_is_the_duts(text: str) -> None:
    bench = starved_bench(text, jiffies_in_the_gap=40)
    bench.drop(ev.ClockMapped)
    for at, ran in ((15.9, 5.0), (23.1, 12.0)):
        bench.add(ev.ClockMapped(at=at, controller=at + 600, error=0.002, ran=ran))
    assert outcome(bench)[0] == [text]


def test_a_lockup_that_took_longer_than_the_host_was_away() -> None:
    assert outcome(starved_bench(LOCKUP, jiffies_in_the_gap=40))[0] == [LOCKUP]


# --- floods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "apart", "found"), [(2000, 0.0001, 1), (400, 0.0001, 0), (600, 0.025, 0)])
def test_a_flood_of_lines_is_found_even_if_a_cut_explains_them(count: int, apart: float, found: int) -> None:
    bench = healthy(until=CUT + 20)
    for number in range(count):
        text = f"usb-storage 1-1.1:1.0: cannot resubmit urb, status -{number}"
        bench.add(ev.KernelMessage(at=CUT + 0.05 + number * apart, text=text, level=3))
    findings = [one for one in bench.judge(kernel_clean()).findings if "lines alike" in one.summary]
    assert len(findings) == found
    assert all(
        "the kernel logged 2000 lines alike, 500 of them within 10 s: usb-storage" in one.summary for one in findings
    )
