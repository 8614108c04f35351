"""Bugs as a refactoring or a backport makes them, in places that few scenarios reach.

Fields and conventions as in ``driver_bugs/first.py``. What a user sees, the scenario that ought to find it and what the
finding has to name were written down before the first run. Some are in places that no stock scenario reaches on an
emulated bench: see the benchmarks' page.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import SCSI, STORAGE
from benchmarks.driver_bugs.md import MD
from benchmarks.driver_bugs.others import CORE, HOST, mutant
from benchmarks.driver_bugs.state import JBD2

_TRANSPORT, _USB = (STORAGE, "transport.c", "usb-storage"), (STORAGE, "usb.c", "usb-storage")
_HUB, _XHCI = (CORE, "hub.c", "usbcore"), (HOST, "xhci.c", "xhci-hcd")
_LIB = (SCSI, "scsi_lib.c", "scsi_mod")
_RESET = "\tclear_bit(US_FLIDX_RESETTING, &us->dflags);\n\tlast_sector_hacks(us, srb);\n"
_POST_RESET = "\t\t\t     __func__, err);\n\n\t/* we must unblock the host in every case lest we deadlock */\n"
_READS = (
    "\t\t\t\tstruct bio *nextbi =\n\t\t\t\t\tr5_next_bio(conf, bi, sh->dev[i].sector);\n\n\t\t\t\tbio_io_error(bi);\n"
)

MUTANTS = (
    # A disk that stands still a second time is never given up: whoever uses it hangs.
    mutant(
        "resetting_kept",
        "takes a port for one that is still being reset when its reset was done",
        _TRANSPORT,
        _RESET,
        _RESET.split("\n", 1)[1],
        ("recovered nothing_blocked answered", "did not|blocked|completed no|again|never"),
        "now_and_then",
    ),
    # 8 bytes of memory go with every disk that is unplugged.
    mutant(
        "setup_packet_leaked",
        "never frees the 8 bytes of its control requests",
        _USB,
        "\tkfree(us->cr);\n",
        "",
        ("leak_slope", "leaks|grow"),
        "many_cuts_leave",
    ),
    # A disk that is unplugged while it is reset never goes away, and its hub hears nothing any more.
    mutant(
        "blocked_after_failed_reset",
        "uas leaves its requests blocked when a reset has failed",
        (STORAGE, "uas.c", "uas"),
        "\tif (err && err != -ENODEV)\n\t\tshost_printk(KERN_ERR, shost,\n"
        '\t\t\t     "%s: alloc streams error %d after reset",\n' + _POST_RESET,
        "\tif (err) {\n\t\tif (err != -ENODEV)\n\t\t\tshost_printk(KERN_ERR, shost,\n"
        '\t\t\t     "%s: alloc streams error %d after reset",\n' + _POST_RESET.replace(";", ";\n\t\treturn 1;\n\t}", 1),
        ("removed nothing_blocked returned nothing_stuck users_told", "blocked|did not|stuck|never|still|left|D"),
        "disk_is_recovered",
        "uas",
    ),
    # A disk that stood still for a moment is reset the next time at once, which takes 6 s and more.
    mutant(
        "abort_flag_kept",
        "scsi_mod remembers that a command was aborted when its place is used for another one",
        _LIB,
        "\tcmd->eh_eflags = 0;\n",
        "",
        ("recovered undisturbed", "reset|more often|than"),
        "now_and_then",
    ),
    # A program gets EOPNOTSUPP for a write where the disk is gone.
    mutant(
        "errno_not_supported",
        "scsi_mod says that a request to a disk that is being removed is not supported",
        _LIB,
        "\t\tif (req && !(req->rq_flags & RQF_PM))\n\t\t\treturn BLK_STS_OFFLINE;\n",
        "\t\tif (req && !(req->rq_flags & RQF_PM))\n\t\t\treturn BLK_STS_NOTSUPP;\n",
        ("ended_with_error users_told no_errors", "errno|not supported|95"),
        "a_disk_dies_in_use",
    ),
    # The number of a SCSI host is never used again: after a year of plugging, a script finds host4711.
    mutant(
        "host_number_leaked",
        "scsi_mod never frees the number of a SCSI host that is removed",
        (SCSI, "hosts.c", "scsi_mod"),
        "\tida_free(&host_index_ida, shost->host_no);\n",
        "",
        ("leak_slope returned same_properties nothing_left", "number|host"),
        "many_cuts_leave",
    ),
    # After a sleep, a disk that is plugged into or out of a hub is not noticed.
    mutant(
        "hub_deaf_after_sleep",
        "usbcore does not listen to a hub any more that the machine woke and that has nothing new",
        _HUB,
        " init3:\n\thub->quiescing = 0;\n",
        "\tif (type == HUB_RESUME && hdev->parent && !need_debounce_delay)\n\t\tgoto abort;\n"
        " init3:\n\thub->quiescing = 0;\n",
        ("removed returned", "did not|never|not removed|after|still"),
        "missed_after_a_sleep",
    ),
    # After a short loss of contact the old device stays, with a state that the disk has lost.
    mutant(
        "short_loss_ignored",
        "usbcore takes a device that is there again when it looks for one that never was away",
        _HUB,
        "\t\tusb_clear_port_feature(hdev, port1, USB_PORT_FEAT_C_CONNECTION);\n\t\tconnect_change = 1;\n",
        "\t\tusb_clear_port_feature(hdev, port1, USB_PORT_FEAT_C_CONNECTION);\n"
        "\t\tconnect_change |= !(portstatus & USB_PORT_STAT_CONNECTION) != !udev;\n",
        ("returned undisturbed answered no_errors kernel_clean", "did not|never|reset|again|gone|stall|error"),
        "before_the_kernel_notices",
    ),
    # Memory of the controller is lost with every uas disk that is unplugged or reset.
    mutant(
        "stream_rings_leaked",
        "xhci does not free the rings of the first endpoint that had streams",
        _XHCI,
        "\tfor (i = 0; i < num_eps; i++)\n\t\txhci_free_stream_info(xhci, stream_info[i]);\n",
        "\tfor (i = 1; i < num_eps; i++)\n\t\txhci_free_stream_info(xhci, stream_info[i]);\n",
        ("leak_slope state_kept", "leaks|grow|more than"),
        "many_cuts_leave",
        "uas",
    ),
    # A blank disk that replaces a dead member of a mirror is in it soon, and holds nothing of what was there before.
    mutant(
        "new_member_half_copied",
        "copies to a new member only what was written while one was missing",
        (MD, "raid1.c", "raid1"),
        "\t\t\tif (rdev->saved_raid_disk < 0)\n\t\t\t\tconf->fullsync = 1;\n",
        "",
        ("legs_hold array_survived nothing_lost data_intact", "does not hold|mismatch|stale|lost|wrong"),
        "without_a_bitmap",
        "arrays",
    ),
    # A program reads garbage from an array that has failed, without an error.
    mutant(
        "failed_reads_are_done",
        "answers reads as done that too few members are left for",
        (MD, "raid5.c", "raid456"),
        _READS,
        _READS.replace("bio_io_error", "bio_endio"),
        ("array_failed users_told data_intact data_sound nothing_lost", "wrong|error|lost|stale"),
        "more_members_go and raid5]",
        "arrays",
    ),
    # After a power failure, a file that was synced and whose transaction had left the journal is gone or damaged.
    mutant(
        "checkpoint_unflushed",
        "jbd2 drops a transaction from its journal without flushing the blocks that it has written",
        (JBD2, "checkpoint.c", "jbd2"),
        "\tif (journal->j_flags & JBD2_BARRIER)\n\t\tblkdev_issue_flush(journal->j_fs_dev);\n",
        "",
        ("files_kept", "lost|old version|wrong size|unreadable|corrupt|unmount|checker|errors"),
        "three_times and ext4",
        "filesystems",
    ),
)
