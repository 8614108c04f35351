"""Messages of a kernel that is broken, and of one that is about to be: oopses, hangs, lockdep, sanitizers.

What only the kernel prints at the start of a line is anchored there: a process may print such words too. Some reports
begin in the middle of a line, after a login prompt or another CPU's half line: those keep their full, unmistakable
wording and are searched anywhere.
"""

from __future__ import annotations

from plugpull.kernel.catalogue.entry import Entry, F, N, W

SANITIZERS = (
    Entry(
        "warn.sanitizer",
        W,
        r"^BUG: (?:KASAN|KFENCE|KMSAN|KCSAN): ",
        "mm/kasan/report.c, mm/kfence/report.c, mm/kmsan/report.c, kernel/kcsan/report.c",
        "BUG: KASAN: slab-use-after-free in usb_stor_disconnect+0x1b2/0x1e0",
    ),
    Entry(
        "warn.sanitizer",
        W,
        r"^(?:UBSAN|KMSAN|KCSAN): |^KASAN: (?:maybe|probably) (?!wild|user|null)",
        "lib/ubsan.c",
        "UBSAN: array-index-out-of-bounds in drivers/scsi/sd.c:1201:9",
    ),
    Entry(
        "warn.sanitizer",
        W,
        r"^(?:=+ )?BUG: memory leak$|^(?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d )?BUG: memory leak$|^kmemleak: [1-9]\d* new suspected",
        "mm/kmemleak.c",
        "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    ),
    Entry(
        "warn.sanitizer",
        W,
        r"^unreferenced object 0x[\da-f]+ \(size \d+\)",
        "mm/kmemleak.c",
        "unreferenced object 0xffff888104a52000 (size 512):",
    ),
    Entry(
        "warn.sanitizer",
        W,
        r"^BUG \S+ \((?:Not tainted|Tainted: .*?)\): (?!kasan: )|^INFO: (?:Allocated|Freed) in \S+ age=\d+ cpu=\d+",
        "mm/slub.c",
        "BUG kmalloc-64 (Not tainted): Poison overwritten",
    ),
)

LOCKDEP = (
    Entry(
        "warn.lockdep",
        W,
        r"^(?:WARNING: |INFO: |\[ (?:BUG|INFO): )?possible (?:circular|recursive|irq lock inv|unsafe locking)",
        "kernel/locking/lockdep.c",
        "WARNING: possible circular locking dependency detected",
    ),
    Entry(
        "warn.lockdep",
        W,
        r"^(?:WARNING: |INFO: |\[ (?:BUG|INFO): )(?:inconsistent lock state|suspicious RCU usage)",
        "kernel/locking/lockdep.c",
        "WARNING: inconsistent lock state",
    ),
    Entry(
        "warn.lockdep",
        W,
        r"^\[ ?(?:BUG|INFO|WARNING): (?:inconsistent|suspicious|bad unlock|held lock|lock held|Invalid wait|.*-safe)",
        "kernel/locking/lockdep.c",
        "[ BUG: Invalid wait context ]",
    ),
    Entry(
        "warn.lockdep",
        W,
        r"^(?:WARNING: |BUG: |\[ BUG: )(?:bad (?:unlock|contention|pin) balance|bad contention|held lock freed|\S+-safe -> "
        r"|Invalid wait|nested lock was not taken|lock held when returning|\S+/\d+ (?:still has locks held|is (?:freeing|trying to)))",
        "kernel/locking/lockdep.c",
        "WARNING: bad unlock balance detected!",
    ),
    Entry(
        "warn.lockdep",
        W,
        r"^INFO: trying to register non-static key|^BUG: (?:MAX_\w+ too low|key \S+ (?:not in \.data|has not been reg))"
        r"|^BUG: .* lock .* (?:bad magic|lockup)|^BUG: workqueue leaked (?:lock|atomic)|^INFO: lockdep is turned off\.?!",
        "kernel/locking/lockdep.c",
        "INFO: trying to register non-static key.",
    ),
)

HANGS = (
    Entry(
        "fatal.lockup",
        F,
        r"^(?:NMI )?(?:watchdog: )?BUG: (?:soft|workqueue) lockup|Watchdog detected (?:\S+ )?LOCKUP on [Cc][Pp][Uu]"
        r"|^(?:NMI )?(?:watchdog: )?BUG: soft lockup",
        "kernel/watchdog.c, kernel/workqueue.c",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [kworker/1:1:33]",
    ),
    Entry(
        "fatal.lockup",
        F,
        r"INFO: rcu_\w+ (?:self-)?detected (?:expedited )?stalls?\b|^(?:rcu: )?INFO: (?:Stall|Tasks blocked) on rcu"
        r"|^(?:rcu: )?rcu_\w+ kthread (?:starved|timer wakeup didn't happen) for",
        "kernel/rcu/tree_stall.h, kernel/rcu/tree_exp.h",
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
    ),
    Entry(
        "fatal.lockup",
        F,
        r"^BUG: spinlock lockup suspected|^(?:CPU\d+: )?NMI backtrace for cpu \d+ skipped: .* lockup",
        "kernel/locking/spinlock_debug.c",
        "BUG: spinlock lockup suspected on CPU#0, fio/123",
    ),
    Entry(
        "fatal.hung-task",
        F,
        r"^INFO: task .* (?:blocked (?:in I/O wait )?for more than|can't die for more than) \d+ seconds",
        "kernel/hung_task.c",
        "INFO: task kworker/u4:1:33 blocked for more than 120 seconds.",
    ),
    Entry(
        # A task's name can hold a line feed; the end of the message is then a line of its own.
        "fatal.hung-task",
        F,
        r"^.{0,16}:\d+ (?:blocked (?:in I/O wait )?for more than|can't die for more than) \d+ seconds\.$",
        "kernel/hung_task.c",
        "x:18088 blocked for more than 143 seconds.",
    ),
    Entry(
        "fatal.hung-task",
        F,
        r"^unregister_netdevice: waiting for \S+ to become free",
        "net/core/dev.c",
        "unregister_netdevice: waiting for lo to become free. Usage count = 2",
    ),
)

OOPSES = (
    Entry(
        "fatal.oops",
        F,
        r"(?:^|\[ *\d+\.\d+\] )BUG: (?:kernel NULL pointer|unable to handle (?:kernel|page))|^Oops: |^Internal error: ",
        "arch/x86/mm/fault.c, arch/arm64/kernel/traps.c",
        "BUG: kernel NULL pointer dereference, address: 0000000000000010",
    ),
    Entry(
        "fatal.oops",
        F,
        r"^(?:traps: )?general protection fault(?:[,:]| for|, prob).*(?:SMP|PREEMPT|\[#|canonical)",
        "arch/x86/kernel/traps.c",
        "general protection fault, probably for non-canonical address 0xdead000000000108: 0000 [#1] PREEMPT SMP",
    ),
    Entry(
        "fatal.oops",
        F,
        r"^Unable to handle kernel |^PANIC: double fault|^Unhandled (?:fault|prefetch abort|exception)\b|^Alignment trap: "
        r"|^BUG: (?:TASK|IRQ|stack) (?:stack )?guard page was hit|^BUG: stack guard page was hit|^Kernel mode fault",
        "arch/arm64/mm/fault.c, arch/x86/kernel/traps.c",
        "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000010",
    ),
    Entry(
        "fatal.oops",
        F,
        r"^(?:divide[_ ]error|invalid opcode|stack segment|int3|bounds|alignment check|simd exception|coprocessor)"
        r": \S+ \[#\d+\]",
        "arch/x86/kernel/traps.c",
        "divide error: 0000 [#1] PREEMPT SMP",
    ),
    Entry(
        "fatal.oops",
        F,
        r"^(?:Kernel access of bad area|Unrecoverable exception|Bad kernel stack pointer|Kernel access of)"
        r"|^kernel tried to (?:execute|access) |^Fixing recursive fault but reboot is needed",
        "arch/powerpc/kernel/traps.c, kernel/exit.c",
        "Fixing recursive fault but reboot is needed!",
    ),
    Entry(
        "fatal.bug",
        F,
        r"^kernel BUG at |^Kernel BUG at |^BUG: (?!KASAN|KFENCE|KMSAN|KCSAN|memory leak$)[\w\"'(]",
        "lib/bug.c",
        "kernel BUG at drivers/usb/core/hub.c:100!",
    ),
    Entry(
        "fatal.bug",
        F,
        r"^(?:list_(?:add|del)|slab|slub) (?:double add|corruption)|^VFS: Busy inodes after unmount"
        r"|^VFS: Close: file count is (?:0|zero)",
        "lib/list_debug.c, fs/super.c, fs/open.c",
        "list_del corruption. prev->next should be ffff888104a52000, but was dead000000000100",
    ),
    Entry(
        "fatal.bug",
        F,
        r"^(?:attempt to (?:add|subtract|multiply|negate|shift \w+|divide|calculate the remainder) with |rust_kernel: panicked at)"
        r"|^Kernel stack (?:overflow|is corrupted)|^corrupted stack end detected",
        "rust/kernel/lib.rs, kernel/sched/core.c",
        "rust_kernel: panicked at drivers/block/rnull.rs:41:9:",
    ),
    Entry(
        "fatal.panic",
        F,
        r"^(?:---\[ end )?Kernel panic - not syncing",
        "kernel/panic.c",
        "Kernel panic - not syncing: Fatal exception in interrupt",
    ),
)

WARNINGS = (
    Entry(
        "warn.warning",
        W,
        r"^WARNING: (?:\[.{1,200}\] )?(?:CPU: \d+ PID: \d+ at |at \S+:\d+ |\S+:\d+ at )",
        "kernel/panic.c",
        "WARNING: CPU: 1 PID: 33 at drivers/usb/host/xhci-ring.c:1 xhci_irq+0x1/0x2 [xhci_hcd]",
    ),
    Entry(
        "warn.warning",
        W,
        r"^WARNING: (?:kernel stack|stack (?:recursion|going)|can't dereference|unrecognized unwind|\S+ stack frame pointer)",
        "arch/x86/kernel/unwind_frame.c",
        "WARNING: kernel stack frame pointer at ffff88003e1f7f40 in migration/1:14 has bad value ffffffff85632fb0",
    ),
    Entry(
        "warn.warning",
        W,
        r"^refcount_t: |^ODEBUG: (?!Out of mem|selftest)\w+ ",
        "lib/refcount.c, lib/debugobjects.c",
        "refcount_t: underflow; use-after-free.",
    ),
    Entry(
        "warn.warning",
        W,
        r"^(?:proc_dir_entry|sysfs: cannot create duplicate filename|kobject_add_internal failed for|zero-size vmalloc)",
        "fs/proc/generic.c, fs/sysfs/dir.c, lib/kobject.c",
        "sysfs: cannot create duplicate filename '/devices/platform/dummy_hcd.0/usb1/1-1'",
    ),
    Entry(
        "log.lost",
        N,
        r"printk messages dropped|^printk: \d+ messages? suppressed"
        r"|^Future hung task reports are suppressed|^INFO: lockdep is turned off|^/dev/kmsg buffer overrun",
        "kernel/printk/printk.c, kernel/hung_task.c, kernel/locking/lockdep.c",
        "** 4491 printk messages dropped **",
    ),
)

FATAL: tuple[Entry, ...] = (*SANITIZERS, *LOCKDEP, *HANGS, *OOPSES, *WARNINGS)
