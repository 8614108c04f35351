"""More bugs put into the kernel's drivers: in its data path, its error handling, its accounting and its USB core.

Fields and conventions as in ``driver_bugs/first.py``.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import SCSI, STORAGE, Mutant

CORE, HOST = "drivers/usb/core", "drivers/usb/host"
_SENT = "\tresult = us->transport(srb, us);\n"
DISCONNECT = "\tquiesce_and_remove_host(us);\n\trelease_everything(us);\n}\nEXPORT_SYMBOL_GPL(usb_stor_disconnect);"
_ASSOCIATE = "\tus->pusb_dev = interface_to_usbdev(intf);\n"
_FREEZE = (
    "#include <linux/stop_machine.h>\nstatic int plugpull_freeze(void *data)\n{\n"
    "\tu64 end = ktime_get_ns() + 2500000000ULL;\n\n"
    "\twhile (ktime_get_ns() < end)\n\t\tcpu_relax();\n\treturn 0;\n}\n\n"
)
_QUEUE_DEPTH = "\tscsi_change_queue_depth(sdev, devinfo->qdepth - 2);\n\treturn 0;\n"
_PRINTED = "\t\tsd_print_capacity(sdkp, old_capacity);\n"
_DATA, _GONE = "data_intact data_sound nothing_lost kept_while_powered", "removed nothing_blocked"
AFTER_RETURN = "\t\tstatic atomic_t plugpull_probes;\n\n\t\tif ({first}atomic_inc_return(&plugpull_probes) > {disks})\n"
"""What is done only to disks that are announced after those that were there from the beginning."""


def mutant(
    name: str,
    bug: str,
    place: tuple[str, str, str],
    old: str,
    new: str,
    found: tuple[str, str],
    scenario: str = "while_writing",
    rig: str = "quick",
    more: tuple[tuple[str, str, str], ...] = (),
) -> Mutant:
    folder, file, module = place
    checks, words = found
    return Mutant(
        name, bug, folder, file, module, old, new, scenario, tuple(checks.split()), tuple(words.split("|")), rig, more
    )


_USB, _TRANSPORT = (STORAGE, "usb.c", "usb-storage"), (STORAGE, "transport.c", "usb-storage")
_UAS, _SD = (STORAGE, "uas.c", "uas"), (SCSI, "sd.c", "sd_mod")
_HUB, _XHCI = (CORE, "hub.c", "usbcore"), (HOST, "xhci.c", "xhci-hcd")

MUTANTS = (
    mutant(
        "reads_corrupted",
        "leaves the last sector of every 16th read as it was in memory, once a disk was unplugged",
        _TRANSPORT,
        _SENT,
        _SENT + "\tif (plugpull_until && srb->cmnd[0] == READ_10 && scsi_bufflen(srb) >= 4096 &&\n"
        "\t    ++plugpull_writes % 16 == 0) {\n\t\tstatic u8 stale[512];\n\n"
        "\t\tsg_pcopy_from_buffer(scsi_sglist(srb), scsi_sg_count(srb), stale, 512, scsi_bufflen(srb) - 512);\n\t}\n",
        (_DATA, "wrong sectors|lost|stale|bad|lacks"),
        "while_reading",
    ),
    mutant(
        "write_misplaced",
        "sd sends every 200th write 8 blocks behind its place",
        _SD,
        "\tput_unaligned_be32(lba, &cmd->cmnd[2]);\n\tput_unaligned_be16(nr_blocks, &cmd->cmnd[7]);\n\n\treturn",
        "\tif (write && lba > 64) {\n\t\tstatic atomic_t sent;\n\n"
        "\t\tif (atomic_inc_return(&sent) % 200 == 0)\n\t\t\tlba -= 8;\n\t}\n"
        "\tput_unaligned_be32(lba, &cmd->cmnd[2]);\n\tput_unaligned_be16(nr_blocks, &cmd->cmnd[7]);\n\n\treturn",
        (_DATA, "wrong sectors|lost|stale|bad|lacks"),
    ),
    mutant(
        "inflight_as_done",
        "answers the command that was under way when a disk was unplugged as if it had been done",
        _TRANSPORT,
        '\t\tusb_stor_dbg(us, "-- transport indicates error, resetting\\n");\n\t\tsrb->result = DID_ERROR << 16;\n',
        '\t\tusb_stor_dbg(us, "-- transport indicates error, resetting\\n");\n\t\tsrb->result = DID_ERROR << 16;\n'
        "\t\tif (us->pusb_dev->state == USB_STATE_NOTATTACHED) {\n\t\t\tsrb->result = SAM_STAT_GOOD;\n"
        "\t\t\tscsi_set_resid(srb, 0);\n\t\t\treturn;\n\t\t}\n",
        (_DATA, "wrong sectors|lost|lacks"),
        "comes_loose_between_flushes",
    ),
    mutant(
        "uas_error_swallowed",
        "uas answers commands to a disk that is gone as if they had been done",
        _UAS,
        "\t\tset_host_byte(cmnd, DID_ERROR);\n\t\tscsi_done(cmnd);\n\t\tgoto zombie;\n",
        "\t\tcmnd->result = 0;\n\t\tscsi_done(cmnd);\n\t\tgoto zombie;\n",
        (f"{_DATA} users_told ended_with_error", "wrong sectors|lost|lacks|without an error|never given"),
        "comes_loose_between_flushes",
        "uas",
    ),
    mutant(
        "cache_misread",
        "sd takes every disk for one without a write cache",
        _SD,
        "\t\t\tsdkp->WCE = ((buffer[offset + 2] & 0x04) != 0);\n",
        "\t\t\tsdkp->WCE = 0;\n",
        ("nothing_lost as_declared belief same_properties", "durable lost|write cache|write-through|write through"),
        "five_power_cuts",
        "volatile-caches",
    ),
    mutant(
        "cache_misread_later",
        "sd takes a disk that came back for one without a write cache",
        _SD,
        "\t\t\tsdkp->RCD = ((buffer[offset + 2] & 0x01) != 0);\n",
        "\t\t\tsdkp->RCD = ((buffer[offset + 2] & 0x01) != 0);\n"
        "\t\t\t{\n" + AFTER_RETURN.format(first="sdkp->first_scan && ", disks=3) + "\t\t\t\tsdkp->WCE = 0;\n\t\t\t}\n",
        ("nothing_lost same_properties undisturbed", "write cache"),
        "fails_between_flushes",
        "volatile-caches",
    ),
    mutant(
        "fua_dropped",
        "sd forgets the FUA of a write",
        _SD,
        "\tfua = rq->cmd_flags & REQ_FUA ? 0x8 : 0;\n",
        "\tfua = 0;\n",
        ("nothing_lost", "durable lost"),
        "power_fails_under_other_writes and fua",
        "write-through",
    ),
    mutant(
        "flush_skipped_sometimes",
        "sd answers every other flush without sending it to the disk",
        _SD,
        "\tcmd->cmnd[0] = SYNCHRONIZE_CACHE;\n\tcmd->cmd_len = 10;\n\tcmd->transfersize = 0;\n",
        "\tcmd->cmnd[0] = SYNCHRONIZE_CACHE;\n\tcmd->cmd_len = 10;\n\tcmd->transfersize = 0;\n"
        "\t{\n\t\tstatic atomic_t flushes;\n\n\t\tif (atomic_inc_return(&flushes) % 2) {\n"
        "\t\t\tcmd->cmnd[0] = TEST_UNIT_READY;\n\t\t\tcmd->cmd_len = 6;\n\t\t}\n\t}\n",
        ("nothing_lost", "durable lost"),
        "five_power_cuts",
        "volatile-caches",
    ),
    mutant(
        "readonly_later",
        "sd takes a disk that came back for a write-protected one",
        _SD,
        "\t\tsdkp->write_prot = ((data.device_specific & 0x80) != 0);\n",
        "\t\tsdkp->write_prot = ((data.device_specific & 0x80) != 0);\n"
        + AFTER_RETURN.format(first="sdkp->first_scan && ", disks=3)
        + "\t\t\tsdkp->write_prot = 1;\n",
        ("same_properties undisturbed", "read-only|write protection"),
    ),
    mutant(
        "capacity_later",
        "sd takes a disk that came back for 8 blocks smaller",
        _SD,
        _PRINTED,
        "\t\t{\n"
        + AFTER_RETURN.format(first="sdkp->first_scan && ", disks=3)
        + "\t\t\tsdkp->capacity -= 8;\n\t\t}\n"
        + _PRINTED,
        ("returned same_properties undisturbed", "bytes instead of|blocks of"),
    ),
    mutant(
        "uevent_missing",
        "sd removes a disk without announcing it",
        _SD,
        "\tdel_gendisk(sdkp->disk);\n\tif (!sdkp->suspended)",
        "\tdev_set_uevent_suppress(disk_to_dev(sdkp->disk), 1);\n\tdel_gendisk(sdkp->disk);\n\tif (!sdkp->suspended)",
        ("removed", "announce|uevent|never"),
    ),
    mutant(
        "gendisk_leaked",
        "sd never drops its reference to the disk of a drive that is unplugged",
        _SD,
        "\tput_disk(sdkp->disk);\n\treturn 0;\n",
        "\treturn 0;\n",
        ("nothing_left returned same_properties", "removed, not freed|held its name|nothing held|left over"),
    ),
    mutant(
        "retries_endless",
        "scsi_mod sends a command again as long as its disk is gone",
        (SCSI, "scsi_error.c", "scsi_mod"),
        "\tcase DID_NO_CONNECT:\n\tcase DID_BAD_TARGET:\n\t\t/*\n\t\t * note - this means",
        "\tcase DID_NO_CONNECT:\n\t\treturn ADD_TO_MLQUEUE;\n\tcase DID_BAD_TARGET:\n\t\t/*\n\t\t * note - this means",
        ("removed nothing_blocked nothing_left users_told nothing_spins", "after|blocked|still|of a CPU|to go"),
    ),
    mutant(
        "bsg_entry_left",
        "scsi_mod leaves a disk's entry in /sys/class/bsg when it is removed",
        (SCSI, "scsi_sysfs.c", "scsi_mod"),
        "\t\tif (IS_ENABLED(CONFIG_BLK_DEV_BSG) && sdev->bsg_dev)\n\t\t\tbsg_unregister_queue(sdev->bsg_dev);\n",
        "",
        ("nothing_left", "/sys/class/bsg|removed, not freed"),
    ),
    mutant(
        "eh_slow",
        "waits 6 s before it handles an error",
        _TRANSPORT,
        "  Handle_Errors:\n",
        "  Handle_Errors:\n\tmsleep(6000);\n",
        (_GONE, "after|blocked"),
    ),
    mutant(
        "global_lock",
        "holds up every disk for 0.9 s while one is removed",
        _TRANSPORT,
        _SENT,
        "\tmutex_lock(&plugpull_lock);\n\tmutex_unlock(&plugpull_lock);\n" + _SENT,
        ("kept_pace", "stood still"),
        more=(
            (
                "usb.c",
                DISCONNECT,
                "\tmutex_lock(&plugpull_lock);\n\tmsleep(900);\n\tmutex_unlock(&plugpull_lock);\n" + DISCONNECT,
            ),
        ),
    ),
    mutant(
        "other_reset",
        "resets another disk when one is unplugged",
        _USB,
        DISCONNECT,
        "\tif (plugpull_last && plugpull_last != intf)\n\t\tusb_queue_reset_device(plugpull_last);\n"
        "\telse if (plugpull_first && plugpull_first != intf)\n\t\tusb_queue_reset_device(plugpull_first);\n"
        + DISCONNECT,
        ("undisturbed no_errors", "reset"),
        more=(
            (
                "usb.c",
                _ASSOCIATE,
                _ASSOCIATE + "\tif (!plugpull_first)\n\t\tplugpull_first = intf;\n\tplugpull_last = intf;\n",
            ),
            (
                "usb.c",
                "/* Associate our private data with the USB device */\n",
                "static struct usb_interface *plugpull_first, *plugpull_last;\n\n",
            ),
        ),
    ),
    mutant(
        "usb_device_leaked",
        "never drops a reference to the USB device of a disk",
        _USB,
        _ASSOCIATE,
        "\tus->pusb_dev = usb_get_dev(interface_to_usbdev(intf));\n",
        ("leak_slope nothing_left", "leaks|never freed"),
        "many_cuts_leave",
    ),
    mutant(
        "page_leaked",
        "loses 4 KiB of memory with every disk that is unplugged",
        _USB,
        DISCONNECT,
        "\tWRITE_ONCE(*(long *)kmalloc(4096, GFP_KERNEL), 0);\n" + DISCONNECT,
        ("leak_slope", "leaks"),
        "many_cuts_leave",
    ),
    mutant(
        "module_held",
        "takes a reference to itself with every disk that is unplugged",
        _USB,
        DISCONNECT,
        "\t__module_get(THIS_MODULE);\n" + DISCONNECT,
        ("state_kept", "more than at the beginning"),
    ),
    mutant(
        "thread_left",
        "never stops the thread of a disk that is unplugged",
        _USB,
        "\tif (us->ctl_thread)\n\t\tkthread_stop(us->ctl_thread);\n",
        "",
        ("nothing_left", "kernel thread usb-storage"),
    ),
    mutant(
        "machine_frozen",
        "stops all CPUs for 2.5 s when a disk is unplugged",
        _USB,
        DISCONNECT,
        "\tstop_machine(plugpull_freeze, NULL, NULL);\n" + DISCONNECT,
        ("removed kept_pace kernel_clean nothing_blocked answered nothing_spins", "after|stood still|frozen"),
        more=(
            (
                "usb.c",
                "/* Associate our private data with the USB device */\n",
                _FREEZE,
            ),
        ),
    ),
    mutant(
        "return_slow",
        "waits 2.5 s more before it looks for the disks of a device that came back",
        _USB,
        '\tdev_dbg(dev, "starting scan\\n");\n',
        '\tdev_dbg(dev, "starting scan\\n");\n\tif (plugpull_until)\n\t\tmsleep(2500);\n',
        ("returned ready_under_load", "came back only after|slower|longer"),
    ),
    mutant(
        "return_reset",
        "resets each device that came back before it looks for its disks",
        _USB,
        '\tdev_dbg(dev, "starting scan\\n");\n',
        '\tdev_dbg(dev, "starting scan\\n");\n\tif (plugpull_until)\n\t\tusb_stor_port_reset(us);\n',
        ("returned", "came back with errors"),
    ),
    mutant(
        "return_retries",
        "fails READ CAPACITY of a disk that came back twice, so that it is sent again",
        _TRANSPORT,
        "\tsrb->result = SAM_STAT_GOOD;\n\n\t/*\n\t * Determine if we need to auto-sense\n",
        "\tsrb->result = SAM_STAT_GOOD;\n\tif (plugpull_until && srb->cmnd[0] == READ_CAPACITY &&\n"
        "\t    ++plugpull_writes <= 2) {\n\t\tsrb->result = DID_SOFT_ERROR << 16;\n\t\treturn;\n\t}\n\n"
        "\t/*\n\t * Determine if we need to auto-sense\n",
        ("same_properties returned", "as it came back|came back with errors"),
    ),
    mutant(
        "timeout_later",
        "sd gives a disk that came back 55 s for each command",
        _SD,
        _PRINTED,
        "\t\t{\n"
        + AFTER_RETURN.format(first="sdkp->first_scan && ", disks=3)
        + "\t\t\tblk_queue_rq_timeout(sdkp->device->request_queue, 55 * HZ);\n\t\t}\n"
        + _PRINTED,
        ("same_properties", "command timeout"),
    ),
    mutant(
        "autosuspend_later",
        "lets the kernel suspend a device that came back",
        _USB,
        '\tdev_dbg(dev, "starting scan\\n");\n',
        '\tdev_dbg(dev, "starting scan\\n");\n\tif (plugpull_until)\n\t\tusb_enable_autosuspend(us->pusb_dev);\n',
        ("same_properties", "power control"),
    ),
    mutant(
        "survivor_retries",
        "fails one command in 25 of every disk once one was unplugged, so that it is sent again",
        _TRANSPORT,
        "\tsrb->result = SAM_STAT_GOOD;\n\n\t/*\n\t * Determine if we need to auto-sense\n",
        "\tsrb->result = SAM_STAT_GOOD;\n\tif (plugpull_until && ++plugpull_writes % 25 == 0) {\n"
        "\t\tsrb->result = DID_SOFT_ERROR << 16;\n\t\treturn;\n\t}\n\n"
        "\t/*\n\t * Determine if we need to auto-sense\n",
        ("undisturbed no_errors same_properties", "FAILED|failed"),
    ),
    mutant(
        "uas_depth_one_later",
        "uas gives a disk that came back one command at a time",
        _UAS,
        _QUEUE_DEPTH,
        AFTER_RETURN.format(first="", disks=1) + "\t\t\treturn scsi_change_queue_depth(sdev, 1), 0;\n" + _QUEUE_DEPTH,
        ("same_properties", "commands at once"),
        rig="uas",
    ),
    mutant(
        "uas_tag_reused",
        "uas gives a command the tag of another one, one time in 50",
        _UAS,
        "\t\tif (!devinfo->cmnd[idx])\n\t\t\tbreak;\n\t}\n\tif (idx == devinfo->qdepth) {\n",
        "\t\tstatic unsigned int tags;\n\n\t\tif (!devinfo->cmnd[idx] || ++tags % 50 == 0)\n\t\t\tbreak;\n\t}\n"
        "\tif (idx == devinfo->qdepth) {\n",
        ("undisturbed no_errors kept_pace answered users_told nothing_blocked kernel_clean", "uas|error|tag|completed"),
        rig="uas",
    ),
    mutant(
        "hub_slow",
        "usbcore holds a device's lock for 1.5 s while it disconnects it",
        _HUB,
        "\tusb_disable_device(udev, 0);\n\tusb_hcd_synchronize_unlinks(udev);\n\n\tif (udev->parent) {",
        "\tif (udev->parent)\n\t\tmsleep(1500);\n"
        "\tusb_disable_device(udev, 0);\n\tusb_hcd_synchronize_unlinks(udev);\n\n\tif (udev->parent) {",
        (_GONE, "after|blocked"),
    ),
    mutant(
        "disconnect_silent",
        "usbcore does not log that a device was disconnected",
        _HUB,
        '\tdev_info(&udev->dev, "USB disconnect, device number %d\\n",\n\t\t\tudev->devnum);\n',
        "",
        ("removed undisturbed kernel_clean", "does not say"),
    ),
    mutant(
        "slot_leaked",
        "xhci never gives a device's slot back to the controller",
        _XHCI,
        "\tvirt_dev->udev = NULL;\n\txhci_disable_slot(xhci, udev->slot_id);\n\n\tspin_lock_irqsave",
        "\tvirt_dev->udev = NULL;\n\treturn;\n\n\tspin_lock_irqsave",
        ("nothing_left leak_slope", "slot"),
    ),
)
