"""Prepares a virtual bench for a run: the kernel, the accelerator, the snapshot. Slow steps are cached."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from plugpull.cache import Cache
from plugpull.coordination.journal import Journal
from plugpull.dut.listener import Listener
from plugpull.errors import UsageError
from plugpull.history.recorder import Recorder
from plugpull.rig.lint_virtual import SCSI
from plugpull.rig.model import Rig
from plugpull.virtual.accel import find_accel
from plugpull.virtual.array_tools import array_tools
from plugpull.virtual.bench import Setting, VirtualBench, shape_of
from plugpull.virtual.filesystems import filesystem_additions
from plugpull.virtual.image import Additions
from plugpull.virtual.kernel import find_kernel
from plugpull.virtual.kernel_modules import module_name
from plugpull.virtual.snapshot import PLAIN, hold_snapshot

Open = Callable[[Recorder, Path, Listener, str], VirtualBench]


def prepare(
    rig: Rig,
    kernel: str | None,
    modules: tuple[Path, ...],
    accel: str,
    benches: int,
    cache: Cache,
    journal: Journal,
    held: ExitStack,
    notify: Callable[[str], None],
) -> Open:
    """Prepare what the bench of each scenario of this run needs. ``held`` keeps the snapshot in the cache until closed.
    ``benches`` is how many run side by side.

    Raises UsageError for an unusable kernel or module, RigError when the guest does not boot.
    """
    tree = find_kernel(kernel, cache, notify=notify)
    overrides = _overrides(modules)
    chosen = find_accel(accel, tree.image, cache).name
    # What a driver under test does with a hub is part of the scenario.
    shape = shape_of(rig, chosen, hubs=not overrides, one_thread=crowded(rig.dut.cpus, benches))
    without = frozenset({"fio"}) if any(defect.kind == "fio-missing" for defect in rig.defect) else frozenset[str]()
    more = filesystem_additions(tree, cache, notify).joined(array_tools(tree, cache, notify)).joined(more_drivers(rig))
    snapshot = held.enter_context(
        hold_snapshot(cache, shape, tree, notify, overrides=overrides, without=without, additions=more)
    )
    named = tuple(f"{name} {_digest(path)} ({path})" for name, path in sorted(overrides.items()))
    setting = Setting(rig, shape, snapshot, named)

    def open_bench(recorder: Recorder, artefacts: Path, listener: Listener, scenario: str) -> VirtualBench:
        return VirtualBench(setting, recorder, artefacts, listener, scenario, journal)

    return open_bench


def _overrides(modules: tuple[Path, ...]) -> dict[str, Path]:
    for path in modules:
        if not path.is_file():
            raise UsageError(
                f"the module {path} does not exist",
                hint="pass --module the .ko file of a driver that was built for the kernel under test",
            )
    return {module_name(path): path for path in modules}


def crowded(cpus: int, benches: int) -> bool:
    """Whether guests with so many CPUs, on so many benches, have more of them than this machine.

    Then one thread emulates all CPUs of a guest. With a thread for each, a CPU that waits for another one spins until
    its time is used up, while the host does not run the other one: beside another guest, three scenarios with arrays
    took 30 CPU seconds each, and 12 with one thread.
    """
    return cpus * benches > len(os.sched_getaffinity(0))


def more_drivers(rig: Rig) -> Additions:
    """Drivers for a guest in which an enclosure of the rig shows a CD-ROM, or disks are on a SCSI controller."""
    shown = any(disk.cdrom for disk in rig.disk) or any(defect.kind == "unit-changes" for defect in rig.defect)
    scsi = any(controller.model == SCSI for controller in rig.controller)
    modules = (*(["sr_mod"] if shown else []), *(["virtio_scsi"] if scsi else []))
    return Additions(modules=modules) if modules else PLAIN


def _digest(path: Path) -> str:
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()[:12]
