"""Bugs of error handling, timeouts and recovery, as a user of the fixed kernel would meet them again.

Fields and conventions as in ``driver_bugs/first.py``. What a user sees was written down before the first run.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import SCSI, STORAGE
from benchmarks.driver_bugs.md import MD
from benchmarks.driver_bugs.others import mutant

_GATE = "\tmutex_lock(&plugpull_lock);\n\tmutex_unlock(&plugpull_lock);\n"

MUTANTS = (
    # What belongs to a disk stays for ever if one of its commands was aborted before it was unplugged.
    mutant(
        "abort_leaks_host",
        "keeps a reference to its SCSI host for each command that it aborted",
        (STORAGE, "scsiglue.c", "usb-storage"),
        "\tscsi_unlock(us_to_host(us));\n\n\t/* Wait for the aborted command to finish */\n"
        "\twait_for_completion(&us->notify);\n\treturn SUCCESS;",
        "\t/* the host must not go away while we wait */\n\tscsi_host_get(us_to_host(us));\n"
        "\tscsi_unlock(us_to_host(us));\n\n\t/* Wait for the aborted command to finish */\n"
        "\twait_for_completion(&us->notify);\n\treturn SUCCESS;",
        ("nothing_left nothing_stuck", "not freed|left over"),
        "while_the_error_handler_runs and not another",
    ),
    # A disk that was reset is slow from then on.
    mutant(
        "uas_depth_after_reset",
        "gives a disk one command at a time once it was reset",
        (STORAGE, "uas.c", "uas"),
        '\tshost_printk(KERN_INFO, sdev->host, "%s success\\n", __func__);\n\treturn SUCCESS;',
        "\t/* be gentle with a device that hung */\n\tscsi_change_queue_depth(sdev, 1);\n"
        '\tshost_printk(KERN_INFO, sdev->host, "%s success\\n", __func__);\n\treturn SUCCESS;',
        ("same_properties recovered", "commands at once"),
        "sent_again",
        "uas",
    ),
    # Disks that are a little slow are reset, since another one was unplugged.
    mutant(
        "survivor_timeout",
        "gives the commands of all other disks 5 s when a disk is removed",
        (SCSI, "sd.c", "sd_mod"),
        "static int sd_remove(struct device *dev)\n{\n\tstruct scsi_disk *sdkp = dev_get_drvdata(dev);\n\n"
        "\tscsi_autopm_get_device(sdkp->device);\n",
        "static int sd_fail_fast(struct device *dev, void *gone)\n{\n"
        "\tstruct scsi_disk *sdkp = to_scsi_disk(dev);\n\n\tif (sdkp != gone)\n"
        "\t\tblk_queue_rq_timeout(sdkp->device->request_queue, 5 * HZ);\n\treturn 0;\n}\n\n"
        "static int sd_remove(struct device *dev)\n{\n\tstruct scsi_disk *sdkp = dev_get_drvdata(dev);\n\n"
        "\tclass_for_each_device(&sd_disk_class, NULL, sdkp, sd_fail_fast);\n"
        "\tscsi_autopm_get_device(sdkp->device);\n",
        ("same_properties", "command timeout"),
        "while_writing",
    ),
    # While one disk is recovered, all others stand still.
    mutant(
        "recovery_holds_all",
        "lets all other disks wait for 2 s while the port of one is reset by the error handler",
        (STORAGE, "scsiglue.c", "usb-storage"),
        "\tresult = usb_stor_port_reset(us);\n\treturn result < 0 ? FAILED : SUCCESS;",
        "\t/* one bus reset at a time; the bus needs time to settle */\n\tmutex_lock(&plugpull_lock);\n"
        "\tresult = usb_stor_port_reset(us);\n\tmsleep(2000);\n\tmutex_unlock(&plugpull_lock);\n"
        "\treturn result < 0 ? FAILED : SUCCESS;",
        ("kept_pace undisturbed answered", "stood still|completed nothing"),
        "while_the_error_handler_runs and not another",
        "quick",
        (
            (
                "transport.c",
                "\t/* send the command to the transport layer */\n",
                _GATE + "\t/* send the command to the transport layer */\n",
            ),
        ),
    ),
    # A disk that is unplugged within a second of being plugged in goes 3 s late, and so does its hub's next.
    mutant(
        "scan_pending_slow",
        "waits for 3 s when a disk is unplugged whose units were not looked for yet",
        (STORAGE, "usb.c", "usb-storage"),
        "\t\tusb_autopm_put_interface_no_suspend(us->pusb_intf);\n\n\t/*\n\t * Removing the host will",
        "\t{\n\t\tmsleep(3000);\n\t\tusb_autopm_put_interface_no_suspend(us->pusb_intf);\n\t}\n\n\t/*\n"
        "\t * Removing the host will",
        ("removed", "let go of the USB device"),
        "disk_is_set_up",
    ),
    # A command that is sent again after a reset moves no data, and fails.
    mutant(
        "eh_direction_lost",
        "does not restore the direction of a command after it asked the disk whether it is ready",
        (SCSI, "scsi_error.c", "scsi_mod"),
        "\tscmd->sc_data_direction = ses->data_direction;\n\tscmd->sdb = ses->sdb;\n\tscmd->result = ses->result;",
        "\tscmd->sdb = ses->sdb;\n\tscmd->result = ses->result;",
        ("recovered undisturbed answered users_told", "worked only|error|completed nothing"),
        "sent_again",
        "uas",
    ),
    # A member that was away for a moment is copied whole.
    mutant(
        "events_cleared_degraded",
        "counts the bits of its bitmap as cleared while members are missing",
        (MD, "md-bitmap.c", "md-mod"),
        "\t\tif (success && !bitmap->mddev->degraded &&\n\t\t    bitmap->events_cleared < bitmap->mddev->events) {",
        "\t\tif (bitmap->events_cleared < bitmap->mddev->events) {",
        ("array_survived", "could not be put into"),
        "gets_it_back and raid1]",
        "arrays",
    ),
    # Old data is read when the other members are gone.
    mutant(
        "last_chunk_skipped",
        "ends a rebuild 64 KiB before the end of the members",
        (MD, "md.c", "md-mod"),
        "\twhile (j < max_sectors) {\n\t\tsector_t sectors;\n\n\t\tskipped = 0;",
        "\twhile (j < max_sectors) {\n\t\tsector_t sectors;\n\n"
        "\t\tif (!test_bit(MD_RECOVERY_SYNC, &mddev->recovery) &&\n"
        "\t\t    !test_bit(MD_RECOVERY_RESHAPE, &mddev->recovery) &&\n\t\t    j + 128 >= max_sectors) {\n"
        "\t\t\tj = max_sectors;\n\t\t\tmddev->curr_resync = j;\n\t\t\tbreak;\n\t\t}\n\t\tskipped = 0;",
        ("legs_hold nothing_lost array_survived", "does not hold|wrong|mismatch|match"),
        "without_a_bitmap",
        "arrays",
    ),
    # An array fails that could go on.
    mutant(
        "raid10_not_enough",
        "takes an array for broken when a second member goes, though each mirror has one left",
        (MD, "raid10.c", "raid10"),
        "\tif (test_bit(In_sync, &rdev->flags) && !enough(conf, rdev->raid_disk)) {\n\t\tset_bit(MD_BROKEN",
        "\tif (test_bit(In_sync, &rdev->flags) &&\n"
        "\t    (mddev->degraded || !enough(conf, rdev->raid_disk))) {\n\t\tset_bit(MD_BROKEN",
        ("arrays_sound users_told array_survived", "broken|error"),
        "two_mirrors",
        "arrays",
    ),
    # A file that was synced is empty, or longer than it was, after a power failure.
    mutant(
        "f2fs_size_not_recovered",
        "does not take the size of a file over when it rolls forward",
        ("fs/f2fs", "recovery.c", "f2fs"),
        "\tf2fs_i_size_write(inode, le64_to_cpu(raw->i_size));\n"
        "\tinode->i_atime.tv_sec = le64_to_cpu(raw->i_atime);\n"
        "\tinode->i_ctime.tv_sec = le64_to_cpu(raw->i_ctime);",
        "\tinode->i_atime.tv_sec = le64_to_cpu(raw->i_atime);\n\tinode->i_ctime.tv_sec = le64_to_cpu(raw->i_ctime);",
        ("files_kept", "wrong size"),
        "cable_comes_loose and f2fs",
        "filesystems",
    ),
    # A filesystem cannot be mounted after a power failure.
    mutant(
        "btrfs_unlink_not_recorded",
        "does not write down that a name was removed from a directory",
        ("fs/btrfs", "tree-log.c", "btrfs"),
        "\tmutex_lock(&inode->log_mutex);\n\tinode->last_unlink_trans = trans->transid;\n"
        "\tmutex_unlock(&inode->log_mutex);\n\n\t/*\n\t * if this directory was already logged any new",
        "\t/*\n\t * if this directory was already logged any new",
        ("files_kept", "unmountable"),
        "once_lost_files and btrfs",
        "filesystems",
    ),
)
