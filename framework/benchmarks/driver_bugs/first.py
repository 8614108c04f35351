"""Bugs put into the kernel's drivers, and what a run on them has to say.

Each replaces one piece of a source file of Linux 6.1 (GPL-2.0) by another; the piece must be there exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass

STORAGE, SCSI = "drivers/usb/storage", "drivers/scsi"


@dataclass(frozen=True)
class Mutant:
    """``old`` becomes ``new`` in ``file`` of ``folder``, of which ``module`` is built.

    ``bug`` says what is wrong in a clause; ``scenario`` is what finds it (pytest's ``-k``); one finding must come from
    one of ``checks`` and have one of ``words`` in its summary or evidence.
    """

    name: str
    bug: str
    folder: str
    file: str
    module: str
    old: str
    new: str
    scenario: str
    checks: tuple[str, ...]
    words: tuple[str, ...]
    rig: str = "quick"
    more: tuple[tuple[str, str, str], ...] = ()
    """Further (file, old, new), where a bug has two ends."""


_DISCONNECT = "\tquiesce_and_remove_host(us);\n\trelease_everything(us);\n}\nEXPORT_SYMBOL_GPL(usb_stor_disconnect);"
_UAS_GONE = (
    "\tscsi_remove_host(shost);\n\tuas_free_streams(devinfo);\n\tscsi_host_put(shost);\n}\n\n/*\n * Put the device back"
)
_TRANSPORT = (
    "\t/* send the command to the transport layer */\n\tscsi_set_resid(srb, 0);\n\tresult = us->transport(srb, us);\n"
)
_QUEUE = "\t/* enqueue the command and wake up the control thread */\n"


def _storage(
    name: str,
    bug: str,
    old: str,
    new: str,
    checks: str,
    words: str,
    file: str = "usb.c",
    scenario: str = "while_writing",
    rig: str = "quick",
) -> Mutant:
    found = tuple(checks.split()), tuple(words.split("|"))
    return Mutant(name, bug, STORAGE, file, "usb-storage", old, new, scenario, *found, rig)


MUTANTS = (
    _storage(
        "host_leaked",
        "never drops its reference to the SCSI host of a disk that is unplugged",
        "\tscsi_host_put(us_to_host(us));\n}\n\n/* Delayed-work routine",
        "}\n\n/* Delayed-work routine",
        "nothing_left",
        "removed, not freed",
    ),
    _storage(
        "disconnect_slow",
        "sleeps for 9 s in disconnect",
        _DISCONNECT,
        "\tmsleep(9000);\n" + _DISCONNECT,
        "removed nothing_blocked",
        "after|blocked",
    ),
    _storage(
        "disconnect_hangs",
        "waits for ever in disconnect",
        _DISCONNECT,
        "\t{\n\t\tDECLARE_WAIT_QUEUE_HEAD_ONSTACK(never);\n\t\twait_event(never, !us);\n\t}\n" + _DISCONNECT,
        "nothing_blocked kernel_clean",
        "usb_stor_disconnect|hub_event|usb_hub_wq",
    ),
    _storage(
        "disconnect_oops",
        "follows a null pointer in disconnect",
        _DISCONNECT,
        "\t*(volatile int *)8 = 1;\n" + _DISCONNECT,
        "kernel_clean",
        "NULL pointer dereference|Oops",
    ),
    _storage(
        "disconnect_spins",
        "spins for 30 s with preemption off in disconnect",
        _DISCONNECT,
        "\t{\n\t\tint i;\n\n\t\tpreempt_disable();\n\t\tfor (i = 0; i < 30000; i++)\n\t\t\tmdelay(1);\n"
        "\t\tpreempt_enable();\n\t}\n" + _DISCONNECT,
        "kernel_clean",
        "lockup|stall|stuck",
    ),
    _storage(
        "disconnect_warns",
        "warns in disconnect",
        _DISCONNECT,
        '\tWARN(1, "usb-storage: host still busy");\n' + _DISCONNECT,
        "kernel_clean",
        "WARNING",
    ),
    _storage(
        "node_kept",
        "does not remove the SCSI host of a disk that is unplugged",
        "\tscsi_remove_host(host);\n\n\t/*\n\t * Prevent any new commands",
        "\tscsi_block_requests(host);\n\n\t/*\n\t * Prevent any new commands",
        "removed nothing_left nothing_blocked",
        "still on the kernel's list|left over|blocked",
    ),
    _storage(
        "survivors_stall",
        "lets every disk wait for 4 s once one was unplugged",
        _TRANSPORT,
        "\tif (plugpull_until && time_before(jiffies, plugpull_until))\n\t\tmsleep(4000);\n\n" + _TRANSPORT,
        "kept_pace",
        "stood still",
        file="transport.c",
    ),
    _storage(
        "survivors_slow",
        "waits 0.1 s before every command once a disk was unplugged",
        _TRANSPORT,
        "\tif (plugpull_until)\n\t\tmsleep(100);\n\n" + _TRANSPORT,
        "kept_pace",
        "get back|ended at|of its baseline",
        file="transport.c",
    ),
    _storage(
        "writes_lost",
        "answers every fifth write of the others without sending it, once one disk was unplugged",
        _TRANSPORT,
        "\tif (plugpull_until && srb->cmnd[0] == 0x2a && us->pusb_dev->state == USB_STATE_CONFIGURED &&\n"
        "\t    ++plugpull_writes % 5 == 0) {\n\t\tsrb->result = SAM_STAT_GOOD;\n\t\treturn;\n\t}\n\n" + _TRANSPORT,
        "nothing_lost data_intact data_sound kept_while_powered",
        "wrong sectors|lost|stale|bad|lacks",
        file="transport.c",
    ),
    _storage(
        "error_swallowed",
        "answers commands to a disk that is gone as if they had been done",
        '\t\tusb_stor_dbg(us, "Fail command during disconnect\\n");\n\t\tsrb->result = DID_NO_CONNECT << 16;\n',
        '\t\tusb_stor_dbg(us, "Fail command during disconnect\\n");\n\t\tsrb->result = SAM_STAT_GOOD;\n',
        "users_told ended_with_error nothing_lost data_intact data_sound",
        "without an error|never given|wrong sectors|lost",
        file="scsiglue.c",
    ),
    Mutant(
        "uas_host_leaked",
        "uas never drops its reference to the SCSI host of a disk that is unplugged",
        STORAGE,
        "uas.c",
        "uas",
        _UAS_GONE,
        _UAS_GONE.replace("\tscsi_host_put(shost);\n", ""),
        "while_writing",
        ("nothing_left",),
        ("removed, not freed",),
        "uas",
    ),
    Mutant(
        "uas_disconnect_slow",
        "uas sleeps for 6 s in disconnect",
        STORAGE,
        "uas.c",
        "uas",
        _UAS_GONE,
        "\tmsleep(6000);\n" + _UAS_GONE,
        "while_writing",
        ("removed", "nothing_blocked"),
        ("after", "blocked"),
        "uas",
    ),
    Mutant(
        "uas_requests_kept",
        "uas forgets the requests that were in flight when a disk is unplugged",
        STORAGE,
        "uas.c",
        "uas",
        "\tuas_zap_pending(devinfo, DID_NO_CONNECT);\n\n\t/*\n\t * Prevent SCSI scanning",
        "\t/*\n\t * Prevent SCSI scanning",
        "while_writing",
        ("removed", "nothing_blocked", "kernel_clean", "nothing_stuck", "ended_with_error", "users_told"),
        ("after", "blocked", "still on", "could not be ended", "error"),
        "uas",
    ),
    Mutant(
        "sd_index_leaked",
        "sd never frees the name of a disk that is gone",
        SCSI,
        "sd.c",
        "sd_mod",
        "\tida_free(&sd_index_ida, sdkp->index);\n\tsd_zbc_free_zone_info(sdkp);\n",
        "\tsd_zbc_free_zone_info(sdkp);\n",
        "while_writing",
        ("returned", "same_properties"),
        ("although nothing held its name", "name"),
    ),
    Mutant(
        "sd_flush_skipped",
        "sd answers a flush without sending it to the disk",
        SCSI,
        "sd.c",
        "sd_mod",
        "\tcmd->cmnd[0] = SYNCHRONIZE_CACHE;\n\tcmd->cmd_len = 10;\n\tcmd->transfersize = 0;\n",
        "\tcmd->cmnd[0] = TEST_UNIT_READY;\n\tcmd->cmd_len = 6;\n\tcmd->transfersize = 0;\n",
        "five_power_cuts",
        ("nothing_lost",),
        ("durable lost",),
        "volatile-caches",
    ),
)

PREAMBLE = {
    "usb.h": (
        "struct us_data;\n",
        (
            "#include <linux/delay.h>\n#include <linux/mutex.h>\n"
            "extern unsigned long plugpull_until;\nextern struct mutex plugpull_lock;\n\nstruct us_data;\n"
        ),
    ),
    "transport.c": (
        "void usb_stor_invoke_transport(struct scsi_cmnd *srb, struct us_data *us)\n{\n",
        (
            "unsigned long plugpull_until;\nDEFINE_MUTEX(plugpull_lock);\nstatic unsigned int plugpull_writes;\n\n"
            "void usb_stor_invoke_transport(struct scsi_cmnd *srb, struct us_data *us)\n{\n"
            "\t(void)plugpull_writes;\n"
        ),
    ),
    "usb.c": (
        "void usb_stor_disconnect(struct usb_interface *intf)\n{\n\tstruct us_data *us = usb_get_intfdata(intf);\n",
        (
            "void usb_stor_disconnect(struct usb_interface *intf)\n{\n\tstruct us_data *us = usb_get_intfdata(intf);\n"
            "\n\tplugpull_until = jiffies + 2 * HZ;\n"
        ),
    ),
    "uas.c": ("static void uas_disconnect(", "#include <linux/delay.h>\nstatic void uas_disconnect("),
}
"""What is put into a file besides, whatever the bug: what remembers that a disk was unplugged."""
