"""More bugs put into the kernel's drivers: subtle ones, which leave no trace in the kernel's log.

Fields and conventions as in ``driver_bugs/first.py``.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import SCSI, STORAGE
from benchmarks.driver_bugs.others import AFTER_RETURN, CORE, DISCONNECT, mutant

_USB, _TRANSPORT = (STORAGE, "usb.c", "usb-storage"), (STORAGE, "transport.c", "usb-storage")
_GLUE, _SD = (STORAGE, "scsiglue.c", "usb-storage"), (SCSI, "sd.c", "sd_mod")
_HUB = (CORE, "hub.c", "usbcore")
SENT = "\tresult = us->transport(srb, us);\n"
SCAN = '\tdev_dbg(dev, "starting scan\\n");\n'
_GOOD = "\tsrb->result = SAM_STAT_GOOD;\n\n\t/*\n\t * Determine if we need to auto-sense\n"
_ASSOCIATE_COMMENT = "/* Associate our private data with the USB device */\n"
REMOVE = "static int sd_remove(struct device *dev)\n{\n\tstruct scsi_disk *sdkp = dev_get_drvdata(dev);\n"
_PROBED = "\tdev_set_drvdata(dev, sdkp);\n"
_FLUSH = "\tcmd->cmnd[0] = SYNCHRONIZE_CACHE;\n\tcmd->cmd_len = 10;\n\tcmd->transfersize = 0;\n"


_KNOWN = "static struct scsi_disk *plugpull_disks[64];\n\n"
_SD_PROBE = "static int sd_probe(struct device *dev)\n{\n"
REMEMBERED = (
    ("sd.c", _PROBED, _PROBED + "\tplugpull_remember(sdkp);\n"),
    (
        "sd.c",
        _SD_PROBE,
        (
            _KNOWN + "static void plugpull_remember(struct scsi_disk *sdkp)\n{\n\tint i = 0;\n\n"
            "\twhile (i < 63 && plugpull_disks[i])\n\t\ti++;\n\tplugpull_disks[i] = sdkp;\n}\n\n" + _SD_PROBE
        ),
    ),
)
"""A list of all disks for sd."""


def to_others(statement: str) -> str:
    """sd_remove, which does something to every ``other`` disk first."""
    return (
        REMOVE + "\tint i;\n\n\tfor (i = 0; i < 64; i++) {\n\t\tstruct scsi_disk *other = plugpull_disks[i];\n\n"
        "\t\tif (other == sdkp)\n\t\t\tplugpull_disks[i] = NULL;\n\t\telse if (other)\n\t\t\t" + statement + "\t}\n"
    )


_DATA = "nothing_lost data_intact data_sound kept_while_powered"

MUTANTS = (
    mutant(
        "flush_dropped_later",
        "sd answers the flushes of a disk that came back without sending them",
        _SD,
        _FLUSH,
        _FLUSH + "\tif (sdkp->plugpull_later) {\n\t\tcmd->cmnd[0] = TEST_UNIT_READY;\n\t\tcmd->cmd_len = 6;\n\t}\n",
        ("nothing_lost", "durable lost"),
        "five_power_cuts",
        "volatile-caches",
        more=(
            ("sd.h", "\tstruct opal_dev *opal_dev;\n", "\tstruct opal_dev *opal_dev;\n\tbool plugpull_later;\n"),
            (
                "sd.c",
                "\tsdkp->first_scan = 0;\n",
                "\t{\n"
                + AFTER_RETURN.format(first="sdkp->first_scan && ", disks=3)
                + "\t\t\tsdkp->plugpull_later = 1;\n"
                "\t}\n\tsdkp->first_scan = 0;\n",
            ),
        ),
    ),
    mutant(
        "large_requests_shifted",
        "sd reads and writes requests of 64 blocks and more one block behind their place",
        _SD,
        "\tfua = rq->cmd_flags & REQ_FUA ? 0x8 : 0;\n\tdix = ",
        "\tif (nr_blocks >= 64 && lba + nr_blocks < threshold)\n\t\tlba++;\n\n"
        "\tfua = rq->cmd_flags & REQ_FUA ? 0x8 : 0;\n\tdix = ",
        (_DATA, "wrong|lost|bad|lacks|stale|misdirected"),
    ),
    mutant(
        "wakeup_lost",
        "forgets once to wake the thread of another disk after one was unplugged, until 3 s later",
        _GLUE,
        "\tus->srb = srb;\n\tcomplete(&us->cmnd_ready);\n",
        "\tus->srb = srb;\n"
        "\tif (plugpull_until && !plugpull_asleep && us->pusb_dev->state == USB_STATE_CONFIGURED) {\n"
        "\t\tplugpull_asleep = us;\n\t\tschedule_delayed_work(&plugpull_wake, 3 * HZ);\n\t\treturn 0;\n\t}\n"
        "\tcomplete(&us->cmnd_ready);\n",
        ("kept_pace answered", "stood still|longest"),
        more=(
            (
                "scsiglue.c",
                "/* queue a command */\n",
                (
                    "static struct us_data *plugpull_asleep;\n\n"
                    "static void plugpull_waken(struct work_struct *work)\n{\n"
                    "\tcomplete(&plugpull_asleep->cmnd_ready);\n}\n"
                    "static DECLARE_DELAYED_WORK(plugpull_wake, plugpull_waken);\n\n/* queue a command */\n"
                ),
            ),
        ),
    ),
    mutant(
        "serial_cut_short",
        "usbcore loses the last character of the serial number of a device that came back",
        _HUB,
        "\tudev->serial = usb_cache_string(udev, udev->descriptor.iSerialNumber);\n",
        "\tudev->serial = usb_cache_string(udev, udev->descriptor.iSerialNumber);\n"
        "\tif (plugpull_gone && udev->serial && udev->serial[0])\n"
        "\t\tudev->serial[strlen(udev->serial) - 1] = '\\0';\n",
        ("returned same_properties", "serial"),
        more=(
            (
                "hub.c",
                "#define HUB_DEBOUNCE_TIMEOUT\t2000\n",
                "static bool plugpull_gone;\n#define HUB_DEBOUNCE_TIMEOUT\t2000\n",
            ),
            (
                "hub.c",
                '\tusb_set_device_state(udev, USB_STATE_NOTATTACHED);\n\tdev_info(&udev->dev, "USB disconnect',
                (
                    "\tplugpull_gone = true;\n"
                    '\tusb_set_device_state(udev, USB_STATE_NOTATTACHED);\n\tdev_info(&udev->dev, "USB disconnect'
                ),
            ),
        ),
    ),
    mutant(
        "urb_leaked",
        "never frees the URB of a disk that is unplugged",
        _USB,
        "\tusb_free_urb(us->current_urb);\n",
        "",
        ("leak_slope nothing_left", "leaks"),
        "many_cuts_leave",
    ),
    mutant(
        "worker_burns",
        "keeps a kernel worker busy four fifths of the time once a disk was unplugged",
        _USB,
        DISCONNECT,
        "\tschedule_delayed_work(&plugpull_poll, 0);\n" + DISCONNECT,
        ("nothing_spins", "CPU|kworker"),
        more=(
            (
                "usb.c",
                _ASSOCIATE_COMMENT,
                "static void plugpull_polled(struct work_struct *work);\n"
                "static DECLARE_DELAYED_WORK(plugpull_poll, plugpull_polled);\n\n"
                "static void plugpull_polled(struct work_struct *work)\n{\n"
                "\tunsigned long end = jiffies + msecs_to_jiffies(40);\n\n"
                "\twhile (time_before(jiffies, end))\n\t\tcpu_relax();\n"
                "\tschedule_delayed_work(&plugpull_poll, msecs_to_jiffies(10));\n}\n\n" + _ASSOCIATE_COMMENT,
            ),
        ),
    ),
    mutant(
        "discovery_locks",
        "lets every disk wait for 0.8 s while one that was plugged in settles",
        _USB,
        SCAN,
        SCAN + "\tif (plugpull_until) {\n\t\tmutex_lock(&plugpull_lock);\n\t\tmsleep(800);\n"
        "\t\tmutex_unlock(&plugpull_lock);\n\t}\n",
        ("kept_pace", "stood still"),
        more=(("transport.c", SENT, "\tmutex_lock(&plugpull_lock);\n\tmutex_unlock(&plugpull_lock);\n" + SENT),),
    ),
    mutant(
        "usb_uevent_missing",
        "usbcore removes a device without announcing it",
        _HUB,
        "\tdevice_del(&udev->dev);\n\n\t/* Free the device number",
        "\tdev_set_uevent_suppress(&udev->dev, 1);\n\tdevice_del(&udev->dev);\n\n\t/* Free the device number",
        ("removed announced", "uevent|announced"),
    ),
    mutant(
        "max_sectors_later",
        "sd splits the requests to a disk that came back into 4 KiB",
        _SD,
        "\tsdkp->first_scan = 0;\n",
        "\t{\n" + AFTER_RETURN.format(first="sdkp->first_scan && ", disks=3) + "\t\t\tq->limits.max_sectors = 8;\n\t}\n"
        "\tsdkp->first_scan = 0;\n",
        ("same_properties", "request"),
    ),
    mutant(
        "survivor_cache_off",
        "sd forgets the write cache of all other disks when it removes one",
        _SD,
        REMOVE,
        to_others("blk_queue_write_cache(other->disk->queue, false, false);\n"),
        ("undisturbed same_properties", "write cache"),
        more=REMEMBERED,
    ),
    mutant(
        "stale_read",
        "answers every 30th read with the start of an earlier one, once a disk was unplugged",
        _TRANSPORT,
        _GOOD,
        "\tif (plugpull_until && srb->cmnd[0] == READ_10 && scsi_bufflen(srb) >= 4096) {\n"
        "\t\tstatic u8 old[4096];\n\n"
        "\t\tif (++plugpull_writes % 30 == 0)\n"
        "\t\t\tsg_copy_from_buffer(scsi_sglist(srb), scsi_sg_count(srb), old, 4096);\n"
        "\t\telse\n\t\t\tsg_copy_to_buffer(scsi_sglist(srb), scsi_sg_count(srb), old, 4096);\n\t}\n" + _GOOD,
        (_DATA, "wrong|lost|bad|lacks|stale|misdirected"),
        "while_reading",
    ),
    mutant(
        "tail_lost",
        "answers writes to the last 8 blocks of a disk without sending them",
        _TRANSPORT,
        SENT,
        "\tif (srb->cmnd[0] == WRITE_10 && scsi_cmd_to_rq(srb)->q->disk &&\n"
        "\t    be32_to_cpup((__be32 *)&srb->cmnd[2]) + 8 >=\n"
        "\t    scsi_disk(scsi_cmd_to_rq(srb)->q->disk)->capacity) {\n"
        "\t\tsrb->result = SAM_STAT_GOOD;\n\t\treturn;\n\t}\n" + SENT,
        (_DATA, "wrong|lost|bad|lacks|stale|misdirected"),
        "five_power_cuts",
    ),
    mutant(
        "log_flooded",
        "logs 2,000 errors of a disk that is unplugged",
        _USB,
        DISCONNECT,
        "\t{\n\t\tint i;\n\n\t\tfor (i = 0; i < 2000; i++)\n"
        '\t\t\tdev_err(&intf->dev, "cannot resubmit urb, status -19\\n");\n\t}\n' + DISCONNECT,
        ("kernel_clean", "resubmit"),
    ),
    mutant(
        "returned_disk_slow",
        "waits 0.15 s before it reads or writes a disk that came back",
        _USB,
        SCAN,
        SCAN + "\tif (plugpull_until)\n\t\tus->fflags |= BIT_ULL(60);\n",
        ("answered returned", "slower"),
        more=(
            (
                "transport.c",
                SENT,
                "\tif ((us->fflags & BIT_ULL(60)) && (srb->cmnd[0] == READ_10 || srb->cmnd[0] == WRITE_10))\n"
                "\t\tmsleep(150);\n" + SENT,
            ),
        ),
    ),
)
