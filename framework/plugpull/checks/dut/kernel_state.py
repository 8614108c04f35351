"""Whether the kernel's state is the same at the end as at the beginning: boot, taint, modules in use, memory."""

from __future__ import annotations

from plugpull.checks.accusation import Accusation
from plugpull.checks.base import Check, Judgement
from plugpull.checks.collector import Collector
from plugpull.checks.limits import bench_kind
from plugpull.checks.record.watched import recorded
from plugpull.history.events import AgentLost, Census, DutDied, DutState, Residue
from plugpull.history.story import Story

TAINT = {
    0: "P, a proprietary module",
    1: "F, a module was force-loaded",
    2: "S, a CPU out of specification",
    3: "R, a module was force-unloaded",
    4: "M, a machine check",
    5: "B, a bad page",
    6: "U, set by a user",
    7: "D, the kernel died (oops or BUG)",
    8: "A, ACPI table overridden",
    9: "W, the kernel warned",
    10: "C, a staging driver",
    11: "I, a firmware workaround",
    12: "O, a module from outside the tree",
    13: "E, an unsigned module",
    14: "L, a soft lockup",
    15: "K, live-patched",
    16: "X, auxiliary",
    17: "T, built with randomized structures",
    18: "N, an in-kernel test",
}
"""The letter and meaning of each taint bit (Documentation/admin-guide/tainted-kernels.rst)."""
BY_LOADING = {0, 8, 10, 12, 13, 15, 16, 18}
"""Bits that loading a module or a table sets. On a real DUT somebody else may do that."""
HELD = ("usb_storage", "uas", "xhci_hcd", "xhci_pci", "ehci_hcd", "ehci_pci", "sd_mod", "scsi_mod", "usbcore")
"""Modules whose reference counts must be the same again on an emulated DUT, whatever else was loaded meanwhile."""
GROWN = 16 << 20
"""Bytes by which the kernel's own memory may grow over a scenario. Healthy emulated DUTs: 3.4 MB at most of 850."""

FEW_USERS = ("KernelStack", "PageTables", "Percpu")
"""Lines of /proc/meminfo that only new threads, processes and devices let grow: by 0.9 MB at most in 550 scenarios."""
LITTLE = 4 << 20
"""Bytes by which each of these may grow over a scenario."""

CACHE = 4 << 20
"""Bytes by which one cache of the kernel may hold more at the end of a scenario: 0.5 MiB at most in 523 scenarios of
healthy emulated DUTs."""
OF_EACH_DISK = ("request_queue", "bdev_cache", "scsi_sense_cache")
"""Caches with few objects per disk, or for all disks: they grew by 31 KiB at most in the same scenarios."""
FEW_OBJECTS = 128 << 10
"""Bytes by which each of these may hold more."""

TIMER = "LOC interrupts"


class StateKept(Check, frozen=True, tag="state_kept"):
    """The DUT did not restart, the kernel has no new taint and no additional references to drivers, and its own memory
    did not grow by more than ``grown`` bytes, nor a single cache of it by much."""

    grown: int = GROWN

    def judge(self, story: Story) -> Judgement:
        states = {state.moment: state for state in story.of(DutState)}
        begin, end = states.get("begin"), states.get("end")
        if begin is None or end is None:
            return self._missing(story, begin, end)
        said = Collector(self, "kernel")
        said.take(*_boot(begin, end), *_taint(story, begin, end))
        said.doubt(_counts_back(begin, end), *_let_go(story, begin, end))
        if bench_kind(story) == "virtual":  # only plugpull uses the drivers and the memory of an emulated DUT
            said.take(*_held(begin, end), *(self._memory(begin, end) or _caches(story) or self._counted(story)))
            said.doubt(*_unloaded(begin, end))
        return said.judgement("the kernel as before" if said.clean else "")

    def _missing(self, story: Story, begin: DutState | None, end: DutState | None) -> Judgement:
        """A doubt if the state is not on record. Other checks report a silent DUT and a stopped scenario."""
        said = Collector(self)
        if recorded(story, "state") and story.of(Residue) and not story.of(AgentLost) and not story.of(DutDied):
            said.doubt(f"the state of the kernel at the {'beginning' if begin is None else 'end'} is not on record")
        return said.judgement()

    def _memory(self, begin: DutState, end: DutState) -> list[Accusation]:
        grown = {name: size - begin.memory.get(name, 0) for name, size in end.memory.items() if name in begin.memory}
        total = sum(grown.values())
        for name in FEW_USERS:
            if LITTLE < grown.get(name, 0) <= self.grown >= total:
                what = f"{name} grew by {grown[name] >> 20} MiB (limit {LITTLE >> 20} MiB)"
                return [_accusation("memory", what, end, (f"{name}: {grown[name]:+d} bytes",))]
        if total <= self.grown:
            return []
        most = sorted(grown, key=lambda name: -grown[name])
        what = f"the kernel holds {total >> 20} MiB more than at the beginning (limit {self.grown >> 20} MiB)"
        return [_accusation("memory", what, end, tuple(f"{name}: {grown[name]:+d} bytes" for name in most))]

    def _counted(self, story: Story) -> list[Accusation]:
        """The same by the censuses, which count it too."""
        taken = [census for census in story.of(Census) if census.memory]
        both = taken[0].memory.keys() & taken[-1].memory.keys() if taken else ()
        grown = {name: taken[-1].memory[name] - taken[0].memory[name] for name in both}
        total = sum(grown.values())
        if total <= self.grown:
            return []
        what = f"the kernel holds {total >> 20} MiB more at the last census (limit {self.grown >> 20} MiB)"
        evidence = tuple(f"{name}: {grown[name]:+d} bytes" for name in sorted(grown, key=lambda name: -grown[name]))
        return [Accusation(subject="memory", summary=what, at=taken[-1].at, evidence=evidence)]


def _caches(story: Story) -> list[Accusation]:
    """Caches that hold much more at the last census than at the first."""
    taken = [census for census in story.of(Census) if census.slab]
    if len(taken) < 2:
        return []
    first, last = taken[0], taken[-1]
    grown = {name: size - first.slab.get(name, 0) for name, size in last.slab.items()}
    most = {name: FEW_OBJECTS if name in OF_EACH_DISK else CACHE for name in grown}
    return [
        Accusation(
            subject="memory",
            summary=f"the kernel's cache {name} holds {grown[name] >> 10} KiB more than at the beginning"
            f" (limit {most[name] >> 10} KiB)",
            at=last.at,
            evidence=tuple(f"{one.moment}: {one.slab.get(name, 0)} bytes" for one in (first, last)),
        )
        for name in sorted(grown, key=lambda name: -grown[name])
        if grown[name] > most[name]
    ]


def _unloaded(begin: DutState, end: DutState) -> list[str]:
    """Doubts about modules of an emulated DUT that were loaded at the beginning and are not at the end: nothing unloads
    them."""
    gone = [name for name in begin.modules if end.modules and name not in end.modules]
    return [f"the module {name} was loaded at the beginning, and is not at the end" for name in gone]


def _let_go(story: Story, begin: DutState, end: DutState) -> list[str]:
    """Doubts about modules of an emulated DUT that fewer hold than at the beginning, though no cut was for good: none
    in 480 scenarios."""
    if bench_kind(story) != "virtual" or any(cut.armed.permanent for cut in story.cut_records):
        return []
    fewer = [name for name, count in begin.modules.items() if end.modules.get(name, count) < count]
    return [
        f"the record contradicts itself: module {name} was held {begin.modules[name]} times, and"
        f" {end.modules.get(name, 0)} times at the end"
        for name in fewer
    ]


def _counts_back(begin: DutState, end: DutState) -> str:
    """A doubt if the local timer's interrupts fell, which are counted since the boot (arch/x86/kernel/irq.c, "LOC")."""
    first, last = (state.interrupts.get(TIMER, 0) for state in (begin, end))
    if not end.interrupts or begin.boot_id != end.boot_id or last >= first:
        return ""
    return f"the record contradicts itself: {TIMER} fell from {first} to {last} within one boot"


def state_kept(grown: int = GROWN) -> StateKept:
    """The kernel's state must be the same at the end as at the beginning. Its memory may grow by ``grown`` bytes, and
    of that one cache by 4 MiB, one with few objects for each disk by 128 KiB, and the page tables, the stacks of
    threads and what each CPU has by 4 MiB each."""
    return StateKept(grown)


def taint_names(bits: int) -> tuple[str, ...]:
    """The meanings of the bits of a taint."""
    return tuple(TAINT.get(bit, f"bit {bit}") for bit in range(bits.bit_length()) if bits >> bit & 1)


def _accusation(subject: str, what: str, end: DutState, evidence: tuple[str, ...] = ()) -> Accusation:
    return Accusation(subject=subject, summary=what, at=end.at, evidence=evidence)


def _boot(begin: DutState, end: DutState) -> list[Accusation]:
    findings = []
    if begin.boot_id and end.boot_id and begin.boot_id != end.boot_id:
        evidence = (f"boot id {begin.boot_id} at the beginning", f"boot id {end.boot_id} at the end")
        findings.append(_accusation("kernel", "the DUT restarted during the scenario", end, evidence))
    if begin.kernel and end.kernel and begin.kernel != end.kernel:
        what = f"the DUT runs kernel {end.kernel} at the end, and ran {begin.kernel} at the beginning"
        findings.append(_accusation("kernel", what, end))
    return findings


def _taint(story: Story, begin: DutState, end: DutState, when: str = "during the scenario") -> list[Accusation]:
    new = end.taint & ~begin.taint
    if bench_kind(story) not in ("virtual", ""):
        new &= ~sum(1 << bit for bit in BY_LOADING)
    if not new or begin.boot_id != end.boot_id:
        return []
    what = f"the kernel was tainted {when}: {'; '.join(taint_names(new))}"
    return [_accusation("kernel", what, end, (f"tainted {begin.taint} before, {end.taint} after",))]


def tainted_between(earlier: Story | None, story: Story) -> tuple[Accusation, ...]:
    """New taint between the end of the ``earlier`` scenario and the beginning of this one, if the DUT kept running."""
    ends = [state for state in earlier.of(DutState) if state.moment == "end"] if earlier is not None else []
    begins = [state for state in story.of(DutState) if state.moment == "begin"]
    if not ends or not begins or bench_kind(story) in ("virtual", ""):
        return ()
    return tuple(_taint(story, ends[-1], begins[0], "before this scenario began"))


def held_longer(begin: DutState, end: DutState) -> tuple[str, ...]:
    """The modules that the kernel holds more references to at the end than at the beginning. A module that was loaded
    meanwhile holds others, so only the drivers count then. In 288 scenarios of healthy emulated DUTs no module was held
    more often."""
    names = HELD if end.modules.keys() - begin.modules.keys() else tuple(begin.modules)
    return tuple(name for name in names if name in begin.modules and end.modules.get(name, 0) > begin.modules[name])


def _held(begin: DutState, end: DutState) -> list[Accusation]:
    return [
        _accusation(
            name,
            f"module {name} is held {end.modules[name] - begin.modules[name]} times more than at the beginning",
            end,
            (f"{begin.modules[name]} references before, {end.modules[name]} after",),
        )
        for name in held_longer(begin, end)
    ]
