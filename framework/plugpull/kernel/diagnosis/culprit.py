"""The probable cause of the errors in a story: medium, bridge, its firmware, cable or port, hub, controller, power
supply, kernel.

Each rule reads an error story and gives a hint only if there is evidence for it. A hint says where to look first; there
can be several. ``usb-storage.quirks`` is documented in Documentation/admin-guide/kernel-parameters.txt: flag ``u``
(IGNORE_UAS) makes a bridge use usb-storage, ``m`` (MAX_SECTORS_64) limits transfers to 64 sectors of 512 bytes. The uas
driver ignores ``m``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from plugpull.kernel.diagnosis.device import Device
from plugpull.kernel.diagnosis.error_story import ErrorStory
from plugpull.kernel.diagnosis.evidence import AGAIN, PLACE, PORT_KINDS, Case, Facts
from plugpull.kernel.diagnosis.hint import Confidence, Hint
from plugpull.kernel.diagnosis.kernel_fault import kernel_fault
from plugpull.kernel.diagnosis.restarts import DIED
from plugpull.kernel.diagnosis.scope import Level

LONG = 64 << 10
"""Bytes. Some bridges stall on longer transfers, which Windows never sends."""
CERTAIN_OF_LENGTH = 4
"""Timed-out transfers from which on it is hardly chance that all of them are long."""
RETURNED = 10.0
"""Seconds in which a device that came back may have done so by itself. A person may be as quick, so it has to happen
more than once."""
AT_ONCE = 2.0
"""Seconds in which nobody pulls a cable and plugs it in again."""
NO_POWER_SAVING = "nvme_core.default_ps_max_latency_us=0 pcie_aspm=off"
"""What the kernel itself suggests (drivers/nvme/host/pci.c: nvme_warn_reset)."""
_AWAY = re.compile(r"(?:Controller not ready at resume|PCI post-resume error|can't re-enable after resume,) -19\b")
"""-ENODEV."""
_UNREACHABLE = re.compile(r"Host halt failed, -19\b|Host not accessible, reset failed")
"""Every register of a controller that is gone reads as ones."""
_LEFT = re.compile(
    r"WARN Can't disable streams for endpoint|WARN Set TR Deq Ptr cmd failed|Set TR Deq Ptr command is pending"
    r"|Transfer event for disabled slot|\b[Bb]abble\b|Direct firmware load"
    r"|[Nn]ot enough (?:bandwidth|host controller resources)|[Bb]uffer overrun event|Wrong bounce buffer \w+ length"
)
"""What the xHCI driver says of requests to a device that is gone already, or was reset; what a controller says of a
device that talks out of turn, and of devices that want more than it has; what is missing in the file system of the
host."""
_REINIT = re.compile(r"xHC error in resume, USBSTS 0x[\da-f]+, Reinit")
"""The firmware reset the controller while the machine slept: some do each time, and the driver copes with it."""
_PORT = re.compile(r"^(?:(?:hub|usb) )?(usb\d+|\d+-[\d.]+)-port(\d+): ")


def hints(story: ErrorStory) -> tuple[Hint, ...]:
    """The hints for a story, the most certain first; empty if there is no evidence for any cause."""
    case = Case(story)
    found = list(chain.from_iterable(rule(case) for rule in RULES))
    return tuple(sorted(found, key=lambda hint: list(Confidence).index(hint.confidence)))


# --- the rules --------------------------------------------------------------------------------------------------


def _medium(case: Case) -> Iterator[Hint]:
    for facts in case.disks:
        sector, times = max(facts.sectors.items(), key=lambda each: each[1], default=(0, 0))
        total = sum(facts.sectors.values())
        again = times >= AGAIN and times * 2 >= total
        # Without a medium error from the disk itself, a place proves nothing if the link fails as well, and neither
        # does sector 0, which is read each time a disk comes up.
        resets = [one for one in facts.transport if one.kind in PORT_KINDS | {"uas.error", "scsi.offline"}]
        if not facts.medium and (not again or resets or sector == 0):
            continue
        evidence = [f"the disk reported a medium error: {facts.medium[0]}"] if facts.medium else []
        if again:
            place = f"sector {sector * PLACE} and the next {PLACE - 1}"
            evidence.append(f"the errors repeat at one place: {place}, {times} of {total} errors")
        sure = Confidence.CERTAIN if facts.medium and again else Confidence.PROBABLE
        yield Hint("medium", facts.device.name, sure, tuple(evidence))


def _broken(case: Case) -> Iterator[Hint]:
    """A disk, or its bridge, that says itself that it failed (SPC-4, sense key 4)."""
    for facts in case.disks:
        if facts.broken and not facts.medium:
            sure = Confidence.PROBABLE if len(facts.broken) > 1 else Confidence.POSSIBLE
            what = f"it reported a failure of its own, {_times(len(facts.broken))}: {facts.broken[0]}"
            yield Hint("disk or bridge", facts.device.name, sure, (what,))


def _bridge(case: Case) -> Iterator[Hint]:
    kinds: defaultdict[str, list[Facts]] = defaultdict(list)
    for facts in case.disks:
        if facts.device.ids:
            kinds[facts.device.ids].append(facts)
    for ids, group in kinds.items():
        bad = [facts for facts in group if facts.scattered and not facts.medium]
        ports = {facts.device.port for facts in bad}
        others = [facts for facts in case.disks if facts.device.ids != ids]
        if len(bad) < 2 or len(ports) < 2 or any(facts.troubled for facts in others):
            continue
        evidence = [
            f"{facts.device.name}: {sum(facts.sectors.values())} errors at {len(facts.sectors)} places, never the same"
            for facts in bad
        ]
        if others:
            evidence.append(f"disks behind another bridge had none: {_names(others)}")
        sure = Confidence.PROBABLE if others else Confidence.POSSIBLE
        yield Hint("bridge", ids, sure, tuple(evidence))


def _firmware(case: Case) -> Iterator[Hint]:
    if case.of("hcd.died"):
        return
    kinds: defaultdict[str, list[Facts]] = defaultdict(list)
    for facts in case.disks:
        kinds[facts.device.ids or facts.device.name].append(facts)
    for name, group in kinds.items():
        resets = [reset for facts in group for reset in facts.resets]
        uas = [text for driver, text in resets if driver == "uas"]
        if len(uas) < 2 or len(uas) < len(resets):
            continue
        seen = any("usb-storage" in facts.drivers for facts in group)
        none = "none with usb-storage" if seen else "the log does not show it with usb-storage: try that"
        evidence = (f"{len(uas)} aborts and resets with uas, the first: {uas[0]}", none)
        sure = Confidence.PROBABLE if seen else Confidence.POSSIBLE
        yield Hint("bridge firmware", name, sure, evidence, _quirk(group[0].device, "u"))


def _length(case: Case) -> Iterator[Hint]:
    for facts in case.disks:
        lengths = sorted(facts.late.values())
        if len(lengths) < 2 or lengths[0] <= LONG:
            continue
        evidence = (
            f"{len(lengths)} transfers timed out, all longer than 64 KiB: {lengths[0] >> 10} to {lengths[-1] >> 10} KiB"
        )
        # If all transfers have the same length, their length may not be the cause.
        many = len(lengths) >= CERTAIN_OF_LENGTH and lengths[0] < lengths[-1]
        sure = Confidence.PROBABLE if many else Confidence.POSSIBLE
        # uas ignores the flag m, so the bridge has to use usb-storage as well.
        remedy = _quirk(facts.device, "mu" if facts.device.driver == "uas" else "m")
        yield Hint("bridge firmware", facts.device.ids or facts.device.name, sure, (evidence,), remedy)


def _quirk(device: Device, flags: str) -> str:
    if not device.ids:
        return f"usb-storage.quirks=VID:PID:{flags} (this log does not show its VID:PID; lsusb does)"
    return f"usb-storage.quirks={device.ids}:{flags}"


def _port(case: Case) -> Iterator[Hint]:
    ports: defaultdict[str, list[Facts]] = defaultdict(list)
    # When a controller dies, all its ports fail.
    died = min((one.place for one in case.of("hcd.died")), default=None)
    for facts in case.disks:
        if died is not None and all(one.place > died for one in facts.transport):
            continue
        if facts.device.port and facts.troubled and not facts.medium:
            ports[facts.device.port].append(facts)
    if len(ports) != 1:
        return
    (path, bad), *_ = ports.items()
    link = [text for facts in bad for text in facts.link]
    fell_off = sum(facts.fell_off for facts in bad)
    others = sorted({facts.device.port for facts in case.disks if facts.device.port not in ("", path)})
    evidence = [f"other ports had no errors: {', '.join(others)}"] if others else []
    if len({facts.device.identity for facts in bad}) > 1:
        disks = ", ".join(facts.device.title for facts in bad)
        evidence.insert(0, f"errors in this port only, with different disks in it: {disks}")
        yield Hint("cable or port", f"usb {path}", Confidence.PROBABLE, tuple(evidence))
    elif link or fell_off > 1:
        own = [f"transmission errors, {_times(len(link))}: {link[0]}"] if link else []
        own += [f"it disconnected {fell_off} times while it was in use"] if fell_off > 1 else []
        yield Hint("cable or port", f"usb {path}", Confidence.POSSIBLE, (*own, *evidence))


def _returned(case: Case) -> Iterator[Hint]:
    if case.of("hcd.died") or any(True for _ in _port(case)):
        return
    hubs_left = [one.at for one in case.of("usb.disconnect") if one.level is Level.HUB and one.at is not None]
    for facts in case.disks:
        own = [each for each in facts.absences if not any(abs(each.at - at) <= 1.0 for at in hubs_left)]
        quick = [each for each in own if each.seconds <= RETURNED]
        if len(quick) < AGAIN - 1 and not any(each.seconds <= AT_ONCE for each in quick):
            continue
        shortest = min(each.seconds for each in quick)
        often = "once" if len(quick) == 1 else f"{len(quick)} times"
        evidence = [f"it disconnected and came back {often} by itself, within {shortest:.1f} s"]
        if any(each.after_errors for each in quick):
            evidence.append("it had errors shortly before: its bridge may have crashed and started again")
        sure = Confidence.PROBABLE if len(quick) >= AGAIN else Confidence.POSSIBLE
        yield Hint("cable, port or bridge", facts.device.name, sure, tuple(evidence))


def _reset(case: Case) -> Iterator[Hint]:
    died = case.of(DIED)
    if died:
        more = f" (and {len(died) - 1} more times)" if len(died) > 1 else ""
        evidence = (f"{died[0].body}{more}", "a kernel that panics or restarts in order says so")
        yield Hint("power supply, watchdog or reset", "the machine", Confidence.POSSIBLE, evidence)


def _supply(case: Case) -> Iterator[Hint]:
    low = case.of("hw.undervoltage")
    if low:
        evidence = (f"the supply voltage was too low, {_times(len(low))}: {low[0].body}",)
        errors = any(facts.troubled for facts in case.disks) or case.of("hcd.error", "hcd.died")
        yield Hint("power supply", "the machine", Confidence.PROBABLE if errors else Confidence.POSSIBLE, evidence)


def _hub(case: Case) -> Iterator[Hint]:
    behind: defaultdict[str, list[Facts]] = defaultdict(list)
    for facts in case.disks:
        for hub in facts.device.hubs:
            if not hub.startswith("usb"):
                behind[hub].append(facts)
    ports = {facts.device.port for facts in case.disks if facts.device.port}
    for hub, group in behind.items():
        own = {facts.device.port for facts in group}
        outside = [facts for facts in case.disks if facts.device.port in ports - own]
        if len(own) < 2 or any(f.troubled for f in outside) or not all(f.transport or f.fell_off for f in group):
            continue
        evidence = [f"all disks behind it have errors: {_names(group)}"]
        if outside:
            evidence.append(f"disks that are not behind it have none: {_names(outside)}")
        yield Hint("hub", hub, Confidence.PROBABLE if outside else Confidence.POSSIBLE, tuple(evidence))
    for facts in case.facts.values():
        own_errors = [one for one in case.of(*PORT_KINDS) if facts.device.key in one.devices]
        if facts.device.level is Level.HUB and facts.device.hubs and len(own_errors) >= AGAIN:
            evidence = [f"the hub itself had errors, {_times(len(own_errors))}: {own_errors[0].body}"]
            yield Hint("hub", facts.device.hubs[-1], Confidence.POSSIBLE, tuple(evidence))


def _gone(case: Case) -> Iterator[Hint]:
    """Devices that do not answer on PCI Express at all: every register reads as ones (-ENODEV in the USB core)."""
    silent = [one for one in case.of("nvme.error") if "CSTS=0xffffffff" in one.body]
    if silent:
        evidence = (f"it does not answer at all: {silent[0].body}",)
        name = next(iter(silent[0].devices), "not known")
        yield Hint("link or power saving", name, Confidence.PROBABLE, evidence, NO_POWER_SAVING)
    for name, body in _absent(case).items():
        when = "it was gone when the system woke up" if _AWAY.search(body) else "it is gone, as if it was unplugged"
        yield Hint("link or power of the controller", name, Confidence.PROBABLE, (f"{when}: {body}",))


def _absent(case: Case) -> dict[str, str]:
    """The USB host controllers that are gone and had no error before, with the message that says so."""
    gone: dict[str, str] = {}
    others: set[str] = set()
    for one in case.of("hcd.error", "hcd.died"):
        name = next(iter(one.devices), "not known")
        if _AWAY.search(one.body) or _UNREACHABLE.search(one.body):
            gone.setdefault(name, one.body)
        elif one.kind == "hcd.error" and not _LEFT.search(one.body):
            others.add(name)
    return {name: body for name, body in gone.items() if name not in others}


def _controller(case: Case) -> Iterator[Hint]:
    absent = _absent(case)
    errors = [
        one
        for one in case.of("hcd.died", "hcd.error")
        if not _AWAY.search(one.body) and not _LEFT.search(one.body) and absent.keys().isdisjoint(one.devices)
    ]
    died = [one for one in errors if one.kind == "hcd.died"]
    first = min((one.place for facts in case.disks for one in facts.transport), default=None)
    if errors:
        before = first is None or errors[0].place < first
        evidence = [f"the controller itself had errors, {_times(len(errors))}: {errors[0].body}"]
        if died:
            evidence.append(f"it died: {died[0].body}")
        if first is not None:
            evidence.append(f"they began {'before' if before else 'after'} the first error of a disk")
        often = sum(not _REINIT.search(one.body) for one in errors) > 1
        sure = Confidence.PROBABLE if died or (before and often) else Confidence.POSSIBLE
        name = next((key for key in errors[0].devices), "") or "not known"
        yield Hint("controller", name, sure, tuple(evidence))
        return
    groups: defaultdict[str, list[Facts]] = defaultdict(list)
    for facts in case.disks:
        if facts.device.controller:
            groups[facts.device.controller].append(facts)
    bad = {name for name, group in groups.items() if any(facts.transport for facts in group)}
    for name in bad if len(groups) > 1 and len(bad) == 1 else ():
        group = groups[name]
        tops = {(*facts.device.hubs, facts.device.port, "")[1] for facts in group}
        if len(tops) > 1 and all(facts.transport for facts in group):
            well = [facts for other, ones in groups.items() if other != name for facts in ones]
            evidence = [f"all disks on it have errors: {_names(group)}"]
            evidence.append(f"disks on other controllers have none: {_names(well)}")
            yield Hint("controller", name, Confidence.POSSIBLE, tuple(evidence))


def _overcurrent(case: Case) -> Iterator[Hint]:
    """A port that reports too much current and loses its device at once. A single report at boot is usual."""
    gone = case.of("usb.disconnect")
    for one in case.of("usb.overcurrent"):
        port = _PORT.search(one.body)
        if port is None:
            continue
        usb, number = port.groups()
        name = f"{usb[3:]}-{number}" if usb.startswith("usb") else f"{usb}.{number}"
        left = next((other for other in gone if f"usb {name}: " in other.body and other.place > one.place), None)
        after = None if left is None or left.at is None or one.at is None else left.at - one.at
        if after is not None and after <= AT_ONCE:
            evidence = (one.body, f"the device disconnected {after:.2f} s later")
            yield Hint("power supply or port", f"usb {name}", Confidence.PROBABLE, evidence)
            return


RULES: tuple[Callable[[Case], Iterable[Hint]], ...] = (
    _medium,
    _broken,
    _firmware,
    _length,
    _bridge,
    _port,
    _returned,
    _hub,
    _gone,
    _controller,
    _overcurrent,
    kernel_fault,
    _reset,
    _supply,
)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times, the first"


def _names(all_facts: Iterable[Facts]) -> str:
    return ", ".join(dict.fromkeys(facts.device.name for facts in all_facts))
