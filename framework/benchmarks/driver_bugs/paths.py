"""Bugs put into the kernel's drivers and md: in error paths, in what is said of an error, in tails and small losses.

Fields and conventions as in ``driver_bugs/first.py``.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import SCSI, STORAGE, Mutant
from benchmarks.driver_bugs.md import MD
from benchmarks.driver_bugs.more import SCAN, SENT
from benchmarks.driver_bugs.others import AFTER_RETURN, DISCONNECT, HOST, mutant

_USB, _TRANSPORT = (STORAGE, "usb.c", "usb-storage"), (STORAGE, "transport.c", "usb-storage")
_GLUE, _UAS = (STORAGE, "scsiglue.c", "usb-storage"), (STORAGE, "uas.c", "uas")
_SD, _SCSI = (SCSI, "sd.c", "sd_mod"), (SCSI, "scsi_lib.c", "scsi_mod")
_COMMENT = "/* Associate our private data with the USB device */\n"
_ERROR = '\t\tusb_stor_dbg(us, "-- transport indicates error, resetting\\n");\n\t\tsrb->result = DID_ERROR << 16;\n'
_DATA = "nothing_lost data_intact data_sound kept_while_powered"
_WRONG = "wrong|lost|bad|lacks|stale|misdirected"
_PRESENT = "us->pusb_dev->state == USB_STATE_CONFIGURED"
_STALE = "\t\tif (!test_bit(In_sync, &rdev->flags) &&\n\t\t    "
_RAID1_STALE = _STALE + "rdev->recovery_offset < this_sector + sectors)\n\t\t\tcontinue;\n"
_RAID10_STALE = _STALE + "r10_bio->devs[slot].addr + sectors > rdev->recovery_offset)\n\t\t\tcontinue;\n"
_LATER = """static struct usb_interface *plugpull_late;
static int plugpull_resets;

static void plugpull_reset(struct work_struct *work);
static DECLARE_DELAYED_WORK(plugpull_again, plugpull_reset);

static void plugpull_reset(struct work_struct *work)
{
    usb_queue_reset_device(plugpull_late);
    if (++plugpull_resets % 10)
        schedule_delayed_work(&plugpull_again, HZ / 2);
}

""".replace("    ", "\t")


def _later(delay: str) -> str:
    """The scan of a disk's units, which has a disk that came back reset after this."""
    return (
        SCAN + "\tif (plugpull_until) {\n\t\tplugpull_late = usb_get_intf(us->pusb_intf);\n"
        f"\t\tschedule_delayed_work(&plugpull_again, {delay});\n\t}}\n"
    )


def _md(name: str, bug: str, file: str, module: str, pieces: tuple[str, str], scenario: str) -> Mutant:
    found = ("nothing_lost", "array_survived", "legs_hold"), ("wrong", "lost", "stale", "lacks")
    return Mutant(name, bug, MD, file, module, *pieces, scenario, *found, "arrays")


MUTANTS = (
    mutant(
        "tenth_slower",
        "sends the large requests of all disks a tenth less often, once a disk was unplugged",
        _TRANSPORT,
        SENT,
        "\tif (scsi_bufflen(srb) >= 65536) {\n"
        "\t\ts64 gap = ktime_us_delta(ktime_get(), us->plugpull_began), due = us->plugpull_usual * 10 / 9;\n\n"
        "\t\tif (!plugpull_until && gap < 200000)\n\t\t\tus->plugpull_usual += (gap - us->plugpull_usual) / 8;\n"
        "\t\telse if (plugpull_until && gap < due)\n\t\t\tusleep_range(due - gap, due - gap + 100);\n"
        "\t\tus->plugpull_began = ktime_get();\n\t}\n" + SENT,
        ("kept_pace", "get back|ended at|of its baseline|was at|slower"),
        "survivors_keep_their_pace",
        more=(
            (
                "usb.h",
                "struct us_data {\n",
                "struct us_data {\n\tktime_t plugpull_began;\n\ts64 plugpull_usual;\n",
            ),
        ),
    ),
    mutant(
        "tail_later",
        "waits 300 ms before every 50th command of all disks, once a disk was unplugged",
        _TRANSPORT,
        SENT,
        f"\tif (plugpull_until && {_PRESENT} && ++plugpull_writes % 50 == 0)\n\t\tmsleep(300);\n" + SENT,
        ("kept_pace answered", "took|longest|stood still|slower"),
        "survivors_keep_their_pace",
    ),
    mutant(
        "half_written",
        "sends only the first half of every 20th large write, once a disk was unplugged, and says that all was written",
        _TRANSPORT,
        SENT,
        f"\tif (plugpull_until && {_PRESENT} && srb->cmnd[0] == WRITE_10 && scsi_bufflen(srb) >= 32768 &&\n"
        "\t    !(srb->cmnd[8] & 1) && !srb->cmnd[7] && ++plugpull_writes % 20 == 0) {\n"
        "\t\tunsigned int whole = srb->sdb.length;\n\n\t\tsrb->sdb.length /= 2;\n\t\tsrb->cmnd[8] /= 2;\n"
        "\t\tresult = us->transport(srb, us);\n\t\tsrb->cmnd[8] *= 2;\n\t\tsrb->sdb.length = whole;\n\t} else\n" + SENT,
        (_DATA, _WRONG),
    ),
    mutant(
        "writes_to_another",
        "sends every 20th write to another disk, once a disk was unplugged",
        _TRANSPORT,
        SENT,
        f"\tif (plugpull_until && {_PRESENT} && srb->cmnd[0] == WRITE_10) {{\n"
        "\t\tstatic struct us_data *recent;\n\t\tstruct us_data *other = recent;\n\n\t\trecent = us;\n"
        "\t\tif (other && other != us && ++plugpull_writes % 20 == 0 && mutex_trylock(&plugpull_lock)) {\n"
        "\t\t\tmutex_lock(&other->dev_mutex);\n\t\t\tresult = us->transport(srb, other);\n"
        "\t\t\tmutex_unlock(&other->dev_mutex);\n\t\t\tmutex_unlock(&plugpull_lock);\n"
        "\t\t\tgoto plugpull_sent;\n\t\t}\n\t}\n" + SENT + "plugpull_sent:\n",
        (_DATA, _WRONG),
    ),
    mutant(
        "inflight_leaked",
        "leaks 8 KiB for each command that is under way when a disk is unplugged",
        _TRANSPORT,
        _ERROR,
        _ERROR + "\t\tif (us->pusb_dev->state == USB_STATE_NOTATTACHED)\n"
        "\t\t\tWRITE_ONCE(*(long *)kmalloc(8192, GFP_NOIO), 0);\n",
        ("leak_slope nothing_left", "leaks|grew"),
        "cuts_of_a_busy_disk",
    ),
    mutant(
        "reset_late",
        "resets a device ten times in 5 s, 20 s after it came back",
        _USB,
        SCAN,
        _later("20 * HZ"),
        ("returned undisturbed no_errors", "reset"),
        "nothing_comes_later",
        more=(("usb.c", _COMMENT, _LATER + _COMMENT),),
    ),
    mutant(
        "reset_storm",
        "resets a device ten times in 5 s as soon as it came back",
        _USB,
        SCAN,
        _later("0"),
        ("returned undisturbed no_errors", "reset|errors"),
        more=(("usb.c", _COMMENT, _LATER + _COMMENT),),
    ),
    mutant(
        "two_at_once",
        "sleeps for 9 s when two devices are disconnected within half a second",
        _USB,
        DISCONNECT,
        "\t{\n\t\tstatic unsigned long before;\n\n\t\tif (before && time_before(jiffies, before + HZ / 2))\n"
        "\t\t\tmsleep(9000);\n\t\tbefore = jiffies;\n\t}\n" + DISCONNECT,
        ("removed nothing_blocked", "after|blocked"),
        "a_hub_is_gone",
    ),
    mutant(
        "reset_reported_failed",
        "reports a reset of a device as failed that was done",
        _GLUE,
        "\tmutex_unlock(&us->dev_mutex);\n\n\treturn result < 0 ? FAILED : SUCCESS;\n",
        "\tmutex_unlock(&us->dev_mutex);\n\n\treturn FAILED;\n",
        ("no_errors undisturbed kernel_clean users_told", "reset|failed"),
        "while_another_disk_is_recovered",
    ),
    mutant(
        "post_reset_locked",
        "keeps a disk's lock after its port was reset",
        _USB,
        "\tmutex_unlock(&us->dev_mutex);\n\treturn 0;\n}\nEXPORT_SYMBOL_GPL(usb_stor_post_reset);",
        "\treturn 0;\n}\nEXPORT_SYMBOL_GPL(usb_stor_post_reset);",
        ("nothing_blocked answered kernel_clean users_told", "usb_stor|blocked|never"),
        "while_another_disk_is_recovered",
    ),
    mutant(
        "units_forgotten",
        "finds only the first unit of a device that came back",
        _USB,
        "\t\tus->max_lun = usb_stor_Bulk_max_lun(us);\n",
        "\t\tus->max_lun = plugpull_until ? 0 : usb_stor_Bulk_max_lun(us);\n",
        ("other_units returned", "unit|CD-ROM|LUN"),
        "false_cdrom",
        "odd-enclosures",
    ),
    mutant(
        "resume_locked",
        "keeps a disk's lock when the machine wakes",
        _USB,
        "int usb_stor_reset_resume(struct usb_interface *iface)\n{\n\tstruct us_data *us = usb_get_intfdata(iface);\n",
        "int usb_stor_reset_resume(struct usb_interface *iface)\n{\n"
        "\tstruct us_data *us = usb_get_intfdata(iface);\n\n\tmutex_lock(&us->dev_mutex);\n",
        ("answered nothing_blocked returned kernel_clean data_intact", "usb_stor|blocked|answer"),
        "while_the_machine_sleeps",
    ),
    mutant(
        "uas_urb_leaked",
        "uas leaks the URB of each status that was awaited when a disk is unplugged, with 4 KiB",
        _UAS,
        '\t\t\tdev_err(&urb->dev->dev, "stat urb: status %d\\n", status);\n\t\tgoto out;\n',
        '\t\t\tdev_err(&urb->dev->dev, "stat urb: status %d\\n", status);\n'
        "\t\tWRITE_ONCE(*(long *)kmalloc(4096, GFP_ATOMIC), 0);\n\t\tusb_get_urb(urb);\n\t\tgoto out;\n",
        ("leak_slope nothing_left", "leaks|grew"),
        "cuts_of_a_busy_disk",
        "uas",
    ),
    mutant(
        "errno_no_space",
        "scsi_mod reports that there is no space where a disk is gone",
        _SCSI,
        "\tcase DID_TRANSPORT_FAILFAST:\n\tcase DID_TRANSPORT_MARGINAL:\n\t\treturn BLK_STS_TRANSPORT;\n",
        "\tcase DID_NO_CONNECT:\n\tcase DID_ERROR:\n\t\treturn BLK_STS_NOSPC;\n"
        "\tcase DID_TRANSPORT_FAILFAST:\n\tcase DID_TRANSPORT_MARGINAL:\n\t\treturn BLK_STS_TRANSPORT;\n",
        ("users_told ended_with_error", "28|space|errno"),
        "a_disk_dies_in_use",
    ),
    mutant(
        "unit_attention_fails",
        "scsi_mod fails the command whose answer is that there was a reset, instead of sending it again",
        _SCSI,
        "\t\t\t\taction = ACTION_RETRY;\n\t\t\t}\n\t\t\tbreak;\n\t\tcase ILLEGAL_REQUEST:\n",
        "\t\t\t\taction = ACTION_FAIL;\n\t\t\t}\n\t\t\tbreak;\n\t\tcase ILLEGAL_REQUEST:\n",
        ("no_errors undisturbed users_told", "error"),
        "while_another_disk_is_recovered",
        more=(
            (
                "scsi_error.c",
                "\t\t\t\treturn NEEDS_RETRY;\n\t\t\t}\n\t\t}\n\t\t/*\n\t\t * we might also",
                "\t\t\t\treturn SUCCESS;\n\t\t\t}\n\t\t}\n\t\t/*\n\t\t * we might also",
            ),
        ),
    ),
    mutant(
        "proc_entry_left",
        "scsi_mod leaves the entry of a host in /proc/scsi when it is removed",
        (SCSI, "hosts.c", "scsi_mod"),
        "\tscsi_proc_host_rm(shost);\n",
        "",
        ("nothing_left", "/proc/scsi"),
    ),
    mutant(
        "eh_timeout_later",
        "sd gives the error handler 60 s for each command to a disk that came back",
        _SD,
        "\tsdkp->first_scan = 0;\n",
        "\t{\n"
        + AFTER_RETURN.format(first="sdkp->first_scan && ", disks=3)
        + "\t\t\tsdkp->device->eh_timeout = 60 * HZ;\n"
        "\t}\n\tsdkp->first_scan = 0;\n",
        ("same_properties", "error handler"),
        "while_idle",
    ),
    mutant(
        "capacity_short",
        "sd takes a disk that came back for one sector smaller",
        _SD,
        "\tsdkp->capacity = lba + 1;\n\tsdkp->physical_block_size = sector_size;\n",
        "\tsdkp->capacity = lba + 1;\n\t{\n"
        + AFTER_RETURN.format(first="sdkp->first_scan && ", disks=3)
        + "\t\t\tsdkp->capacity--;\n\t}\n\tsdkp->physical_block_size = sector_size;\n",
        ("same_properties returned undisturbed", "bytes|blocks"),
        "while_idle",
    ),
    mutant(
        "fua_claimed",
        "sd believes that every disk supports FUA, and does not send it",
        _SD,
        "\t\tsdkp->DPOFUA = (data.device_specific & 0x10) != 0;\n",
        "\t\tsdkp->DPOFUA = 1;\n",
        ("nothing_lost", "durable lost"),
        "power_fails_under_other_writes and fua",
        "volatile-caches",
        more=(("sd.c", "\tfua = rq->cmd_flags & REQ_FUA ? 0x8 : 0;\n\tdix = ", "\tfua = 0;\n\tdix = "),),
    ),
    mutant(
        "cancelled_leaked",
        "xhci leaks 2 KiB for each URB that is under way when a device is unplugged",
        (HOST, "xhci-ring.c", "xhci-hcd"),
        "\txhci_urb_free_priv(urb_priv);\n\tusb_hcd_unlink_urb_from_ep(hcd, urb);\n",
        "\tif (urb->unlinked)\n\t\tWRITE_ONCE(*(long *)kmalloc(2048, GFP_ATOMIC), 0);\n"
        "\txhci_urb_free_priv(urb_priv);\n\tusb_hcd_unlink_urb_from_ep(hcd, urb);\n",
        ("leak_slope nothing_left", "leaks|grew"),
        "cuts_of_a_busy_disk",
    ),
    _md(
        "raid1_reads_stale",
        "reads from a member that is not rebuilt yet",
        "raid1.c",
        "raid1",
        (_RAID1_STALE, ""),
        "without_a_bitmap",
    ),
    _md(
        "raid10_reads_stale",
        "reads from a member that is not rebuilt yet",
        "raid10.c",
        "raid10",
        (_RAID10_STALE, ""),
        "gets_it_back and raid10]",
    ),
    _md(
        "raid5_degraded_read",
        "computes what a missing member holds without the parity, when it is only read",
        "raid5.c",
        "raid456",
        (
            "\tBUG_ON(!test_bit(R5_Wantcompute, &tgt->flags));\n\n\tfor (i = disks; i--; ) {\n\t\tif (i != target) {\n",
            (
                "\tBUG_ON(!test_bit(R5_Wantcompute, &tgt->flags));\n\n\tfor (i = disks; i--; ) {\n"
                "\t\tif (i != target && !(tgt->toread && !tgt->towrite && i == sh->pd_idx)) {\n"
            ),
        ),
        "gets_it_back and raid5]",
    ),
)
