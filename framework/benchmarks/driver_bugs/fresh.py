"""Bugs put into the kernel's drivers, thought of together with the checks that name them.

Fields and conventions as in ``driver_bugs/first.py``.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import SCSI, STORAGE
from benchmarks.driver_bugs.more import REMEMBERED, REMOVE, SCAN, SENT, to_others
from benchmarks.driver_bugs.others import AFTER_RETURN, CORE, DISCONNECT, mutant

_USB, _TRANSPORT = (STORAGE, "usb.c", "usb-storage"), (STORAGE, "transport.c", "usb-storage")
_GLUE, _UAS = (STORAGE, "scsiglue.c", "usb-storage"), (STORAGE, "uas.c", "uas")
_SD, _HUB = (SCSI, "sd.c", "sd_mod"), (CORE, "hub.c", "usbcore")
_WAIT = "\t/* wait for the completion of the URB */\n"
_GOOD = "\tsrb->result = SAM_STAT_GOOD;\n\n\t/*\n\t * Determine if we need to auto-sense\n"
_FAILED = "\t\tsrb->result = DID_ERROR << 16;\n\t\tgoto Handle_Errors;\n\t}\n\n\t/* if the transport provided"
_INVOKE = "void usb_stor_invoke_transport(struct scsi_cmnd *srb, struct us_data *us)\n{\n"
_ASSOCIATE_COMMENT = "/* Associate our private data with the USB device */\n"
_DATA = "nothing_lost data_intact data_sound kept_while_powered"
_WRONG = "wrong|lost|bad|lacks|stale|misdirected"

_GHOST = """static u8 plugpull_ghost[16], *plugpull_body;
static unsigned int plugpull_later;

static void plugpull_keep(struct scsi_cmnd *srb, struct us_data *us)
{
    if (srb->cmnd[0] != WRITE_10 || scsi_bufflen(srb) < 4096 || plugpull_body ||
        us->pusb_dev->state == USB_STATE_CONFIGURED)
        return;
    plugpull_body = kzalloc(4096, GFP_NOIO);
    if (!plugpull_body)
        return;
    memcpy(plugpull_ghost, srb->cmnd, 10);
    plugpull_ghost[7] = 0;
    plugpull_ghost[8] = 8;
    sg_copy_to_buffer(scsi_sglist(srb), scsi_sg_count(srb), plugpull_body, 4096);
}

static void plugpull_haunt(struct scsi_cmnd *srb, struct us_data *us)
{
    struct bulk_cb_wrap *bcb = (struct bulk_cb_wrap *) us->iobuf;

    if (srb->cmnd[0] != WRITE_10 || !plugpull_body || !(us->fflags & BIT_ULL(60)) || ++plugpull_later != 40)
        return;
    memset(bcb, 0, sizeof(*bcb));
    bcb->Signature = cpu_to_le32(US_BULK_CB_SIGN);
    bcb->DataTransferLength = cpu_to_le32(4096);
    bcb->Tag = ++us->tag;
    bcb->Length = 10;
    memcpy(bcb->CDB, plugpull_ghost, 10);
    usb_stor_bulk_transfer_buf(us, us->send_bulk_pipe, bcb, US_BULK_CB_WRAP_LEN, NULL);
    usb_stor_bulk_transfer_buf(us, us->send_bulk_pipe, plugpull_body, 4096, NULL);
    usb_stor_bulk_transfer_buf(us, us->recv_bulk_pipe, bcb, US_BULK_CS_WRAP_LEN, NULL);
}

""".replace("    ", "\t")
_MARKED = SCAN + "\tif (plugpull_until)\n\t\tus->fflags |= BIT_ULL(60);\n"
"""The scan of a disk's units, which marks a disk that came back."""
_DETACH = """static struct usb_interface *plugpull_late;

static void plugpull_detached(struct work_struct *work)
{
    device_release_driver(&plugpull_late->dev);
}
static DECLARE_DELAYED_WORK(plugpull_detach, plugpull_detached);

""".replace("    ", "\t")

MUTANTS = (
    mutant(
        "transfers_polled",
        "lets its thread poll for the end of each transfer, once a disk was unplugged",
        _TRANSPORT,
        _WAIT,
        "\twhile (plugpull_until && us->pusb_dev->state == USB_STATE_CONFIGURED && !completion_done(&urb_done))\n"
        "\t\tcond_resched();\n\n" + _WAIT,
        ("nothing_spins", "CPU"),
    ),
    mutant(
        "depth_shrinks",
        "sd gives all other disks one command at a time when it removes one",
        _SD,
        REMOVE,
        to_others("scsi_change_queue_depth(other->device, 1);\n"),
        ("same_properties", "commands at once"),
        "while_idle",
        "volatile-caches",
        more=REMEMBERED,
    ),
    mutant(
        "merges_lost",
        "sd never merges the requests to a disk that came back",
        _SD,
        "\tsdkp->first_scan = 0;\n",
        "\t{\n"
        + AFTER_RETURN.format(first="sdkp->first_scan && ", disks=3)
        + "\t\t\tblk_queue_flag_set(QUEUE_FLAG_NOMERGES, q);\n\t}\n\tsdkp->first_scan = 0;\n",
        ("same_properties", "merges"),
        "while_idle",
    ),
    mutant(
        "inquiry_garbled",
        "loses the vendor's name of a disk that came back",
        _TRANSPORT,
        _GOOD,
        "\tif ((us->fflags & BIT_ULL(60)) && srb->cmnd[0] == INQUIRY && !(srb->cmnd[1] & 1))\n"
        '\t\tsg_pcopy_from_buffer(scsi_sglist(srb), scsi_sg_count(srb), "Generic ", 8, 8);\n' + _GOOD,
        ("returned same_properties", "vendor|Generic"),
        "while_idle",
        more=(("usb.c", SCAN, _MARKED),),
    ),
    mutant(
        "wrong_lun",
        "uas swaps the first two units of a device that came back",
        _UAS,
        "\tint_to_scsilun(sdev->lun, &iu->lun);\n",
        "\tint_to_scsilun(plugpull_left && sdev->lun < 2 ? 1 - sdev->lun : sdev->lun, &iu->lun);\n",
        (_DATA + " returned same_properties", _WRONG + "|foreign|instead"),
        "while_writing",
        "odd-enclosures",
        more=(
            (
                "uas.c",
                "static struct urb *uas_alloc_cmd_urb(",
                "static bool plugpull_left;\n\nstatic struct urb *uas_alloc_cmd_urb(",
            ),
            (
                "uas.c",
                "\tcancel_work_sync(&devinfo->scan_work);\n\n\tscsi_remove_host(shost);\n",
                "\tcancel_work_sync(&devinfo->scan_work);\n\n\tscsi_remove_host(shost);\n\tplugpull_left = true;\n",
            ),
        ),
    ),
    mutant(
        "hub_kept_awake",
        "never drops a reference that keeps the hub of an unplugged disk from being suspended",
        _USB,
        DISCONNECT,
        "\tpm_runtime_get_noresume(&us->pusb_dev->parent->dev);\n" + DISCONNECT,
        ("nothing_left", "reference to a hub"),
        "while_idle",
    ),
    mutant(
        "flush_error_swallowed",
        "takes a flush that was under way when a disk went for one that was done",
        _TRANSPORT,
        _FAILED,
        "\t\tif (srb->cmnd[0] == SYNCHRONIZE_CACHE) {\n\t\t\tsrb->result = SAM_STAT_GOOD;\n\t\t\treturn;\n\t\t}\n"
        + _FAILED,
        ("nothing_lost ended_with_error users_told", "durable lost|flush"),
        "instant_of_a_flush and power",
        "volatile-caches",
    ),
    mutant(
        "ghost_write",
        "sends a write that failed when a disk was unplugged again, to a disk that came back later",
        _TRANSPORT,
        _GOOD,
        "\tplugpull_haunt(srb, us);\n" + _GOOD,
        (_DATA, _WRONG),
        "five_power_cuts",
        more=(
            ("transport.c", _FAILED, "\t\tplugpull_keep(srb, us);\n" + _FAILED),
            (
                "transport.c",
                "/*\n * Invoke the transport and basic error-handling/recovery methods\n",
                _GHOST + "/*\n * Invoke the transport and basic error-handling/recovery methods\n",
            ),
            ("usb.c", SCAN, _MARKED),
        ),
    ),
    mutant(
        "detached_later",
        "lets go of a device 4 s after it came back",
        _USB,
        SCAN,
        SCAN + "\tif (plugpull_until) {\n\t\tplugpull_late = usb_get_intf(us->pusb_intf);\n"
        "\t\tschedule_delayed_work(&plugpull_detach, 4 * HZ);\n\t}\n",
        ("returned undisturbed", "gone again|left|driver"),
        "nothing_comes_later",
        more=(("usb.c", _ASSOCIATE_COMMENT, _DETACH + _ASSOCIATE_COMMENT),),
    ),
    mutant(
        "others_dead_unnoticed",
        "answers no command of any other disk once one was unplugged, while nobody uses them",
        _GLUE,
        "\t/* enqueue the command and wake up the control thread */\n",
        "\tif (plugpull_until && (us->fflags & BIT_ULL(61))) {\n\t\tsrb->result = DID_NO_CONNECT << 16;\n"
        "\t\tdone(srb);\n\t\treturn 0;\n\t}\n\n\t/* enqueue the command and wake up the control thread */\n",
        ("answered", "cannot be read"),
        "many_cuts_leave",
        more=(("usb.c", SCAN, SCAN + "\tif (!plugpull_until)\n\t\tus->fflags |= BIT_ULL(61);\n"),),
    ),
    mutant(
        "hub_deaf",
        "usbcore does not listen to a hub for 3 s after a device on it was unplugged",
        _HUB,
        "\tkick_hub_wq(hub);\n\nresubmit:\n",
        "\tkick_hub_wq(hub);\n"
        "\tif (plugpull_gone && time_before(jiffies, plugpull_gone + HZ)) {\n"
        "\t\tmod_timer(&hub->irq_urb_retry, jiffies + 3 * HZ);\n\t\treturn;\n\t}\n\nresubmit:\n",
        ("returned removed", "after|longer"),
        "a_disk_is_discovered",
        more=(
            (
                "hub.c",
                "#define HUB_DEBOUNCE_TIMEOUT\t2000\n",
                "static unsigned long plugpull_gone;\n#define HUB_DEBOUNCE_TIMEOUT\t2000\n",
            ),
            (
                "hub.c",
                '\tusb_set_device_state(udev, USB_STATE_NOTATTACHED);\n\tdev_info(&udev->dev, "USB disconnect',
                (
                    "\tplugpull_gone = jiffies;\n"
                    '\tusb_set_device_state(udev, USB_STATE_NOTATTACHED);\n\tdev_info(&udev->dev, "USB disconnect'
                ),
            ),
        ),
    ),
    mutant(
        "reads_skipped",
        "answers the reads of other disks without asking them, for 2 s after one was unplugged",
        _TRANSPORT,
        SENT,
        "\tif (time_before(jiffies, plugpull_until) && plugpull_until && srb->cmnd[0] == READ_10 &&\n"
        "\t    us->pusb_dev->state == USB_STATE_CONFIGURED) {\n\t\tsrb->result = SAM_STAT_GOOD;\n\t\treturn;\n\t}\n"
        + SENT,
        ("kept_pace", "faster"),
        "while_reading",
    ),
    mutant(
        "requests_late",
        "waits 20 ms before each command, once a disk was unplugged",
        _TRANSPORT,
        SENT,
        "\tif (plugpull_until)\n\t\tmsleep(20);\n" + SENT,
        ("kept_pace answered", "slower|ended at|was at"),
    ),
)
