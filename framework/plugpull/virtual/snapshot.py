"""The booted, idle guest: frozen once per kernel, image and machine, and kept in the cache."""

from __future__ import annotations

import hashlib
import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from plugpull.cache import Cache
from plugpull.dut.conversation.link import AgentGone, AgentLink
from plugpull.errors import RigError
from plugpull.progress import step
from plugpull.virtual.console import Console
from plugpull.virtual.image import Additions, base_tree, cpio, ingredients, module_tree
from plugpull.virtual.kernel import KernelTree, required_modules
from plugpull.virtual.kernel_modules import read_module
from plugpull.virtual.machine import MODULE_OPTIONS, Machine, Shape, qemu_version

FORMAT = "5"
"""Increased when snapshots of an older plugpull no longer fit."""
BOOT_DEADLINE = 240.0
"""Seconds a guest gets to boot under emulation on a busy machine."""
USUAL = 10.0
"""Seconds that making a snapshot takes on a machine that has nothing else to do."""
PATIENCE = (60.0, 120.0, 180.0, 240.0)
"""Seconds without a line on its console after which a guest that boots is given up, for each boot. The last one gets
as long as a boot may take at all: a host may be that slow."""
ASK_AGAIN = 5.0
"""Seconds between two looks at the console of a guest that boots."""
BOOTS = len(PATIENCE)
"""Boots until a guest has to answer, with a clock that keeps time."""
CLOCK_WRONG = 0.005
"""Share of a second per second by which the clock of a guest may be wrong."""
HUBS_WITHIN = 60.0
"""Seconds until a guest that has booted must have set up its hubs. It takes one."""
KEPT = 8
"""The maximum number of snapshots kept, a third of a GiB each: every rebuild of a driver adds one."""
MODULES = (
    "virtio_pci",
    "virtio_console",
    "virtio_rng",
    "xhci_pci",
    "ehci_pci",
    "usb_storage",
    "uas",
    "sd_mod",
    "ext4",
)
"""Modules that the guest needs, as modprobe names; a built-in one needs no file."""


PLAIN = Additions()


@dataclass(frozen=True)
class Snapshot:
    directory: Path

    @property
    def ram(self) -> Path:
        return self.directory / "ram"

    @property
    def state(self) -> Path:
        return self.directory / "state"


def boot_image(modules: Sequence[Path], without: frozenset[str], additions: Additions = PLAIN) -> bytes:
    """The initramfs for one kernel: user space and the modules in load order."""
    files = ((path.name.split(".ko")[0] + ".ko", read_module(path)) for path in modules)
    tree = module_tree(files, {**MODULE_OPTIONS, **additions.options})
    base = base_tree(without=without, init=additions.init)
    return cpio([*base.entries(), *tree.entries(), *additions.files()])


class BootStopped(RigError):
    """A guest fell silent before its agent answered. Another boot of the same image may well end."""


class GuestEnded(RigError):
    """QEMU ended before the agent of its guest answered. Seen once, with QEMU 10; the same image booted afterwards."""


def boot(
    shape: Shape, kernel: KernelTree, initrd: Path, directory: Path, patience: float = BOOT_DEADLINE
) -> tuple[Machine, Console, AgentLink]:
    """Cold-boot a guest and wait for its agent. Its RAM is ``directory/ram``.

    Raises, with the last lines of the console, BootStopped if it said nothing for ``patience`` seconds, GuestEnded if
    QEMU ended, and RigError if it took longer than ``BOOT_DEADLINE``.
    """
    extra = ["-kernel", str(kernel.image), "-initrd", str(initrd), "-append", shape.command_line()]
    machine = Machine(shape, directory / "ram", extra, directory / "qemu.log", share=True)
    console = Console(machine.console, directory / "boot.log")
    link = AgentLink(machine.agent, lambda message: None)
    try:
        await_agent(link, console, patience)
        _await_hubs(link, len(shape.hubs))
    except RigError as error:
        link.close()
        machine.close()
        said = "\n    ".join(console.lines()[-8:]) or "nothing"
        ended = f"; QEMU said: {machine.last_words() or 'nothing'}" if isinstance(error, GuestEnded) else ""
        raise type(error)(
            f"the guest did not boot with kernel {kernel.version}: {error.what}{ended}; "
            f"the last lines of its console:\n    {said}"
        ) from None
    return machine, console, link


def await_agent(link: AgentLink, console: Console, patience: float) -> None:
    """Wait until the agent answers. Raises BootStopped after ``patience`` seconds in which the console got no line and
    the agent did not answer; GuestEnded if the stream to it ended; RigError after ``BOOT_DEADLINE`` seconds.

    A kernel under QEMU's emulation with two processors rarely stops in the middle of its boot, for ever and without a
    word (seen after "Loading compiled-in X.509 certificates", in one of some thousands). The next boot ends.
    """
    deadline = time.monotonic() + BOOT_DEADLINE
    heard, since = console.mark(), time.monotonic()
    while True:
        try:
            link.call("hello", ASK_AGAIN)
            return
        except AgentGone as error:
            now = time.monotonic()
            if link.lost:
                raise GuestEnded(error.what) from error
            if console.mark() != heard:
                heard, since = console.mark(), now
            if now >= deadline:
                raise RigError(f"the agent did not answer 'hello' within {BOOT_DEADLINE:g} s") from error
            if now - since >= patience:
                raise BootStopped(f"its console has been silent for {now - since:.0f} s") from error


def _await_hubs(link: AgentLink, count: int) -> None:
    """Wait until the kernel has set up the hubs that are plugged in. Raises RigError after ``HUBS_WITHIN`` seconds."""
    deadline = time.monotonic() + HUBS_WITHIN
    while True:
        devices = link.call("census", ASK_AGAIN)["things"]["usb device"]
        found = sum("-" in name for name in devices)  # root hubs are called usb1, usb2
        if found >= count:
            return
        if time.monotonic() > deadline:
            raise RigError(f"the kernel set up {found} of {count} hubs within {HUBS_WITHIN:g} s")
        # A census takes longer than this on an emulated machine.
        time.sleep(0.1)


def _await_channels(machine: Machine) -> None:
    """Wait for the servers of the other channels: they use the agent's protocol and answer ``hello`` when ready."""
    for connection in machine.channels.values():
        link = AgentLink(connection, lambda message: None)
        try:
            link.call("hello", 60)
        finally:
            link.close()


def freeze_guest(
    start: Callable[[float], tuple[Machine, Console, AgentLink]], state: Path, progress: Callable[[str], None]
) -> None:
    """Save a guest that ``start`` booted, if its clock keeps time; boot another if not, or if it fell silent for as
    long as ``start`` was given, or once if QEMU ended. Raises RigError after ``BOOTS`` of them."""
    ended = 0
    for patience in PATIENCE:
        try:
            machine, _, link = start(patience)
        except GuestEnded:
            ended += 1
            if ended > 1 or patience == PATIENCE[-1]:
                raise
            progress("QEMU ended before its agent answered; booting again")
            continue
        except BootStopped:
            if patience == PATIENCE[-1]:
                raise
            progress(f"its console has been silent for {patience:g} s; booting again")
            continue
        try:
            # The second request touches every page that the agent needs after a restore.
            link.call("hello", 60)
            _await_channels(machine)
            progress("measuring its clock")
            rate = clock_rate(link)
            if abs(rate - 1.0) <= CLOCK_WRONG:
                progress("saving it for later runs")
                machine.freeze(state)
                return
        finally:
            link.close()
            machine.close()
        progress(f"its clock runs at {rate:.0%} of the speed it should have; booting again")
    raise RigError(
        f"the clock of the guest ran at the wrong speed after each of {BOOTS} boots",
        hint="run again when the machine has less to do: a kernel measures its processor's clock as it boots",
    )


def clock_rate(link: AgentLink, over: float = 1.0) -> float:
    """How fast the guest's clock runs, 1 being right, measured over ``over`` seconds; as near to 1 as the round trips
    of the two requests allow.

    A kernel measures the frequency of the TSC with a timer as it boots (arch/x86/kernel/tsc.c, quick_pit_calibrate).
    A host that stops the guest just then can make it wrong for good, and each restored guest inherits that. Seen on a
    busy host: two runs of one snapshot whose clocks parted by 5 s; that the boot was the cause is an inference.
    """
    one = link.map_clock()
    # Nothing to wait for: time itself is measured.
    time.sleep(over)
    two = link.map_clock()
    passed = two.middle - one.middle
    wrong = (two.dut - one.dut) / passed - 1.0
    unknown = (one.received - one.sent + two.received - two.sent) / 2 / passed
    return 1.0 + math.copysign(max(0.0, abs(wrong) - unknown), wrong)


def snapshot_key(
    shape: Shape, kernel: KernelTree, overrides: Iterable[Path], without: frozenset[str], additions: Additions = PLAIN
) -> str:
    """Equal for equal guests. It is derived from the ingredients of the image, so the image need not be built."""
    replaced = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in overrides)
    wanted = (*MODULES, *additions.modules, *replaced, *sorted(without), additions.digest)
    guest = (shape.text(), kernel.version, kernel.digest, *wanted, ingredients(without))
    return hashlib.sha256("\n".join((FORMAT, qemu_version(), *guest)).encode()).hexdigest()[:24]


@contextmanager
def hold_snapshot(
    cache: Cache,
    shape: Shape,
    kernel: KernelTree,
    progress: Callable[[str], None],
    *,
    overrides: Mapping[str, Path] | None = None,
    without: frozenset[str] = frozenset(),
    additions: Additions = PLAIN,
) -> Iterator[Snapshot]:
    """The snapshot for this machine, kernel and image, created if it is not in the cache and kept there while held."""
    replaced = dict(overrides or {})
    modules = required_modules(kernel, [*MODULES, *additions.modules], replaced)

    def build(directory: Path) -> None:
        initrd = directory / "initrd"
        with step(progress, f"booting kernel {kernel.version} once ({shape.accel}), about {USUAL:g} s") as stage:
            stage("making its image")
            initrd.write_bytes(boot_image(modules, without, additions))

            def again(patience: float) -> tuple[Machine, Console, AgentLink]:
                (directory / "ram").unlink(missing_ok=True)
                stage("waiting for its agent")
                return boot(shape, kernel, initrd, directory, patience)

            freeze_guest(again, directory / "state", stage)
        initrd.unlink()

    text = f"{kernel.version} {shape.accel} {shape.cpus} cpus {shape.memory >> 20} MiB"
    key = snapshot_key(shape, kernel, replaced.values(), without, additions)
    cache.trim("snapshot", KEPT)
    with cache.use("snapshot", key, build, description=text, needs=shape.memory) as directory:
        yield Snapshot(directory)


def scratch_directory(parents: tuple[Path, ...], need: int) -> Path:
    """The first of these directories that has ``need`` bytes free."""
    for parent in parents:
        if parent.is_dir() and shutil.disk_usage(parent).free > need:
            return parent
    raise RigError(
        f"there is no room for the virtual disks: they need {need >> 20} MiB in one of {', '.join(map(str, parents))}",
        hint="make room there, or set TMPDIR to a larger file system",
    )
