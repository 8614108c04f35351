"""Bugs in state that is kept too long or lost: counters, wakeups, locks on error paths, flushes that are owed.

Fields and conventions as in ``driver_bugs/first.py``. What is due was written down before the first run.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import SCSI, STORAGE
from benchmarks.driver_bugs.md import MD
from benchmarks.driver_bugs.others import mutant

JBD2, XFS = "fs/jbd2", "fs/xfs"
_SD, _LIB, _ERROR = (SCSI, "sd.c", "sd_mod"), (SCSI, "scsi_lib.c", "scsi_mod"), (SCSI, "scsi_error.c", "scsi_mod")
_SCAN, _USB = (SCSI, "scsi_scan.c", "scsi_mod"), (STORAGE, "usb.c", "usb-storage")
_TRANSPORT, _GLUE = (STORAGE, "transport.c", "usb-storage"), (STORAGE, "scsiglue.c", "usb-storage")
_ONCE, _AGAIN = "a_command_is_not_answered and not again", "sent_again"
_CUT = "a_cable_is_cut_while_the_error_handler_runs"
_LOST = "lost|lacks|wrong|stale|bad"
_RETRY = "\trdev_dec_pending(rdev, conf->mddev);\n\tallow_barrier(conf, r1_bio->sector);\n\tbio = r1_bio->master_bio;\n"
_FAULTY = "\t\t\t\tset_bit(R10BIO_Degraded, &r10_bio->state);\n\t\t\t\tr10_bio->devs[slot].bio = NULL;\n"
_NARROWED = (
    "\t\t\t\t\tmd_error(conf->mddev, rdev);\n\t\t\t\t\tset_bit(R10BIO_Degraded,\n\t\t\t\t\t\t&r10_bio->state);\n"
)

MUTANTS = (
    # What was flushed is gone after a power cut, if the program has more than one request under way.
    mutant(
        "flush_dropped_when_busy",
        "sd sends no flush while the disk has other commands",
        _SD,
        "\tcmd->cmnd[0] = SYNCHRONIZE_CACHE;\n\tcmd->cmd_len = 10;\n\tcmd->transfersize = 0;\n",
        "\tcmd->cmnd[0] = scsi_device_busy(cmd->device) > 1 ? TEST_UNIT_READY : SYNCHRONIZE_CACHE;\n"
        "\tcmd->cmd_len = COMMAND_SIZE(cmd->cmnd[0]);\n\tcmd->transfersize = 0;\n",
        ("nothing_lost", "durable lost"),
        "five_power_cuts",
        "volatile-caches",
    ),
    # A disk whose power goes while the machine sleeps loses what programs had written.
    mutant(
        "suspend_unflushed",
        "sd flushes a disk only if it is suspended alone, and not if the machine sleeps",
        _SD,
        "\tif (sdkp->WCE && sdkp->media_present) {\n\t\tif (!sdkp->device->silence_suspend)\n",
        "\tif (sdkp->WCE && sdkp->media_present && runtime) {\n\t\tif (!sdkp->device->silence_suspend)\n",
        ("flushed_for_sleep nothing_lost data_intact data_sound kept_while_powered", f"not flushed|{_LOST}"),
        "while_the_machine_sleeps",
        "volatile-caches",
    ),
    # A disk that stood still twice, with hours between, is taken offline.
    mutant(
        "timeouts_never_forgotten",
        "sd does not forget that a command timed out when others succeed",
        _SD,
        "\tsdkp->medium_access_timed_out = 0;\n",
        "",
        ("recovered undisturbed same_properties users_told", "offline|error"),
        "now_and_then",
    ),
    # A disk is slower after each recovery, and answers nothing in the end.
    mutant(
        "budget_leaked",
        "scsi_mod loses a place in a disk's queue for each request that comes while its host is recovered",
        _LIB,
        "\tif (!scsi_host_queue_ready(q, shost, sdev, cmd))\n\t\tgoto out_dec_target_busy;\n\n\t/*\n\t * Only clear",
        "\tif (!scsi_host_queue_ready(q, shost, sdev, cmd))\n\t\treturn BLK_STS_RESOURCE;\n\n\t/*\n\t * Only clear",
        ("recovered answered nothing_blocked kept_pace nothing_left", "completed no|blocked|queue|slower|baseline"),
        _ONCE,
        "uas",
    ),
    # All disks of an enclosure hang for ever if one stands still while another is used.
    mutant(
        "recovery_wakeup_lost",
        "scsi_mod does not wake the error handler if a command of another unit is the last one to end",
        _LIB,
        "\t\tif (shost->host_failed || shost->host_eh_scheduled)\n\t\t\tscsi_eh_wakeup(shost, busy);\n",
        "\t\tif (shost->host_eh_scheduled)\n\t\t\tscsi_eh_wakeup(shost, busy);\n",
        ("recovered answered nothing_blocked", "did not reset|completed no|recovery|blocked|worked only"),
        _ONCE,
        "odd-enclosures",
    ),
    # A disk is away for 12 s instead of 6 when it is reset.
    mutant(
        "reset_pause_doubled",
        "waits 12 s instead of 6 s after it has reset a disk",
        _TRANSPORT,
        "\t\t\tHZ*6);\n",
        "\t\t\tHZ*12);\n",
        ("recovered answered", "worked only|completed nothing"),
        _AGAIN,
    ),
    # A disk that is unplugged while it is reset stays in the list, and its port is dead.
    mutant(
        "lock_kept_on_error",
        "keeps the lock of a disk whose reset fails",
        _GLUE,
        "\tresult = us->transport_reset(us);\n\tmutex_unlock(&us->dev_mutex);\n",
        "\tresult = us->transport_reset(us);\n\tif (result < 0)\n\t\treturn FAILED;\n\tmutex_unlock(&us->dev_mutex);\n",
        ("removed nothing_blocked returned kernel_clean nothing_left", "blocked|did not|never|left|not removed|still"),
        _CUT,
    ),
    # A disk that is unplugged while it is reset goes seconds late.
    mutant(
        "pause_not_cut_short",
        "waits for the end of the pause after a reset when a disk was unplugged in it",
        _USB,
        "\tif (us->pusb_dev->state == USB_STATE_NOTATTACHED) {\n\t\tset_bit(US_FLIDX_DISCONNECTING, &us->dflags);\n"
        "\t\twake_up(&us->delay_wait);\n",
        "\tif (us->pusb_dev->state == USB_STATE_NOTATTACHED) {\n\t\tset_bit(US_FLIDX_DISCONNECTING, &us->dflags);\n",
        ("removed returned", "let go of|only after"),
        _CUT,
    ),
    # A disk that is plugged in is not found for 20 s if another one once stood still.
    mutant(
        "scan_waits_for_aborts",
        "scsi_mod waits with the search for disks while commands are aborted, and loses count",
        _ERROR,
        "\tscmd->eh_eflags |= SCSI_EH_ABORT_SCHEDULED;\n",
        "\tscmd->eh_eflags |= SCSI_EH_ABORT_SCHEDULED;\n\tatomic_inc(&scsi_aborts);\n",
        ("returned", "did not|not back|after|longer|never"),
        "another_cable_is_cut_while_the_error_handler_runs",
        more=(
            (
                "scsi_error.c",
                "static int scsi_eh_try_stu(struct scsi_cmnd *scmd);\n",
                "atomic_t scsi_aborts;\n\nstatic int scsi_eh_try_stu(struct scsi_cmnd *scmd);\n",
            ),
            (
                "scsi_error.c",
                "\treturn;\n\nout:\n\tspin_lock_irqsave(shost->host_lock, flags);\n\tlist_del_init(&scmd->eh_entry);\n",
                (
                    "\treturn;\n\nout:\n\tatomic_dec(&scsi_aborts);\n\tspin_lock_irqsave(shost->host_lock, flags);\n"
                    "\tlist_del_init(&scmd->eh_entry);\n"
                ),
            ),
            (
                "scsi_scan.c",
                "static void do_scsi_scan_host(struct Scsi_Host *shost)\n{\n",
                (
                    "extern atomic_t scsi_aborts;\n\nstatic void do_scsi_scan_host(struct Scsi_Host *shost)\n{\n"
                    "\tunsigned long end = jiffies + 20 * HZ;\n\n"
                    "\twhile (atomic_read(&scsi_aborts) && time_before(jiffies, end))\n\t\tmsleep(20);\n"
                ),
            ),
        ),
    ),
    # Memory goes with every disk that is plugged in.
    mutant(
        "inquiry_leaked",
        "scsi_mod never frees the 256 bytes in which a disk said what it is",
        _SCAN,
        " out_free_result:\n\tkfree(result);\n",
        " out_free_result:\n\tif (res != SCSI_SCAN_LUN_PRESENT)\n\t\tkfree(result);\n",
        ("leak_slope", "leaks|grow"),
        "many_cuts_leave",
    ),
    # A program that reads a mirror gets an error when one member goes.
    mutant(
        "last_copy_not_read",
        "fails a read that failed on one member of a mirror, because it takes the other one for missing as well",
        (MD, "raid1.c", "raid1"),
        _RETRY,
        "\trdev_dec_pending(rdev, conf->mddev);\n\tif (mddev->degraded >= conf->raid_disks - 1) {\n"
        "\t\traid_end_bio_io(r1_bio);\n\t\treturn;\n\t}\n" + _RETRY.split("\n", 1)[1],
        ("array_survived users_told no_errors answered nothing_lost", "error|errno"),
        "is_read_when and raid1]",
        "arrays",
    ),
    # A member that was put back has old data.
    mutant(
        "inflight_not_marked",
        "does not mark in the bitmap what was under way when a member went",
        (MD, "raid10.c", "raid10"),
        _FAULTY,
        _FAULTY.split("\n", 1)[1],
        ("legs_hold array_survived nothing_lost", "does not hold|mismatch|stale|lost"),
        "gets_it_back and raid10]",
        "arrays",
        (
            ("raid10.c", _NARROWED, _NARROWED.split("\n", 1)[0] + "\n"),
            ("raid10.c", "\t\t\tif (mddev->degraded)\n\t\t\t\tset_bit(R10BIO_Degraded, &r10_bio->state);\n", ""),
        ),
    ),
    # A dead filesystem cannot be unmounted.
    mutant(
        "checkpoint_for_ever",
        "jbd2 tries for ever to empty the journal of a dead disk when its filesystem is unmounted",
        (JBD2, "journal.c", "jbd2"),
        "\t\t\tjbd2_journal_destroy_checkpoint(journal);\n\t\t\tspin_lock(&journal->j_list_lock);\n\t\t\tbreak;\n",
        "\t\t\tcond_resched();\n\t\t\tspin_lock(&journal->j_list_lock);\n\t\t\tcontinue;\n",
        ("unmountable nothing_spins nothing_stuck nothing_blocked files_kept", "unmount|spin|CPU|left|blocked"),
        "comes_loose_while_files and ext4",
        "filesystems",
    ),
    # A program that synced a file when its disk went never ends.
    mutant(
        "sync_never_woken",
        "xfs does not wake those that wait for the log of a dead disk",
        (XFS, "xfs_log.c", "xfs"),
        "\t\twake_up_all(&iclog->ic_write_wait);\n\t\twake_up_all(&iclog->ic_force_wait);\n"
        "\t} while ((iclog = iclog->ic_next)",
        "\t\twake_up_all(&iclog->ic_write_wait);\n\t} while ((iclog = iclog->ic_next)",
        ("unmountable nothing_stuck nothing_blocked files_kept users_told", "unmount|left|blocked|stuck|D"),
        "comes_loose_while_files and xfs",
        "filesystems",
    ),
)
