"""Messages that no healthy machine prints, even if devices are unplugged: lost interrupts, DMA faults, exhausted memory, broken
hardware, objects that were registered twice or never released."""

from __future__ import annotations

from plugpull.kernel.catalogue.entry import E, Entry, W

INTERRUPTS = (
    Entry(
        "warn.irq",
        W,
        r"^irq \d+: nobody cared|^irq event \d+: bogus return value|^Disabling IRQ #\d+",
        "kernel/irq/spurious.c",
        'irq 16: nobody cared (try booting with the "irqpoll" option)',
    ),
    Entry(
        "warn.irq",
        W,
        r"^Uhhuh\. NMI received for unknown reason|^Dazed and confused, but trying to continue"
        r"|^NMI: (?:PCI system error|IOCK error|memory parity error)",
        "arch/x86/kernel/nmi.c",
        "Uhhuh. NMI received for unknown reason 3d on CPU 0.",
    ),
    Entry(
        "cpu.hog",
        E,
        r"^workqueue: \S+ hogged CPU for >\d+us \d+ times",
        "kernel/workqueue.c",
        "workqueue: hub_event hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
    ),
)

DMA = (
    Entry(
        "warn.iommu",
        W,
        r"^(?:dmar: |DMAR: ?)+(?:DRHD: handling fault status|\[?(?:DMA|INTR-REMAP).*fault (?:addr|index))"
        r"|\[fault reason (?:0x)?[\da-f]+\]",
        "drivers/iommu/intel/dmar.c",
        "DMAR: [DMA Write NO_PASID] Request device [00:14.0] fault addr 0xffffe000 [fault reason 0x05] PTE Write access "
        "is not set",
    ),
    Entry(
        "warn.iommu",
        W,
        r"AMD-Vi: (?:Event logged \[|Completion-Wait loop timed out)|\barm-smmu(?:-v3)? \S+: (?:Unhandled context fault"
        r"|Unexpected global fault|event 0x[\da-f]+ received|CMD_SYNC timeout)",
        "drivers/iommu/amd/iommu.c, drivers/iommu/arm/arm-smmu/arm-smmu.c",
        "xhci_hcd 0000:02:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000f address=0xff00ffffffefe000 "
        "flags=0x0000]",
    ),
    Entry(
        "warn.iommu",
        W,
        r"swiotlb buffer is full|^DMA: Out of SW-IOMMU space",
        "kernel/dma/swiotlb.c",
        "xhci_hcd 0000:00:14.0: swiotlb buffer is full (sz: 65536 bytes), total 32768 (slots), used 128 (slots)",
    ),
)

MEMORY = (
    Entry(
        "warn.memory",
        W,
        r"\bpage allocation (?:failure[:.] order|stalls for \d+)|^vmalloc: allocation failure|^vmalloc error: size ",
        "mm/page_alloc.c, mm/vmalloc.c",
        "usb-storage: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null)",
    ),
    Entry(
        "warn.memory",
        W,
        r" invoked oom-killer: |^Out of memory(?: \(|: Kill)|^Out of memory and no killable processes",
        "mm/oom_kill.c",
        "fio invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0",
    ),
)

HARDWARE = (
    Entry(
        "hw.corrected",
        E,
        r"AER: (?:Multiple )?Correct(?:ed|able) error (?:message )?received|PCIe Bus Error: severity=Correct(?:ed|able)"
        r"|\[Hardware Error\]: .*(?:[Cc]orrected error|event severity: corrected|Deferred error)",
        "drivers/pci/pcie/aer.c, drivers/edac/mce_amd.c, drivers/firmware/efi/cper.c",
        "pcieport 0000:00:1c.5: AER: Corrected error received: 0000:00:1c.5",
    ),
    Entry(
        "warn.hardware",
        W,
        r"AER: (?:Multiple )?Uncorrect\w+ \([\w-]+\) error |PCIe Bus Error: severity=Uncorrect"
        r"|AER: (?:device recovery failed|can't recover)|DPC: containment event",
        "drivers/pci/pcie/aer.c, drivers/pci/pcie/dpc.c",
        "pcieport 0000:00:1c.0: AER: Uncorrected (Non-Fatal) error received: 0000:02:00.0",
    ),
    Entry(
        "warn.hardware",
        W,
        r"\[Hardware Error\]: |^EDAC \S+: \d+ [CU]E ",
        "arch/x86/kernel/cpu/mce/core.c, drivers/edac/edac_mc.c",
        "mce: [Hardware Error]: Machine check events logged",
    ),
)

OBJECTS = (
    Entry(
        "warn.kobject",
        W,
        r"^kobject: (?:kobject_add_internal failed for|'.*' \(\S+\): (?:does not have a release\(\)|is not initialized)"
        r"|\(\S+\): (?:tried to init|attempted to be registered|is not initialized))"
        r"|^kobject_add failed for |^kobject: can not set name properly"
        r"|^Device '.*' does not have a release\(\) function",
        "lib/kobject.c, drivers/base/core.c",
        "kobject: 'host3' (00000000a1b2c3d4): does not have a release() function, it is broken and must be fixed.",
    ),
    Entry(
        "warn.kobject",
        W,
        r"^debugfs: (?:Directory|File) '.*' (?:with parent|in directory) '(?!dapm).*' already present!"
        r"|^debugfs: '.*' already exists in '(?!dapm)",
        "fs/debugfs/inode.c",
        "debugfs: Directory 'sdb' with parent 'block' already present!",
    ),
    Entry(
        "warn.kobject",
        W,
        r"^ref_tracker: (?!.*(?:memory allocation failure|offline))",
        "lib/ref_tracker.c",
        "ref_tracker: eth%d@ffff888104a52000 has 1/1 users at",
    ),
    Entry(
        "warn.kobject",
        W,
        r"^(?:waiting for|unregister_\w+: waiting for) \S+ to become free\. Usage count",
        "net/core/dev.c",
        "unregister_blkdev: waiting for sdb to become free. Usage count = 1",
    ),
)

MACHINE: tuple[Entry, ...] = (*INTERRUPTS, *DMA, *MEMORY, *HARDWARE, *OBJECTS)
