"""One QEMU guest: its command line, and how to boot it, freeze it into a snapshot and restore it.

The guest's RAM is a file. A snapshot is that file and the (small) state of the devices, migrated with
``x-ignore-shared``. A restored guest maps the RAM file privately, so it starts at once and reads only the pages that it
touches. Any number of guests can run from one snapshot without changing it.

All channels (QMP, console, agent) are socket pairs created before QEMU starts: there is no listening port and no path
in the file system, and each side notices at once when the other one is gone.
"""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from plugpull.errors import RigError
from plugpull.virtual import process
from plugpull.virtual.qmp import Qmp

QEMU = "qemu-system-x86_64"
AGENT_PORT = "plugpull.agent"
FIRST_CONTROLLER_SLOT = 0x10
COMMAND_LINE = (
    "console=ttyS0 mitigations=off tsc=reliable no_timer_check panic=-1 random.trust_cpu=on nokaslr "
    "unknown_nmi_panic sysrq_always_enabled no_console_suspend usbcore.autosuspend=-1"
)
"""``unknown_nmi_panic`` and ``sysrq_always_enabled`` are for a guest that hangs: sysrq on its console, and a panic that
prints the position (Documentation/admin-guide/kernel-parameters.txt). ``no_console_suspend`` is for a guest that dies
while it is suspended: its last words are on the console. For ``usbcore.autosuspend`` see
``MODULE_OPTIONS``."""
MEMORY_DEBUGGING = "slub_debug=FZP slab_nomerge kfence.sample_interval=20"
"""Makes silent corruption of the kernel's memory visible on a distribution's kernel: consistency checks, red zones and
poison in each slab (Documentation/mm/slub.rst), and a guarded allocation every 20 ms (dev-tools/kfence.rst)."""
EMULATED_CPU = "max,la57=off,erms=off,fsrm=off"
"""Without five-level page tables, which the guest has no use for, and without fast string operations: with them the
kernel copies and clears memory byte by byte (arch/x86/lib/memcpy_64.S, clear_page_64.S), and TCG emulates each byte.
Six scenarios of an array took 8.8 CPU seconds each with them and 7.6 without."""
MODULE_OPTIONS = {"usbcore": "autosuspend=-1"}
"""Module parameters for every guest, passed to ``insmod``, which ignores the kernel command line.

An emulated hub must not be suspended when nothing is plugged into it. QEMU ignores a device's wakeup until its port is
in U3 (``xhci_wakeup`` in hw/usb/hcd-xhci.c). A disk that is plugged in while the kernel is suspending the hub then goes
unnoticed until something else happens there. This hit 2 of 60 cables that were restored 0.15 to 0.30 s after the cut,
and 0 of 60 without suspending.
"""


@dataclass(frozen=True)
class ControllerShape:
    """A host controller of the machine. ``slot`` is its PCI device number: 0000:00:SLOT.0."""

    name: str
    model: str
    slot: int
    ports: int

    @property
    def pci(self) -> str:
        return f"0000:00:{self.slot:02x}.0"


@dataclass(frozen=True)
class HubShape:
    """A hub that is plugged in when the machine boots: its socket as QEMU writes it (``usb1.0``, ``1.4``), and the
    slot of its controller. Names are the rig file's, and do not show in a snapshot."""

    name: str = field(compare=False)
    bus: str = field(compare=False)
    slot: int
    port: str
    ports: int


@dataclass(frozen=True)
class Shape:
    """The machine without its disks. A snapshot fits only a machine with an equal shape."""

    accel: str
    cpus: int
    memory: int
    controllers: tuple[ControllerShape, ...]
    hubs: tuple[HubShape, ...] = ()
    """Those nearer to a controller first."""
    channels: tuple[str, ...] = ()
    """Names of virtio-serial ports in addition to the agent's."""
    memory_debugging: bool = False
    forwarded: int | None = None
    """A TCP port of the guest to make reachable on this machine's loopback; None: the guest has no network."""
    one_thread: bool = field(default=False, compare=False)
    """Whether one thread emulates all CPUs in turn, without KVM. It does not show in a snapshot."""

    @property
    def threads(self) -> int:
        """How many threads of the host run the CPUs."""
        return 1 if self.one_thread and self.accel == "tcg" else self.cpus

    def text(self) -> str:
        controllers = " ".join(f"{c.model}@{c.slot}:{c.ports}" for c in self.controllers)
        hubs = (f"hub@{hub.slot}-{hub.port}:{hub.ports}" for hub in self.hubs)
        more = " ".join((*hubs, *self.channels, *([] if self.forwarded is None else [f"tcp {self.forwarded}"])))
        return f"{self.accel} {self.cpus} cpus {self.memory} bytes {controllers} {more} {self.command_line()}"

    def command_line(self) -> str:
        """The kernel's."""
        return f"{COMMAND_LINE} {MEMORY_DEBUGGING}" if self.memory_debugging else COMMAND_LINE


def _controller_arguments(controller: ControllerShape) -> list[str]:
    if controller.model == "virtio-scsi-pci":
        return ["-device", f"{controller.model},id={controller.name},bus=pcie.0,addr={controller.slot:#x}"]
    # Each connector of an xHCI has a USB 2 and a USB 3 half; an EHCI always has six ports.
    ports = f",p2={controller.ports},p3={controller.ports}" if "xhci" in controller.model else ""
    device = f"{controller.model},id={controller.name},bus=pcie.0,addr={controller.slot:#x}{ports}"
    return ["-device", device]


def _hub_arguments(hub: HubShape) -> list[str]:
    return ["-device", f"usb-hub,id={hub.name},bus={hub.bus},port={hub.port},ports={hub.ports}"]


def _network_arguments(port: int) -> list[str]:
    # restrict: the guest can reach nobody. It is reachable through one port, which QEMU chooses on this side.
    net = f"user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:0-:{port}"
    return ["-netdev", net, "-device", "virtio-net-pci,netdev=net0,bus=pcie.0,addr=0x5,romfile="]


def arguments(shape: Shape, ram: Path, *, share: bool) -> list[str]:
    """QEMU's command line without channels and boot options. Source: QEMU's docs/system/invocation."""
    threads = "single" if shape.one_thread else "multi"
    accel = f"tcg,thread={threads},tb-size=256" if shape.accel == "tcg" else shape.accel
    line = [
        QEMU,
        "-nodefaults",
        "-no-user-config",
        "-machine",
        "q35,usb=off,vmport=off,smbus=off,sata=off,memory-backend=ram",
        "-accel",
        accel,
        "-cpu",
        EMULATED_CPU if shape.accel == "tcg" else "host",
        "-smp",
        str(shape.cpus),
        "-m",
        f"{shape.memory // (1 << 20)}M",
        "-object",
        f"memory-backend-file,id=ram,size={shape.memory},mem-path={ram},share={'on' if share else 'off'}",
        "-display",
        "none",
        "-no-reboot",
        "-device",
        "virtio-serial-pci,id=serial0,bus=pcie.0,addr=0x3",
        "-device",
        f"virtserialport,bus=serial0.0,chardev=agent,name={AGENT_PORT}",
        "-device",
        "virtio-rng-pci,bus=pcie.0,addr=0x4",
    ]
    for name in shape.channels:
        line += ["-device", f"virtserialport,bus=serial0.0,chardev={name},name={name}"]
    if shape.forwarded is not None:
        line += _network_arguments(shape.forwarded)
    for controller in shape.controllers:
        line += _controller_arguments(controller)
    for hub in shape.hubs:
        line += _hub_arguments(hub)
    return line


class Machine:
    """A running QEMU. The caller reads the sockets ``agent``, ``console`` and ``channels``; ``close`` ends it all."""

    def __init__(self, shape: Shape, ram: Path, extra: list[str], log: Path, *, share: bool) -> None:
        if shutil.which(QEMU) is None:
            raise RigError(f"{QEMU} is not installed", hint="run ./plugpull run once; it installs what is missing")
        self.shape = shape
        pairs = {name: socket.socketpair() for name in ("qmp", "console", "agent", *shape.channels)}
        line = arguments(shape, ram, share=share)
        for name, (_, theirs) in pairs.items():
            line += ["-chardev", f"socket,id={name},fd={theirs.fileno()}"]
        line += ["-mon", "chardev=qmp,mode=control", "-serial", "chardev:console", *extra]
        try:
            self.process = process.start(line, log, pass_fds=[theirs.fileno() for _, theirs in pairs.values()])
        except BaseException:
            for ours, _ in pairs.values():
                ours.close()
            raise
        finally:
            for _, theirs in pairs.values():
                theirs.close()
        self.agent, self.console = pairs["agent"][0], pairs["console"][0]
        self.channels = {name: pairs[name][0] for name in shape.channels}
        self._log = log
        try:
            self.qmp = Qmp(pairs["qmp"][0])
        except RigError as error:
            self._end()
            raise RigError(f"QEMU did not start: {self.last_words() or error.what}") from None

    def last_words(self) -> str:
        """The last line of QEMU's log, empty if there is none."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def forwarded_port(self) -> int:
        """The port of this machine's loopback that leads to ``shape.forwarded``. Raises RigError."""
        # QMP has no command for it. Source: QEMU's net/slirp.c, slirp's slirp_connection_info().
        listing = self.qmp.run("human-monitor-command", command_line="info usernet")
        found = re.search(r"TCP\[HOST_FORWARD\]\s+\S+\s+127\.0\.0\.1\s+(\d+)", listing)
        if found is None:
            raise RigError(f"QEMU forwards no port to the guest; its list is: {listing.strip() or 'empty'}")
        return int(found.group(1))

    def freeze(self, state: Path) -> None:
        """Stop the guest and write its devices' state; its RAM is already in its file. The guest stays stopped."""
        self.qmp.run("stop")
        capabilities = [{"capability": "x-ignore-shared", "state": True}]
        self.qmp.run("migrate-set-capabilities", capabilities=capabilities)
        self.qmp.run("migrate", uri="exec:cat > " + shlex.quote(str(state)))
        self._wait_migrated(60.0)

    def wake(self, state: Path) -> None:
        """Restore a frozen guest (QEMU was started with ``-incoming defer``) and let it run."""
        capabilities = [{"capability": "x-ignore-shared", "state": True}]
        self.qmp.run("migrate-set-capabilities", capabilities=capabilities)
        self.qmp.run("migrate-incoming", uri="exec:cat " + shlex.quote(str(state)))
        self._wait_migrated(60.0)
        self.qmp.run("cont")

    def _wait_migrated(self, timeout: float) -> None:
        import time

        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            status = self.qmp.run("query-migrate").get("status")
            if status == "completed":
                return
            if status == "failed":
                raise RigError(
                    "QEMU could not save or restore the guest's state", hint="run plugpull cache clear, then try again"
                )
            # The state is a few MB: done in tens of milliseconds. QEMU's event for it would be lost if it came first.
            time.sleep(0.01)
        raise RigError(f"QEMU did not finish saving or restoring the guest's state within {timeout:g} s")

    def _end(self) -> None:
        process.end(self.process)
        for ours in (self.agent, self.console, *self.channels.values()):
            ours.close()

    def close(self) -> None:
        self.qmp.close()
        self._end()


def qemu_version() -> str:
    """First line of ``qemu-system-x86_64 --version``; part of a snapshot's key."""
    return subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
