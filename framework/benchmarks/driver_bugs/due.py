"""Bugs put into the kernel's drivers and md, with the verdict that is due written down before the first run.

Fields and conventions as in ``driver_bugs/first.py``.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import Mutant

USB, CORE, SCSI, MD = "drivers/usb/storage", "drivers/usb/core", "drivers/scsi", "drivers/md"

MUTANTS = (
    Mutant(
        "delete_unflushed",
        "sd does not flush a disk that is removed by the book",
        SCSI,
        "sd.c",
        "sd_mod",
        (
            "\tif (sdkp->WCE && sdkp->media_present) {\n"
            '\t\tsd_printk(KERN_NOTICE, sdkp, "Synchronizing SCSI cache\\n");\n'
            "\t\tsd_sync_cache(sdkp, NULL);\n\t}\n\n\tif ((system_state"
        ),
        (
            "\tif (sdkp->WCE && sdkp->media_present)\n"
            '\t\tsd_printk(KERN_NOTICE, sdkp, "Synchronizing SCSI cache\\n");\n\n\tif ((system_state'
        ),
        "exchanged_by_the_book",
        (
            "nothing_lost",
            "data_intact",
            "data_sound",
            "kept_while_powered",
            "files_kept",
        ),
        (
            "wrong",
            "lost",
            "bad",
            "lacks",
            "stale",
        ),
        "volatile-caches",
    ),
    Mutant(
        "open_at_unplug_leaks",
        "sd keeps a reference to a disk that is closed after it was unplugged",
        SCSI,
        "sd.c",
        "sd_mod",
        "\t\t\tscsi_set_medium_removal(sdev, SCSI_REMOVAL_ALLOW);\n\t}\n\n\tscsi_device_put(sdev);\n",
        (
            "\t\t\tscsi_set_medium_removal(sdev, SCSI_REMOVAL_ALLOW);\n\t}\n\n"
            "\tif (sdev->sdev_state == SDEV_DEL || sdev->sdev_state == SDEV_CANCEL)\n\t\treturn;\n"
            "\tscsi_device_put(sdev);\n"
        ),
        "while_writing",
        (
            "nothing_left",
            "leak_slope",
            "state_kept",
            "same_properties",
        ),
        (
            "freed",
            "leaks",
            "more than",
            "number",
            "held",
        ),
        "quick",
    ),
    Mutant(
        "target_left",
        "scsi_mod keeps the target of a disk that was unplugged",
        SCSI,
        "scsi_sysfs.c",
        "scsi_mod",
        "\tscsi_target_reap(scsi_target(sdev));\n\n\tput_device(dev);\n",
        "\tput_device(dev);\n",
        "while_idle",
        (
            "nothing_left",
            "leak_slope",
            "same_properties",
        ),
        (
            "left",
            "freed",
            "leaks",
            "target",
            "number",
        ),
        "quick",
    ),
    Mutant(
        "max_retries_later",
        "sd never repeats a command to a disk that came back",
        SCSI,
        "sd.c",
        "sd_mod",
        "\tsdkp->first_scan = 0;\n",
        (
            "\t{\n\t\tstatic atomic_t plugpull_probes;\n\n"
            "\t\tif (sdkp->first_scan && atomic_inc_return(&plugpull_probes) > 3)\n"
            "\t\t\tsdkp->max_retries = 0;\n\t}\n\tsdkp->first_scan = 0;\n"
        ),
        "while_idle",
        ("same_properties",),
        ("retries",),
        "quick",
    ),
    Mutant(
        "cache_flag_lost",
        "forgets that a disk has a write cache when its port is reset",
        USB,
        "usb.c",
        "usb-storage",
        (
            "int usb_stor_post_reset(struct usb_interface *iface)\n{\n"
            "\tstruct us_data *us = usb_get_intfdata(iface);\n\n\t/* Report the reset to the SCSI core */\n"
            "\tusb_stor_report_bus_reset(us);\n"
        ),
        (
            "int usb_stor_post_reset(struct usb_interface *iface)\n{\n"
            "\tstruct us_data *us = usb_get_intfdata(iface);\n\tstruct scsi_device *sdev;\n\n"
            "\tshost_for_each_device(sdev, us_to_host(us))\n"
            "\t\tblk_queue_write_cache(sdev->request_queue, false, false);\n"
            "\t/* Report the reset to the SCSI core */\n\tusb_stor_report_bus_reset(us);\n"
        ),
        "while_another_disk_is_recovered",
        (
            "same_properties",
            "undisturbed",
        ),
        ("write cache",),
        "volatile-caches",
    ),
    Mutant(
        "debounce_slow",
        "usbcore waits a second longer for each device that is plugged in again",
        CORE,
        "hub.c",
        "usbcore",
        '\tdev_dbg(&port_dev->dev, "debounce total %dms stable %dms status 0x%x\\n",\n',
        (
            "\t{\n\t\tstatic atomic_t n;\n\n\t\tif (atomic_inc_return(&n) > 3)\n\t\t\tmsleep(1000);\n\t}\n"
            '\tdev_dbg(&port_dev->dev, "debounce total %dms stable %dms status 0x%x\\n",\n'
        ),
        "while_writing",
        ("returned",),
        (
            "after",
            "longer",
            "slower",
        ),
        "quick",
    ),
    Mutant(
        "raid5_too_many_done",
        "answers writes as done that no member can take any more",
        MD,
        "raid5.c",
        "raid456",
        (
            "\t\t\tmd_write_end(conf->mddev);\n\t\t\tbio_io_error(bi);\n\t\t\tbi = nextbi;\n\t\t}\n"
            "\t\tif (bitmap_end)\n\t\t\tmd_bitmap_endwrite(conf->mddev->bitmap, sh->sector,\n"
            "\t\t\t\t\t   RAID5_STRIPE_SECTORS(conf), 0, 0);\n\t\tbitmap_end = 0;\n"
            "\t\t/* and fail all 'written' */"
        ),
        (
            "\t\t\tmd_write_end(conf->mddev);\n\t\t\tbio_endio(bi);\n\t\t\tbi = nextbi;\n\t\t}\n"
            "\t\tif (bitmap_end)\n\t\t\tmd_bitmap_endwrite(conf->mddev->bitmap, sh->sector,\n"
            "\t\t\t\t\t   RAID5_STRIPE_SECTORS(conf), 0, 0);\n\t\tbitmap_end = 0;\n"
            "\t\t/* and fail all 'written' */"
        ),
        "more_members_go and raid5",
        (
            "array_failed",
            "nothing_lost",
            "data_sound",
            "users_told",
        ),
        (
            "error",
            "lost",
            "wrong",
        ),
        "arrays",
    ),
    Mutant(
        "resync_skipped",
        "takes an array that was not stopped for one whose members are equal",
        MD,
        "md.c",
        "md-mod",
        "\t\tmddev->recovery_cp = le64_to_cpu(sb->resync_offset);\n",
        "\t\tmddev->recovery_cp = MaxSector;\n",
        "every_member_loses_its_power and raid5",
        (
            "legs_hold",
            "array_survived",
            "nothing_lost",
            "arrays_sound",
        ),
        (
            "differ",
            "hold",
            "match",
            "lost",
        ),
        "arrays",
    ),
    Mutant(
        "array_kept",
        "keeps a reference to an array that was stopped",
        MD,
        "md.c",
        "md-mod",
        '\tif (mode == 0) {\n\t\tpr_info("md: %s stopped.\\n", mdname(mddev));\n',
        ('\tif (mode == 0) {\n\t\tmddev_get(mddev);\n\t\tpr_info("md: %s stopped.\\n", mdname(mddev));\n'),
        "gets_only_what_it_missed",
        (
            "nothing_left",
            "arrays_sound",
            "array_survived",
            "state_kept",
        ),
        (
            "left",
            "still",
            "md",
        ),
        "arrays",
    ),
    Mutant(
        "raid1_one_leg",
        "writes every 64th request to the first member only",
        MD,
        "raid1.c",
        "raid1",
        "\t\tr1_bio->bios[i] = NULL;\n\t\tif (!rdev || test_bit(Faulty, &rdev->flags)) {\n",
        (
            "\t\tstatic unsigned int plugpull;\n\n\t\tr1_bio->bios[i] = NULL;\n"
            "\t\tif (i == 1 && rdev && ++plugpull % 64 == 0)\n\t\t\tcontinue;\n"
            "\t\tif (!rdev || test_bit(Faulty, &rdev->flags)) {\n"
        ),
        "gets_it_back and raid1]",
        (
            "legs_hold",
            "array_survived",
            "nothing_lost",
        ),
        (
            "hold",
            "match",
            "lost",
        ),
        "arrays",
    ),
    Mutant(
        "uas_before_data",
        "uas answers a read when its status arrives, without its data",
        USB,
        "uas.c",
        "uas",
        "\tif (cmdinfo->state & (COMMAND_INFLIGHT |\n\t\t\t      DATA_IN_URB_INFLIGHT |\n",
        "\tif (cmdinfo->state & (COMMAND_INFLIGHT |\n",
        "while_reading",
        (
            "nothing_lost",
            "data_intact",
            "data_sound",
            "kept_while_powered",
            "kernel_clean",
            "no_errors",
            "undisturbed",
        ),
        (
            "wrong",
            "lost",
            "bad",
            "lacks",
            "stale",
            "uas",
            "error",
        ),
        "uas",
    ),
    Mutant(
        "host_state_stuck",
        "scsi_mod leaves a host in recovery when its error handler ends while its disk is gone",
        SCSI,
        "scsi_error.c",
        "scsi_mod",
        (
            "static void scsi_restart_operations(struct Scsi_Host *shost)\n{\n\tstruct scsi_device *sdev;\n"
            "\tunsigned long flags;\n"
        ),
        (
            "static void scsi_restart_operations(struct Scsi_Host *shost)\n{\n\tstruct scsi_device *sdev;\n"
            "\tunsigned long flags;\n\n\tmsleep(20000);\n"
        ),
        "before_the_kernel_notices and 20",
        (
            "answered",
            "nothing_blocked",
            "kernel_clean",
            "kept_pace",
            "users_told",
            "nothing_left",
            "removed",
        ),
        (
            "blocked",
            "after",
            "stood",
            "left",
        ),
        "quick",
    ),
    Mutant(
        "fua_unsent",
        "sd sends writes with FUA without it, to a disk that supports it",
        SCSI,
        "sd.c",
        "sd_mod",
        "\tfua = rq->cmd_flags & REQ_FUA ? 0x8 : 0;\n\tdix = ",
        "\tfua = 0;\n\tdix = ",
        "power_fails_under_other_writes and fua",
        ("nothing_lost",),
        ("durable lost",),
        "write-through",
    ),
    Mutant(
        "raid1_resync_cleared",
        "clears the bitmap of a stretch though it could not be written to a member",
        MD,
        "raid1.c",
        "raid1",
        (
            "\t\tmd_bitmap_end_sync(mddev->bitmap, s, &sync_blocks, 1);\n\t\ts += sync_blocks;\n"
            "\t\tsectors_to_go -= sync_blocks;\n\t} while (sectors_to_go > 0);\n}\n\n"
            "static void put_sync_write_buf"
        ),
        (
            "\t\tmd_bitmap_end_sync(mddev->bitmap, s, &sync_blocks, 0);\n\t\ts += sync_blocks;\n"
            "\t\tsectors_to_go -= sync_blocks;\n\t} while (sectors_to_go > 0);\n}\n\n"
            "static void put_sync_write_buf"
        ),
        "gets_it_back and raid1]",
        (
            "legs_hold",
            "array_survived",
        ),
        (
            "does not hold",
            "mismatch",
        ),
        "arrays",
    ),
    Mutant(
        "superblock_late",
        "does not write to the other members that one failed",
        MD,
        "raid1.c",
        "raid1",
        (
            "\tset_mask_bits(&mddev->sb_flags, 0,\n"
            "\t\t      BIT(MD_SB_CHANGE_DEVS) | BIT(MD_SB_CHANGE_PENDING));\n"
            '\tpr_crit("md/raid1:%s: Disk failure on %pg, disabling device.\\n"'
        ),
        '\tpr_crit("md/raid1:%s: Disk failure on %pg, disabling device.\\n"',
        "any_order",
        (
            "legs_hold",
            "array_failed",
            "nothing_lost",
            "array_survived",
        ),
        (
            "stale",
            "lost",
            "hold",
            "superblock",
            "events",
        ),
        "arrays",
    ),
)
