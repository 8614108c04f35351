"""Edits after which the record is not of the rig in its rig file, or holds what nobody on record did."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchmarks.edits.events import Event, both, of
from benchmarks.edits.registry import FAIL, PASS, UNKNOWN, add, edit
from benchmarks.edits.tape import Tape

CUT = ("while_writing", "while_idle")
WRITING = ("while_writing",)
IDLE = ("while_idle",)
HUB = ("a_hub_is_gone_for_a_while",)
STATE = ("watched_while_writing",)
WROTE = ("a_cable_comes_loose_between_flushes", "power_fails_between_flushes")
CYCLES = ("watched_many_cuts",)
POWER = ("power_fails_between_flushes",)
Rig = dict[str, Any]


# --- the rig file -----------------------------------------------------------------------------------------------------


def _of(rig: Rig, name: str) -> Rig:
    return next(disk for disk in rig["disk"] if disk["name"] == name)


def _rig(name: str, why: str, change: Callable[[Rig, Tape], None], *, due: Any = UNKNOWN) -> None:
    def apply(tape: Tape) -> Tape:
        rig: Rig = json.loads(json.dumps(tape.rig))
        change(rig, tape)
        return tape.change(of("run.begin"), rig=rig)

    add("rig file", name, due, why, apply, CUT)


def _elsewhere(rig: Rig, tape: Tape) -> None:
    disk = _of(rig, tape.survivor)
    disk["at"] = disk["at"].rpartition(".")[0] + ".4"


def _without_hubs(rig: Rig, tape: Tape) -> None:
    rig["hub"] = []


def _without_survivor(rig: Rig, tape: Tape) -> None:
    rig["disk"] = [disk for disk in rig["disk"] if disk["name"] != tape.survivor]


def _without_disks(rig: Rig, tape: Tape) -> None:
    rig["disk"] = []


def _with_a_ghost(rig: Rig, tape: Tape) -> None:
    rig["disk"].append(_of(rig, tape.survivor) | {"name": "ghost", "serial": "GHOST-1", "at": "usb.4"})


def _doubled(rig: Rig, tape: Tape) -> None:
    rig["disk"].append(dict(_of(rig, tape.survivor)))


def _described(rig: Rig, tape: Tape) -> None:
    rig["rig"]["description"] = "the bench by the window"


_rig("survivor at another port", "It was announced elsewhere.", _elsewhere)
_rig("without its hub", "A disk was announced behind it.", _without_hubs)
_rig("without the survivor", "It was announced.", _without_survivor)
_rig("without disks", "They were announced.", _without_disks)
_rig("with a disk more", "It was never announced.", _with_a_ghost)
_rig("with the survivor twice", "Which of the two is meant is not known.", _doubled)
_rig("with another description", "It is for people.", _described, due=PASS)


# --- times and identities ---------------------------------------------------------------------------------------------


def _later(tape: Tape, kind: str, since: float, factor: float) -> Tape:
    """Events of one kind drift from ``since`` on."""
    moved = both(of(kind), lambda event: event.get("at") is not None and event["at"] > since)
    return tape.map(moved, lambda event: event | {"at": since + (event["at"] - since) * factor})


@edit("rig file", UNKNOWN, IDLE)
def samples_drift_beyond_the_end_of_the_scenario(tape: Tape) -> Tape:
    """They were recorded before its end."""
    return _later(tape, "sample", tape.off_at - 1.0, 1.5)


@edit("rig file", UNKNOWN, WRITING)
def log_drifts_from_the_cut_on(tape: Tape) -> Tape:
    """It has the disk attached after its uevent."""
    return _later(tape, "kernel", tape.off_at, 1.8)


@edit("rig file", UNKNOWN, IDLE)
def log_steps_back_at_the_return(tape: Tape) -> Tape:
    """Its numbers rise and its times fall."""
    lines = both(of("kernel"), lambda event: event["at"] > tape.on_at + 0.2)
    return tape.map(lines, lambda event: event | {"at": event["at"] - 2.0})


@edit("rig file", UNKNOWN, WRITING)
def log_lines_of_the_cut_are_of_time_zero(tape: Tape) -> Tape:
    """When a disk was named is not known, so its errors accuse nobody."""
    lines = both(of("kernel"), lambda event: tape.off_at < event["at"] < tape.on_at)
    return tape.map(lines, lambda event: event | {"at": 0.0})


@edit("rig file", UNKNOWN, CUT)
def log_is_of_a_process(tape: Tape) -> Tape:
    """The kernel logged nothing."""
    return tape.change(of("kernel"), facility=1)


@edit("rig file", (UNKNOWN, FAIL), CUT)
def survivors_error_without_a_time(tape: Tape) -> Tape:
    """Any disk may have had the name then."""
    kname = tape.attached(tape.survivor)["kname"]
    said = tape.say(tape.quiet_at, f"I/O error, dev {kname}, sector 77 op 0x1:(WRITE)", level=3)
    return said.map(
        both(of("kernel"), lambda event: "sector 77 op" in event["text"]), lambda event: event | {"at": None}
    )


@edit("rig file", UNKNOWN, CUT)
def log_has_a_slower_bus(tape: Tape) -> Tape:
    """The agent read SuperSpeed."""
    lines = both(of("kernel"), lambda event: event["at"] > tape.on_at)
    return tape.map(lines, lambda event: event | {"text": event["text"].replace("new SuperSpeed", "new high-speed")})


@edit("rig file", FAIL, HUB, "1-3")
def hub_comes_back_as_another(tape: Tape) -> Tape:
    """Another device, or one with other firmware, answers at its port."""
    lines = both(of("kernel"), lambda event: event["at"] > tape.on_at and "idVendor=0409" in event["text"])
    return tape.map(lines, lambda event: event | {"text": event["text"].replace("idVendor=0409", "idVendor=0bad")})


@edit("rig file", UNKNOWN, CUT)
def scenario_is_a_copy_of_the_one_before(tape: Tape) -> Tape:
    """The controller's clock has no time twice."""
    planned = [tape.first(of("scenario.begin"))["id"]] * 2
    inside = tape.events[1:-1]
    return Tape((tape.events[0] | {"planned": planned}, *inside, *inside, tape.events[-1]))


@edit("rig file", UNKNOWN, CUT)
def edges_with_a_negative_error(tape: Tape) -> Tape:
    """Nobody knows when they were."""
    return tape.change(of("edge"), error=-2.0)


@edit("rig file", UNKNOWN, WRITING)
def loads_end_before_they_begin(tape: Tape) -> Tape:
    """Then their errors accuse nobody."""
    return tape.change(of("load.begin"), at=tape.judged_at - 0.5)


@edit("rig file", UNKNOWN, WROTE)
def victim_read_back_before_its_writer_ended(tape: Tape) -> Tape:
    """It was read before the fault."""
    job = tape.last(of("readback.begin", disk=tape.victim))["job"]
    mine = both(lambda event: event["type"].startswith("readback"), lambda event: event["job"] == job)
    return tape.map(mine, lambda event: event | {"at": tape.off_at - 0.3})


@edit("rig file", UNKNOWN, CYCLES)
def cuts_armed_under_each_others_numbers(tape: Tape) -> Tape:
    """A port was switched before its cut was armed."""
    return tape.map(of("cut.armed"), lambda event: event | {"cut": {2: 3, 3: 2}.get(event["cut"], event["cut"])})


@edit("rig file", UNKNOWN, CYCLES)
def fifth_return_at_two_places(tape: Tape) -> Tape:
    """Its place is not that of its path in sysfs."""
    back = tape.all(of("disk.attached", disk=tape.victim))[5]
    other = back["place"].rpartition("/")[0] + "/4:0"
    return tape.map(lambda event: event == back, lambda event: event | {"place": other})


@edit("rig file", UNKNOWN, POWER)
def survivors_writer_ended_by_a_signal(tape: Tape) -> Tape:
    """Its record may lack the last writes."""
    return tape.change(of("ledger.end", disk=tape.survivor), status=-9)


@edit("rig file", UNKNOWN, POWER)
def survivors_writer_ended_unasked_and_its_load_as_asked(tape: Tape) -> Tape:
    """They are one program."""
    return tape.change(of("ledger.end", disk=tape.survivor), asked=False)


@edit("rig file", UNKNOWN, POWER)
def survivor_read_back_under_the_victims_name(tape: Tape) -> Tape:
    """It is the data of another disk, and accuses nobody."""
    return tape.change(of("readback.begin", disk=tape.survivor), disk=tape.victim)


# --- what nobody did --------------------------------------------------------------------------------------------------


def _written(tape: Tape, disk: str, since: float, more: int) -> Tape:
    keys = tape.keys(disk)

    def edit(event: Event) -> Event:
        rows = event["disks"].items()
        mine = {k: [*row[:2], row[2] + more, *row[3:]] if (k, row[0]) in keys else row for k, row in rows}
        return event | {"disks": mine}

    return tape.map(both(of("sample"), lambda event: event["at"] >= since), edit)


@edit("nobody", UNKNOWN, CUT)
def victim_is_written_after_its_return(tape: Tape) -> Tape:
    """Nothing on record wrote to it then."""
    return _written(tape, tape.victim, tape.back_at(tape.victim) + 0.3, 8 << 20)


@edit("nobody", UNKNOWN, WRITING)
def survivor_is_written_after_its_load(tape: Tape) -> Tape:
    """Nothing on record wrote to it then."""
    return _written(tape, tape.survivor, tape.first(of("load.end", disk=tape.survivor))["at"] + 1.5, 1 << 20)


def _uevent(tape: Tape, action: str, subsystem: str, devtype: str) -> Tape:
    disk = tape.attached(tape.survivor)
    path = disk["sysfs"].removeprefix("/sys")
    if subsystem != "block":
        path = path.partition("/block/")[0] if subsystem == "scsi" else path.partition("/host")[0]
    return tape.insert(
        {
            "type": "uevent",
            "at": tape.quiet_at,
            "action": action,
            "subsystem": subsystem,
            "devpath": path,
            "devtype": devtype,
            "disks": [tape.survivor],
        }
    )


for _action, _subsystem, _devtype in (
    ("unbind", "usb", "usb_interface"),
    ("remove", "usb", "usb_interface"),
    ("unbind", "scsi", "scsi_device"),
    ("offline", "scsi", "scsi_device"),
):

    def _released(tape: Tape, action: str = _action, subsystem: str = _subsystem, devtype: str = _devtype) -> Tape:
        return _uevent(tape, action, subsystem, devtype)

    _why = "Its driver let go of it though it was not cut."
    add("nobody", f"survivor's {_devtype}: {_action}", FAIL, _why, _released, CUT, "survivor")


@edit("nobody", UNKNOWN, CUT)
def survivor_added_by_an_uevent_alone(tape: Tape) -> Tape:
    """It was there, and nothing else says that it came."""
    return _uevent(tape, "add", "block", "disk")


@edit("nobody", PASS, CUT)
def survivor_changed_by_an_uevent(tape: Tape) -> Tape:
    """udev sends one when a disk that was open for writing is closed."""
    return _uevent(tape, "change", "block", "disk")


@edit("nobody", UNKNOWN, STATE)
def timer_interrupts_fall_within_one_boot(tape: Tape) -> Tape:
    """They are counted since the boot."""
    return tape.map(
        of("dut.state", moment="end"), lambda event: event | {"interrupts": dict.fromkeys(event["interrupts"], 0)}
    )


@edit("nobody", UNKNOWN, WRITING)
def verified_less_than_nothing(tape: Tape) -> Tape:
    """Nothing was compared."""
    return tape.change(of("verify"), checked=-1)


@edit("nobody", FAIL, WRITING, "hub_event")
def work_of_a_module_hogs_a_cpu(tape: Tape) -> Tape:
    """The kernel names the module of the work."""
    text = "workqueue: hub_event [usbcore] hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND"
    return tape.say(tape.off_at + 0.3, text, level=4)


# --- what comes back in trouble ---------------------------------------------------------------------------------------

for _line in (
    "usb {usb}: device descriptor read/64, error -71",
    "usb {usb}: reset SuperSpeed USB device number 4 using xhci_hcd",
    "usb {port}: unable to enumerate USB device",
    "sd {address}: [{kname}] Read Capacity(10) failed: Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK",
    "I/O error, dev {kname}, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
    "scsi {address}: Device offlined - not ready after error recovery",
):

    def _returns(tape: Tape, line: str = _line) -> Tape:
        names = tape.names(tape.victim, 1)
        bus, _, port = names.usb.partition("-")
        known = {"usb": names.usb, "port": f"usb{bus}-port{port}", "address": names.address, "kname": names.kname}
        at = tape.on_at + 0.15 if line.startswith("usb") else tape.back_at(tape.victim) - 0.02
        return tape.say(at, line.format(**known), level=3)

    _why = "Its cut explains errors of what left, not of what came."
    add("return in trouble", _line.partition("}")[2].strip(": ")[:40], FAIL, _why, _returns, CUT, "victim")


@edit("return in trouble", UNKNOWN, CUT)
def logs_an_error_that_it_did_not_log_at_first(tape: Tape) -> Tape:
    """The catalogue does not have it, so what it means is not known."""
    text = f"usb {tape.names(tape.victim, 1).usb}: config 1 has an invalid interface number: 1 but max is 0"
    return tape.say(tape.back_at(tape.victim) - 0.1, text, level=3)


@edit("return in trouble", PASS, CUT)
def logs_the_same_error_as_at_first(tape: Tape) -> Tape:
    """That is how this device comes."""
    disk = tape.victim
    text = f"usb {tape.names(disk, 1).usb}: config 1 has an invalid interface number: 1 but max is 0"
    return tape.say(tape.back_at(disk) - 0.1, text, level=3).say(tape.attached(disk)["at"] - 0.1, text, level=3)
