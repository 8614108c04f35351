"""Bugs as the kernel once had them: what fixes in stable kernels repaired, undone.

Fields and conventions as in ``driver_bugs/first.py``. What is due was written down before the first run.

Not found: ``list_not_cancelled`` (the disk answers again 0.3 s after a command was given up, and the transfer ends by
itself), ``data_not_cancelled`` (QEMU's disks do not report a reset of their USB device), ``behind_overtaken`` (reads
probably come too late), ``flush_left_to_nobody`` and ``link_not_checkpointed`` (probably the next sync makes up for it
before the cut). Not run since it was changed: ``cancelled_kept``.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import SCSI, STORAGE
from benchmarks.driver_bugs.md import MD
from benchmarks.driver_bugs.others import AFTER_RETURN, HOST, mutant
from benchmarks.driver_bugs.state import JBD2

F2FS = "fs/f2fs"
_FILES = "lost after fsync|old version|wrong size|corrupt"

MUTANTS = (
    # A disk that is unplugged within a second of being plugged in takes the kernel with it.
    mutant(
        "scan_after_disconnect",
        "looks for the units of a device that was unplugged in the meantime",
        (STORAGE, "usb.c", "usb-storage"),
        "\tcancel_delayed_work_sync(&us->scan_dwork);\n\n\t/* Balance",
        "\t/* Balance",
        ("kernel_clean nothing_left returned survived", "BUG|Oops|fault|left|did not|not back|WARNING|refcount"),
        "while_the_disk_is_set_up",
    ),
    # A read that is not answered is never given up: its transfer is not cancelled, and the abort waits for its end.
    mutant(
        "list_not_cancelled",
        "does not cancel a scattered transfer when its command is aborted",
        (STORAGE, "transport.c", "usb-storage"),
        '\t\tusb_stor_dbg(us, "-- cancelling sg request\\n");\n\t\tusb_sg_cancel(&us->current_sg);\n\t}\n}\n',
        '\t\tusb_stor_dbg(us, "-- cancelling sg request\\n");\n\t}\n}\n',
        ("recovered nothing_blocked answered", "did not reset|completed no|blocked|recovery|completed nothing"),
        "a_read_is_not_answered",
    ),
    # The other bays of a tower stand still for 30 s after one was reset: their first answer is that there was a reset.
    mutant(
        "data_not_cancelled",
        "uas waits for the data of a write that ended with an error",
        (STORAGE, "uas.c", "uas"),
        "\t\tif (cmnd->result != 0) {\n\t\t\t/* cancel data transfers on error */\n",
        "\t\tif (0) {\n\t\t\t/* cancel data transfers on error */\n",
        ("recovered answered nothing_blocked undisturbed kept_pace", "completed no|blocked|worked only|times|reset"),
        "a_command_is_not_answered and not again",
        "odd-enclosures",
    ),
    # A disk that stood still some times in its life gives its user an error the next time.
    mutant(
        "retries_add_up",
        "scsi_mod counts the repetitions of a command on from those of earlier commands",
        (SCSI, "scsi_lib.c", "scsi_mod"),
        "\tcmd->jiffies_at_alloc = jiffies;\n\tcmd->retries = 0;\n",
        "\tcmd->jiffies_at_alloc = jiffies;\n",
        ("users_told no_errors undisturbed recovered", "error|errno"),
        "now_and_then",
    ),
    # udev does not find the serial number and the identity of a disk that came back, so that its links are missing.
    mutant(
        "pages_lost_later",
        "scsi_mod does not read the pages of product data of a disk that came back",
        (SCSI, "scsi_scan.c", "scsi_mod"),
        "\tif (sdev->scsi_level >= SCSI_3)\n\t\tscsi_attach_vpd(sdev);\n",
        "\tif (sdev->scsi_level >= SCSI_3) {\n"
        + AFTER_RETURN.format(first="", disks=2)
        + "\t\t\treturn SCSI_SCAN_LUN_PRESENT;\n\t\tscsi_attach_vpd(sdev);\n\t}\n",
        ("same_properties returned", "vpd|VPD|page|serial|identi|found as"),
        "while_idle",
        "uas",
    ),
    # A process that waits for a cancelled request hangs, and with it the removal of the disk.
    mutant(
        "cancelled_kept",
        "xhci forgets the transfers that it was to cancel after that of another stream",
        (HOST, "xhci-ring.c", "xhci-hcd"),
        "\t/* Check for deferred or newly cancelled TDs */\n\tif (!list_empty(&ep->cancelled_td_list)) {\n",
        "\tif (0) {\n",
        ("removed nothing_blocked returned nothing_left", "blocked|did not|never|still|left|not removed|after"),
        "while_writing",
        "uas",
    ),
    # iostat shows an array that is always busy, for good.
    mutant(
        "read_counted_twice",
        "counts a read as begun again when it is sent to another member, and ends it once",
        (MD, "raid10.c", "raid10"),
        "\tif (!r10_bio->start_time &&\n\t    blk_queue_io_stat(bio->bi_bdev->bd_disk->queue))\n",
        "\tif (blk_queue_io_stat(bio->bi_bdev->bd_disk->queue))\n",
        ("arrays_sound array_survived answered nothing_left", "in flight|under way|completed no|requests"),
        "is_read_when and raid10]",
        "arrays",
    ),
    # A program reads what it wrote seconds ago, and gets what was there before.
    mutant(
        "behind_overtaken",
        "reads from a slow member before what it was sent behind the back of its writer has arrived",
        (MD, "raid1.c", "raid1"),
        "\t\twait_event(bitmap->behind_wait,\n\t\t\t   atomic_read(&bitmap->behind_writes) == 0);\n",
        "\t\t;\n",
        ("nothing_lost data_sound data_intact array_survived", "lost|stale|wrong|lacks|old"),
        "only_the_slow_member",
        "arrays",
    ),
    # fdatasync of a file that was overwritten in place returns before the disk has flushed it.
    mutant(
        "flush_left_to_nobody",
        "jbd2 claims that a transaction that is on the disk will still flush it",
        (JBD2, "journal.c", "jbd2"),
        "\tif (tid_geq(journal->j_commit_sequence, tid))\n\t\tgoto out;\n\tcommit_trans = ",
        "\tcommit_trans = ",
        ("files_kept nothing_lost", _FILES),
        "power_fails_while_files_are_written and ext4",
        "filesystems",
    ),
    # The second name of a file that was synced is gone after a power cut.
    mutant(
        "link_not_checkpointed",
        "f2fs writes no checkpoint when a file with two names is synced",
        (F2FS, "file.c", "f2fs"),
        "\telse if (inode->i_nlink != 1)\n\t\tcp_reason = CP_HARDLINK;\n",
        "",
        ("files_kept", _FILES),
        "power_fails_while_files_are_written and f2fs",
        "filesystems",
    ),
)
