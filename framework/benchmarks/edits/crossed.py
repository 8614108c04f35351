"""Edits that only a second kind of number or name shows: the agent's reports beside the kernel's numbers, an array's
name beside that of its load, a disk's place beside its path, a step beside what came of it."""

from __future__ import annotations

from benchmarks.edits.events import Event, both, of
from benchmarks.edits.registry import CUT, FAIL, LOADED, PASS, UNKNOWN, edit
from benchmarks.edits.tape import Tape

ARRAY = ("an_array_loses_a_member_and_gets_it_back",)
HUB = ("a_hub_is_gone_for_a_while",)
FILES = ("power_fails_where_a_filesystem_once_lost_files",)


def _replaced(tape: Tape, *pairs: tuple[Event, Event]) -> Tape:
    """The first event of each pair becomes the second one, and no message is numbered again."""
    new = [(old, fresh) for old, fresh in pairs]
    return Tape(tuple(next((fresh for old, fresh in new if old is one), one) for one in tape.events))


@edit("crossed", UNKNOWN, ARRAY)
def two_records_of_the_kernel_log_change_their_numbers(tape: Tape) -> Tape:
    """The agent reads them in the order of their numbers, and its reports say in which order it did."""
    one, two = (event for event in tape.all(of("kernel"))[40:44:3])
    return _replaced(tape, (one, one | {"seq": two["seq"]}), (two, two | {"seq": one["seq"]}))


@edit("crossed", UNKNOWN, ARRAY)
def a_number_of_a_uevent_is_there_twice(tape: Tape) -> Tape:
    """The kernel gives each number once."""
    one, two = tape.all(of("uevent"))[20:22]
    return _replaced(tape, (two, two | {"seqnum": one["seqnum"]}))


@edit("crossed", UNKNOWN, ARRAY)
def the_load_on_the_array_runs_under_another_arrays_name(tape: Tape) -> Tape:
    """What was written then was not the array that is judged."""
    name = tape.first(of("array.made"))["array"]
    tape = tape.change(of("load.begin", disk=name), kname="md99")
    return tape.change(of("ledger.begin", disk=name), kname="md99")


@edit("crossed", UNKNOWN, ARRAY)
def how_the_array_was_made_is_not_on_record(tape: Tape) -> Tape:
    """So it is not known which cut may have taken what from it, and no error of it accuses anybody."""
    name = tape.first(of("array.made"))["array"]
    tape = tape.drop(of("array.made"))
    return tape.change(of("load.end", disk=name), errno=5, asked=False, exit_status=1)


@edit("crossed", FAIL, ARRAY, "array")
def a_member_that_was_put_back_is_set_aside_again(tape: Tape) -> Tape:
    """Nothing had taken it since, and its disk stayed."""
    put_back = next(event for event in tape.all(of("array.acted")) if event["action"] in ("readd", "add"))
    disk, at = put_back["disks"][0], put_back["at"] + 2.0
    late = both(of("array.state"), lambda event: event["at"] > at and disk in event["members"])

    def aside(event: Event) -> Event:
        members = event["members"] | {disk: ["none", "faulty"]}
        return event | {"members": members, "values": event["values"] | {"degraded": "1"}}

    return tape.map(late, aside)


@edit("crossed", UNKNOWN, FILES)
def another_filesystem_was_checked_and_has_errors(tape: Tape) -> Tape:
    """The checker of another filesystem says nothing about the one that was written."""
    return tape.change(of("files.check"), fstype="f2fs", status=1)


@edit("crossed", UNKNOWN, CUT)
def a_survivor_is_announced_behind_another_controller_than_its_path(tape: Tape) -> Tape:
    """Its place and its path are read from the same device."""
    place = tape.attached(tape.survivor)["place"].partition("/")[2]
    return tape.change(of("disk.attached", disk=tape.survivor), place=f"0000:00:1f.7/{place}")


@edit("crossed", UNKNOWN, LOADED)
def a_load_that_was_asked_to_end_is_said_not_to_have_been(tape: Tape) -> Tape:
    """When it was asked is on record."""
    end = tape.first(of("load.end", disk=tape.survivor))
    return tape.change(of("load.end", disk=tape.survivor), asked=False, asked_at=end["at"] - 0.1)


@edit("crossed", FAIL, LOADED, "survivor")
def a_survivor_completes_a_part_of_a_sector(tape: Tape) -> Tape:
    """No whole disk does, and the kernel says so at the level of a remark."""
    was = tape.attached(tape.survivor)
    address = was["sysfs"].partition("/block/")[0].rpartition("/")[2]
    text = f"sd {address}: [{was['kname']}] Unaligned partial completion (resid=200, sector_sz=512)"
    return tape.say(tape.off_at + 0.6, text)


@edit("crossed", FAIL, CUT)
def the_kernel_has_no_memory_while_a_disk_is_cut(tape: Tape) -> Tape:
    """A plug that is pulled takes none."""
    path = next(
        part for part in reversed(tape.attached(tape.victim)["sysfs"].split("/")) if "-" in part and ":" not in part
    )
    hub, _, port = path.rpartition(".") if "." in path else (f"usb{path.partition('-')[0]}", "", path.partition("-")[2])
    return tape.say(tape.off_at + 0.1, f"usb {hub}-port{port}: couldn't allocate usb_device", level=3)


@edit("crossed", PASS, LOADED)
def a_process_speaks_of_a_lack_of_memory(tape: Tape) -> Tape:
    """What a process writes to the log is not the kernel's."""
    return tape.say(tape.off_at + 0.1, "backup[811]: couldn't allocate a buffer, trying again", level=4, facility=3)


@edit("crossed", FAIL, ARRAY, "array")
def md_counts_a_failed_request_to_a_member_that_was_put_back(tape: Tape) -> Tape:
    """Its disk stayed attached, and the kernel reports nothing else about it."""
    put_back = next(event for event in tape.all(of("array.acted")) if event["action"] in ("readd", "add"))
    disk, at = put_back["disks"][0], put_back["at"] + 2.0

    def flagged(event: Event) -> Event:
        slot, says = event["members"].get(disk, ["none", ""])
        return (
            event | {"members": event["members"] | {disk: [slot, "in_sync,write_error"]}}
            if says == "in_sync"
            else event
        )

    return tape.map(both(of("array.state"), lambda event: event["at"] > at and bool(event["members"])), flagged)


@edit("crossed", FAIL, HUB)
def the_hub_comes_back_with_fewer_ports(tape: Tape) -> Tape:
    """It is not the device that it was."""
    last = tape.last(both(of("kernel"), lambda event: "ports detected" in event["text"]))
    return _replaced(tape, (last, last | {"text": last["text"].replace("4 ports", "2 ports")}))
