"""The time until the agent in a guest answers: restored from a snapshot, booted from cold, and with virtme-ng.

All three run the same kernel with equal CPUs and memory, one after the other in every round. So other load on the
machine affects all of them equally.

restored from starting QEMU on the frozen guest until the agent has answered ``hello``. Every scenario waits for this.
booted   from starting QEMU on the kernel and the image until the agent has answered ``hello``. Without snapshots,
         every scenario would wait for this.
vng      from starting ``vng --run KERNEL -- uname -r`` until the kernel's release has arrived on its standard output.
         Its guest sees this machine's root file system and has no agent, so it has done less by then.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import QUICK_RIG, against, begin, console, notify, pip_install, scratch, spread, table
from plugpull.cache import Cache
from plugpull.dut.conversation.link import AgentLink
from plugpull.errors import RigError
from plugpull.rig.load import load_rig
from plugpull.virtual import snapshot as frozen
from plugpull.virtual.accel import find_accel
from plugpull.virtual.bench import shape_of
from plugpull.virtual.console import Console
from plugpull.virtual.kernel import KernelTree, find_kernel, required_modules
from plugpull.virtual.machine import Machine, Shape

LIMIT = 1.5
"""Seconds from the snapshot to an agent that answers."""
VNG = "virtme-ng==1.42"
VNG_DEADLINE = 240.0


@dataclass(frozen=True)
class Guest:
    """The guest all ways of starting are compared on."""

    shape: Shape
    kernel: KernelTree
    snapshot: frozen.Snapshot
    initrd: Path


@contextmanager
def prepared(cache: Cache, folder: Path) -> Iterator[Guest]:
    """Kernel, snapshot and image, made before anything is timed."""
    kernel = find_kernel(None, cache, notify=notify)
    shape = shape_of(load_rig(QUICK_RIG), find_accel("auto", kernel.image, cache).name)
    initrd = folder / "initrd"
    initrd.write_bytes(frozen.boot_image(required_modules(kernel, list(frozen.MODULES)), frozenset()))
    with frozen.hold_snapshot(cache, shape, kernel, notify) as snapshot:
        yield Guest(shape, kernel, snapshot, initrd)


def restored(guest: Guest, folder: Path) -> float:
    """Seconds until a guest restored from its snapshot answers. The steps are those of ``VirtualBench``."""
    begun = time.monotonic()
    machine = Machine(guest.shape, guest.snapshot.ram, ["-incoming", "defer"], folder / "qemu.log", share=False)
    try:
        Console(machine.console, folder / "restored.log")
        machine.wake(guest.snapshot.state)
        link = AgentLink(machine.agent, lambda message: None)
        link.call("hello", 60)
        took = time.monotonic() - begun
        link.close()
    finally:
        machine.close()
    return took


def booted(guest: Guest, folder: Path) -> float:
    """Seconds until a guest booted from cold answers."""
    directory = folder / "boot"
    directory.mkdir()
    try:
        begun = time.monotonic()
        machine, _, link = frozen.boot(guest.shape, guest.kernel, guest.initrd, directory)
        took = time.monotonic() - begun
        link.close()
        machine.close()
    finally:
        shutil.rmtree(directory)
    return took


def vng_line(guest: Guest) -> list[str]:
    """The kernel's modules are found beside it: its image is .../boot/vmlinuz-VERSION, they .../lib/modules/VERSION."""
    line = ["vng", "--cpus", str(guest.shape.cpus), "--memory", f"{guest.shape.memory >> 20}M"]
    if guest.shape.accel == "tcg":
        line.append("--disable-kvm")
    return [*line, "--run", str(guest.kernel.image), "--", "uname", "-r"]


def vng(guest: Guest, tools: Path) -> float:
    """Seconds until a command has run in a guest of virtme-ng's. Raises RigError."""
    environment = dict(os.environ, PYTHONPATH=str(tools), PATH=f"{tools / 'bin'}:{os.environ['PATH']}")
    begun = time.monotonic()
    process = subprocess.Popen(
        ["timeout", str(VNG_DEADLINE), *vng_line(guest)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
    )
    assert process.stdout is not None
    said, took = b"", None
    while chunk := os.read(process.stdout.fileno(), 65536):
        said += chunk
        if took is None and guest.kernel.version.encode() in said:
            took = time.monotonic() - begun
    process.wait()
    if took is None:
        raise RigError(f"vng ended with status {process.returncode} and said {said.decode(errors='replace')[-300:]!r}")
    return took


def install_vng(cache: Cache) -> Path:
    """virtme-ng in a directory of its own in the cache. Raises CalledProcessError."""
    key = f"{VNG.replace('==', '-')}-python{sys.version_info[0]}.{sys.version_info[1]}"
    return cache.get("peer", key, lambda place: pip_install(VNG, place), description=VNG, needs=20 << 20)


def with_vng(cache: Cache, guest: Guest) -> Callable[[], float] | None:
    """The peer, after one run that shows that it works here and warms the page cache; None if it does not."""
    why = ""
    for _ in range(3):
        try:
            tools = install_vng(cache)
            vng(guest, tools)
            return lambda: vng(guest, tools)
        except (RigError, subprocess.CalledProcessError) as error:
            why = str(error)
    console.print(f"virtme-ng does not run here, so its row is left out: {why}")
    return None


def main() -> None:
    options = begin(__doc__, n=(int, 10, "rounds; each runs every way of starting once"))
    cache = Cache.default(notify=notify)
    with scratch() as folder, prepared(cache, folder) as guest:
        ways: dict[str, Callable[[], float]] = {
            "restored from the snapshot": lambda: restored(guest, folder),
            "booted from cold": lambda: booted(guest, folder),
        }
        for way in ways.values():
            way()
        peer = with_vng(cache, guest)
        if peer is not None:
            ways[f"{VNG.replace('==', ' ')}: a command"] = peer
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(options.n):
            for name, start in ways.items():
                seconds[name].append(start())
            notify(f"round {number + 1}: " + ", ".join(f"{name} {took[-1]:.2f} s" for name, took in seconds.items()))
        how = f"{guest.kernel.version}, {guest.shape.accel}, {guest.shape.cpus} CPUs, {guest.shape.memory >> 20} MiB"
    ours = statistics.median(seconds["restored from the snapshot"])
    shown = table(f"Until the guest answers, {options.n} rounds ({how})", "way", "median s", "min", "max", "ratio")
    for name, took in seconds.items():
        shown.add_row(name, *spread(took), f"{statistics.median(took) / ours:.1f}")
    console.print(shown)
    console.print(f"snapshot to answer: {against(ours, LIMIT, 's')}")


if __name__ == "__main__":
    main()
