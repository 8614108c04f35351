"""Edits of the kernel log: what no healthy kernel prints, and what is harmless."""

from __future__ import annotations

from benchmarks.edits.events import of
from benchmarks.edits.registry import CUT, FAIL, PASS, UNKNOWN, add, edit
from benchmarks.edits.tape import Tape

SOME = ("while_writing", "every_disk_is_found_at_its_place", "many_cuts_leave_nothing_behind")
ALL = (
    *CUT,
    "a_cable_is_gone_for_good",
    "a_disk_dies_in_use",
    "a_hub_is_gone_for_a_while",
    "a_cable_comes_loose_between_flushes",
    "the_whole_tree_is_cut_in_operation",
    "every_disk_is_found_at_its_place",
    "many_cuts_leave_nothing_behind",
)
ONE = ("while_writing",)

OOPS = (
    "BUG: kernel NULL pointer dereference, address: 0000000000000010",
    "#PF: supervisor read access in kernel mode",
    "Oops: 0000 [#1] PREEMPT SMP NOPTI",
    "CPU: 1 PID: 41 Comm: kworker/1:1 Not tainted 6.1.0-56-amd64 #1",
    "Workqueue: usb_hub_wq hub_event [usbcore]",
    "RIP: 0010:usb_stor_disconnect+0x12/0x50 [usb_storage]",
    "Call Trace:",
    " <TASK>",
    " usb_unbind_interface+0x8e/0x280 [usbcore]",
    " </TASK>",
    "---[ end trace 0000000000000000 ]---",
)

FATAL: dict[str, tuple[tuple[str, ...], int]] = {
    "oops": (OOPS, 0),
    "page fault": (("BUG: unable to handle page fault for address: ffffffffdeadbeef",), 1),
    "general protection fault": (
        ("general protection fault, probably for non-canonical address 0xdead000000000108: 0000 [#1] SMP",),
        0,
    ),
    "soft lockup": (("watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [kworker/1:1:41]",), 0),
    "hard lockup": (("watchdog: Watchdog detected hard LOCKUP on cpu 1",), 0),
    "RCU stall": (
        (
            "rcu: INFO: rcu_preempt self-detected stall on CPU",
            "rcu: \t1-....: (5249 ticks this GP) idle=1e4c/1/0x4000000000000000",
        ),
        3,
    ),
    "hung task": (
        ("INFO: task kworker/0:2:123 blocked for more than 120 seconds.", "      Not tainted 6.1.0-56-amd64 #1"),
        3,
    ),
    "kernel BUG": (("kernel BUG at drivers/scsi/scsi_lib.c:1130!",), 2),
    "WARNING": (
        (
            "------------[ cut here ]------------",
            "WARNING: CPU: 0 PID: 41 at drivers/usb/host/xhci-ring.c:1290 xhci_handle_cmd+0x1/0x2 [xhci_hcd]",
        ),
        4,
    ),
    "use after free": (
        (
            "refcount_t: underflow; use-after-free.",
            "WARNING: CPU: 0 PID: 41 at lib/refcount.c:28 refcount_warn_saturate+0xba/0x110",
        ),
        4,
    ),
    "KASAN": (("BUG: KASAN: slab-use-after-free in scsi_device_put+0x1/0x2 [scsi_mod]",), 3),
    "UBSAN": (("UBSAN: array-index-out-of-bounds in drivers/usb/storage/uas.c:712:14",), 3),
    "list corruption": (("list_del corruption. prev->next should be ffff888, but was dead000000000122",), 3),
    "scheduling while atomic": (("BUG: scheduling while atomic: kworker/1:1/41/0x00000002",), 3),
    "sleeping in atomic": (("BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580",), 3),
    "lockdep": (("WARNING: possible circular locking dependency detected",), 4),
    "panic": (("Kernel panic - not syncing: Fatal exception",), 0),
    "double free": (("BUG: Object already free", "BUG kmalloc-64 (Not tainted): Object already free"), 3),
    "object poison": (("BUG kmalloc-64 (Tainted: G    B): Poison overwritten",), 3),
    "stack guard": (("BUG: stack guard page was hit at 0000000012345678 (stack is 00..00)",), 0),
    "bad page": (("BUG: Bad page state in process fio  pfn:12345",), 1),
    "DMA-API": (
        (
            "DMA-API: xhci_hcd 0000:00:10.0: device driver frees DMA memory with different size [map size=8 bytes]",
            "WARNING: CPU: 0 PID: 0 at kernel/dma/debug.c:1010 check_unmap+0x1/0x2",
        ),
        4,
    ),
    "HC died": (("xhci_hcd 0000:00:10.0: HC died; cleaning up",), 3),
    "host not responding": (("xhci_hcd 0000:00:10.0: xHCI host not responding to stop endpoint command",), 4),
    "host controller not responding": (("xhci_hcd 0000:00:10.0: xHCI host controller not responding, assume dead",), 3),
    "irq nobody cared": (('irq 11: nobody cared (try booting with the "irqpoll" option)',), 3),
    "irq disabled": (("Disabling IRQ #11",), 0),
    "IOMMU fault": (
        ("DMAR: [DMA Write] Request device [00:10.0] fault addr 0xfff00000 [fault reason 0x05] PTE not set",),
        3,
    ),
    "AMD IOMMU fault": (
        ("xhci_hcd 0000:00:10.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000c address=0xdead0000 flags=0x0020]",),
        3,
    ),
    "page allocation failure": (
        ("kworker/1:1: page allocation failure: order:4, mode:0x40a20(GFP_ATOMIC|__GFP_COMP), nodemask=(null)",),
        4,
    ),
    "swiotlb full": (
        ("xhci_hcd 0000:00:10.0: swiotlb buffer is full (sz: 65536 bytes), total 32768 (slots), used 32768 (slots)",),
        4,
    ),
    "debugfs name taken": (("debugfs: Directory '8:0' with parent 'block' already present!",), 3),
    "sysfs name taken": (("sysfs: cannot create duplicate filename '/devices/virtual/bdi/8:0'",), 4),
    "kobject without release": (
        (
            "kobject: '(null)' (00000000deadbeef): is not initialized, yet kobject_put() is being called.",
            "WARNING: CPU: 0 PID: 41 at lib/kobject.c:752 kobject_put+0x1/0x2",
        ),
        4,
    ),
    "no release function": (
        ("Device 'host1' does not have a release() function, it is broken and must be fixed.",),
        3,
    ),
    "ref_tracker leak": (("ref_tracker: reference already released.",), 3),
    "workqueue lockup": (("BUG: workqueue lockup - pool cpus=1 node=0 flags=0x0 nice=0 stuck for 33s!",), 0),
    "machine check": (("mce: [Hardware Error]: CPU 1: Machine Check: 0 Bank 5: be00000000800400",), 0),
    "uncorrected PCIe error": (("pcieport 0000:00:1c.0: AER: Uncorrected (Fatal) error received: 0000:00:1c.0",), 3),
}
"""Name: lines and level of what is wrong whatever a scenario asked for."""

DOUBTFUL: dict[str, tuple[str, int]] = {
    "unknown NMI": ("Uhhuh. NMI received for unknown reason 3d on CPU 0.", 0),
    "corrected PCIe error": ("pcieport 0000:00:1c.0: AER: Corrected error received: 0000:00:1c.0", 4),
    "out of memory": ("Out of memory: Killed process 512 (fio) total-vm:1234kB, anon-rss:1234kB", 3),
    "unknown critical line": ("frobnicator: the widget is on fire", 2),
    "unknown alert": ("frobnicator: the widget is gone", 1),
    "unknown error line": ("frobnicator: cannot frobnicate (-5)", 3),
}
"""What is at least not known to be healthy."""

for _name, (_lines, _level) in FATAL.items():
    add(
        "kernel says",
        _name,
        FAIL,
        "No healthy kernel prints this, whatever a scenario asked for.",
        lambda tape, t=_lines, v=_level: tape.say(
            tape.judged_at - 0.05 if not tape.all(of("edge")) else tape.off_at + 0.4, *t, level=v
        ),
        SOME if _name not in ("oops", "HC died", "hung task") else ALL,
    )
for _name, (_line, _level) in DOUBTFUL.items():
    add(
        "kernel says",
        _name,
        (FAIL, UNKNOWN),
        "A line of this level that healthy kernels do not print is at least a doubt.",
        lambda tape, t=_line, v=_level: tape.say(tape.off_at + 0.4, t, level=v),
        ONE,
    )

# --- harmless ---------------------------------------------------------------------------------------------------------

HARMLESS = {
    "network link": (
        (
            "e1000e 0000:00:19.0 eth0: NIC Link is Down",
            "e1000e 0000:00:19.0 eth0: NIC Link is Up 1000 Mbps Full Duplex",
        ),
        6,
    ),
    "journal": (("systemd-journald[123]: Received client request to flush runtime journal.",), 6),
    "perf": (("perf: interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate to 79750",), 6),
    "random": (("random: crng init done",), 5),
    "audit": (('audit: type=1400 audit(1700000000.123:4): apparmor="STATUS" operation="profile_load"',), 5),
    "loop device": (("loop0: detected capacity change from 0 to 8192",), 6),
    "slow hrtimer": (("hrtimer: interrupt took 60627980 ns",), 4),
    "uncatalogued warning about nobody": (("frobnicator: the widget is somewhat warm",), 4),
    "uncatalogued notice about a survivor": (("sd {address}: [{kname}] frobnication is fine",), 6),
    "keyboard on another controller": (
        (
            "usb 9-1: new low-speed USB device number 2 using xhci_hcd",
            "usb 9-1: New USB device found, idVendor=046d, idProduct=c31c, bcdDevice=64.00",
            "usb 9-1: Product: USB Keyboard",
            "input: Logitech USB Keyboard as /devices/pci0000:00/0000:00:14.0/usb9/9-1/9-1:1.0/input/input5",
        ),
        6,
    ),
    "keyboard unplugged from another controller": (("usb 9-1: USB disconnect, device number 2",), 6),
    "system disk": (
        (
            "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
            "EXT4-fs (nvme0n1p2): re-mounted. Quota mode: none.",
        ),
        6,
    ),
    "TCP": (("TCP: request_sock_TCP: Possible SYN flooding on port 22. Sending cookies.",), 6),
    "watchdog set up": (
        (
            "watchdog: Delayed init of the lockup detector failed: -19",
            "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
        ),
        6,
    ),
    "text that quotes an oops": (("fio: looking for the words Oops and BUG in a file name is no trouble",), 6),
}
for _name, (_lines, _level) in HARMLESS.items():

    def _said(tape: Tape, texts: tuple[str, ...] = _lines, level: int = _level) -> Tape:
        n = tape.names(tape.survivor)
        return tape.say(
            tape.off_at + 0.3, *(text.format(address=n.address, kname=n.kname) for text in texts), level=level
        )

    add(
        "harmless in the log",
        _name,
        PASS,
        "Healthy machines print this, and it is about nobody on the bench.",
        _said,
        ("while_writing", "while_idle"),
    )


@edit("harmless in the log", (PASS, UNKNOWN), ("while_writing",))
def oops_written_by_a_process(tape: Tape) -> Tape:
    """A process wrote the words of an oops to /dev/kmsg (facility 1, user): the kernel did not say them."""
    return tape.say(tape.off_at + 0.3, *OOPS[:3], level=4, facility=1)
