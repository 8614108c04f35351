"""How kernels die on every architecture, in every version since 2.4: what each such line means, where it happened."""

from __future__ import annotations

import io

import pytest

from plugpull.kernel.catalogue.classify import classify
from plugpull.kernel.diagnosis.log_reader import read_log

DEATHS = (
    ("fatal.oops", "Internal error: Oops: 0000000096000004 [#1] PREEMPT SMP"),
    ("fatal.oops", "Bad mode in Synchronous Abort handler detected, code 0x8600000f"),
    ("fatal.oops", "Oops - load access fault [#1]"),
    ("fatal.oops", "Oops: Kernel access of bad area, sig: 11 [#1]"),
    ("fatal.oops", "monitor event: 0040 ilc:2 [#1] SMP"),
    ("fatal.oops", "do_cpu invoked from kernel context![#1]:"),
    ("fatal.oops", "Unaligned FP access in kernel code[#1]:"),
    ("fatal.oops", "Kernel ale access[#1]:"),
    ("fatal.oops", "swapper(1): Oops [#1]"),
    ("fatal.oops", "modprobe(123): Kernel bad sw trap 5 [#1]"),
    ("fatal.oops", "swapper(1): Kernel Bug 1"),
    ("fatal.oops", "unaligned program counter: 0000 [#1]"),
    ("fatal.oops", "Kernel Fault: Code=26 regs=00000000 (Addr=00000000)"),
    ("fatal.oops", "unable to execute userspace code (SMEP?) (uid: 0)"),
    ("fatal.oops", "Alignment trap: not handling instruction e1d32fb0 at [<c01a1234>]"),
    ("fatal.oops", "general protection fault, probably"),
    ("fatal.oops", "swapper(0): Oops 0"),
    ("fatal.bug", "Debug: sleeping function called from invalid context at mm/slab.c:2085"),
    ("fatal.bug", "bad: scheduling while atomic!"),
    ("fatal.bug", "scheduling while atomic: swapper/0x00000100/0"),
    ("fatal.bug", "BUG: spinlock bad magic on CPU#0, swapper/1"),
    ("fatal.lockup", "BUG: spinlock lockup on CPU#0, swapper/1, c0123456"),
    ("fatal.lockup", "BUG: write-lock lockup on CPU#0, dd/12, c0123456"),
    ("fatal.lockup", "smp: csd: Detected non-responsive CSD lock (#1) on CPU#0, waiting 5000000032 ns for CPU#01"),
    ("fatal.lockup", "watchdog: CPU 24 Hard LOCKUP"),
    ("fatal.hung-task", "INFO: task dd:345 <writer> blocked on an rw-semaphore likely owned by task cp:12 <reader>"),
    ("warn.sanitizer", "BUG: KASan: use after free in usb_stor_disconnect+0x1/0x2 at addr ffff8800a1b2c3d4"),
    ("warn.sanitizer", "KASAN: null-ptr-deref in range [0x0000000000000018-0x000000000000001f]"),
    ("warn.sanitizer", "cache_from_obj: Wrong slab cache. kmalloc-64 but object is from kmalloc-128"),
    ("warn.sanitizer", "KASAN: null-ptr-deref in range"),
    ("warn.warning", "strcpy: detected buffer overflow: 20"),
    ("warn.lockdep", "DEPT: Circular dependency has been detected."),
    ("warn.warning", "Badness in local_bh_enable at kernel/softirq.c:119"),
    ("warn.warning", "Bug: Read fault blocked by KUAP!"),
    ("warn.warning", "percpu ref (blk_queue_usage_counter_release) <= 0 (0) after switching to atomic"),
    ("warn.warning", "workqueue: WQ_MEM_RECLAIM nvme-wq:nvme_scan_work is flushing !WQ_MEM_RECLAIM events:foo"),
    ("warn.warning", "workqueue: PF_MEMALLOC task 95(kswapd0) is flushing !WQ_MEM_RECLAIM events:foo"),
    ("warn.warning", 'memcpy: detected field-spanning write (size 16) of single field "x" at a.c:12 (size 8)'),
    ("warn.warning", "DEBUG_LOCKS_WARN_ON(lock->magic != lock)"),
    ("warn.sanitizer", "xhci_hcd 0000:00:14.0: DMA-API: device driver frees DMA memory with different size [size=16]"),
    ("warn.sanitizer", "DMA-API: xhci_hcd 0000:00:14.0: device driver maps memory from stack [addr=00000000a1b2c3d4]"),
    ("warn.memory", "Out of Memory: Killed process 1234 (dd)."),
    ("warn.memory", "__alloc_pages: 0-order allocation failed (gfp=0x1d2/0)"),
    ("warn.hardware", "CPU 0: Machine Check Exception: 0000000000000004"),
)
HEALTHY = (
    "Alignment trap: foo (1234) PC=0x00008000 Instr=0xe5901000 Address=0x00000001 FSR 0x001",
    "unchecked MSR access error: WRMSR to 0x199 (tried to write 0x0000000000000800) at rIP: 0xffffffff81067c84",
    "Disabling lock debugging due to kernel taint",
    "DMA-API: preallocated 65536 debug entries",
    "DMA-API: debugging enabled by kernel config",
    "DMA-API: debugging out of memory - disabling",
    "watchdog: CPU 0 became unstuck TB:1234",
    "smp: csd: CSD lock (#1) got unstuck on CPU#01, CPU#00 released the lock.",
    "workqueue: name exceeds WQ_NAME_LEN. Truncating to: events_freezable_pwr_effic",
    "traps: python3[123] general protection fault ip:7f1234 sp:7f5678 error:0 in libpython3.11.so",
    "systemd(1): Stopped target Basic System [#1]",
    "Memory cgroup stats for /docker/a(1): cache 12 [#1]",
)
PREFIXES = (
    "", "[  123.456789] ", "<1>[  123.456789][  T321] ", "<4>[  123.456789][    C0] ", "[Sat Nov 22 10:11:12 2025] ",
    "Nov 22 10:11:12 host kernel: [  123.456789] ", "2025-11-22T10:11:12.123456+01:00 host kernel: ",
    "kern  :alert : [  123.456789] ", "\x1b[32m[  123.456789] \x1b[0m\x1b[31m",
)  # fmt: skip

ARM = (
    "Unable to handle kernel NULL pointer dereference at virtual address 00000018 when read",
    "[00000018] *pgd=00000000",
    "Internal error: Oops: 17 [#1] PREEMPT SMP ARM",
    "CPU: 0 PID: 97 Comm: usb-storage Not tainted 6.6.0 #1",
    "PC is at usb_stor_control_thread+0x1a4/0x2c0 [usb_storage]",
    "pc : [<bf000abc>]    lr : [<c0a01234>]    psr: 60000013",
)
RISCV = (
    "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000008",
    "Oops [#1]",
    "epc : xhci_handle_event+0x12/0x34",
    " ra : xhci_irq+0x122/0x2a0",
)
POWERPC = (
    "BUG: Kernel NULL pointer dereference on read at 0x00000018",
    "Faulting instruction address: 0xc00000000098b4dc",
    "Oops: Kernel access of bad area, sig: 11 [#1]",
    "NIP:  c00000000098b4dc LR: c00000000098b4a0 CTR: c00000000098b440",
    "NIP [c00000000098b4dc] scsi_queue_rq+0x9c/0xb20",
)
S390 = (
    "Unable to handle kernel pointer dereference in virtual kernel address space",
    "Oops: 0004 ilc:2 [#1] SMP",
    "Krnl PSW : 0704e00180000000 00000001cf9a5c6e (blk_mq_run_hw_queue+0x1e/0x1a8)",
)
MIPS = (
    "CPU 0 Unable to handle kernel paging request at virtual address 00000004, epc == 8032a4c8, ra == 8032a4a0",
    "Oops[#1]:",
    "epc   : 8032a4c8 usb_hcd_flush_endpoint+0x40/0x1b4",
)
SPARC = ("modprobe(1234): Oops [#1]", "TPC: <usb_alloc_urb+0x18/0x60>")


def stamped(lines: tuple[str, ...], caller: str = "") -> list[str]:
    return [f"[  100.{number:06d}]{f'[ {caller:>5}]' if caller else ''} {line}" for number, line in enumerate(lines)]


def read(lines: list[str]) -> list[tuple[str, str]]:
    """Kind and headline of each report."""
    found = read_log(io.BytesIO("\n".join([*lines, ""]).encode()), "kern.log")
    return [(one.report.event.kind, one.report.headline) for one in found if one.report]


@pytest.mark.parametrize(("kind", "line"), DEATHS)
def test_a_line_of_a_dying_kernel(kind: str, line: str) -> None:
    for prefix in PREFIXES:
        event = classify(prefix + line)
        assert event is not None, prefix + line
        assert event.kind == kind
    assert read([f"[  100.000000] {line}\r"])[0][0] == kind


@pytest.mark.parametrize("line", HEALTHY)
def test_what_looks_like_it(line: str) -> None:
    for prefix in PREFIXES:
        assert classify(prefix + line) is None


@pytest.mark.parametrize(
    ("lines", "function"),
    [(ARM, "usb_stor_control_thread"), (RISCV, "xhci_handle_event"), (POWERPC, "scsi_queue_rq"),
     (S390, "blk_mq_run_hw_queue"), (MIPS, "usb_hcd_flush_endpoint"), (SPARC, "usb_alloc_urb")],
)  # fmt: skip
def test_where_an_oops_happened_is_in_its_headline(lines: tuple[str, ...], function: str) -> None:
    assert read(stamped(lines)) == [("fatal.oops", f"{lines[0]} in {function}")]


def test_what_another_cpu_reports_meanwhile_is_a_report_of_its_own() -> None:
    lockup = (
        "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [dd:11]",
        "RIP: 0010:native_queued_spin_lock_slowpath+0x12/0x30",
        "Call Trace:",
    )
    both = [line for pair in zip(stamped(RISCV, "T10"), stamped(lockup, "T11"), strict=False) for line in pair]
    assert [kind for kind, _ in read(both)] == ["fatal.oops", "fatal.lockup"]
    assert [kind for kind, _ in read(stamped((*RISCV[:1], *lockup, *RISCV[1:]), "T10"))] == ["fatal.oops"]


def test_a_warning_that_ends_in_a_panic_is_a_panic_unless_a_setting_wants_that() -> None:
    check = "mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 4: b200000000070f0f"
    panic = "Kernel panic - not syncing: Fatal machine check"
    assert read(stamped((check, panic))) == [("fatal.panic", panic)]
    bug = "BUG: KASAN: slab-use-after-free in usb_stor_disconnect+0x12/0x34"
    for why in ("KASAN: panic_on_warn set ...", "kasan.fault=panic set ..."):
        assert read(stamped((bug, f"Kernel panic - not syncing: {why}"))) == [("warn.sanitizer", bug)]
