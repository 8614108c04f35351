"""Bugs put into SCSI's error handler and the drivers' part of it: aborts, resets, and what becomes of the commands.

Fields and conventions as in ``driver_bugs/first.py``. The scenarios with a disk that stands still find them.
"""

from __future__ import annotations

from benchmarks.driver_bugs.first import SCSI, STORAGE
from benchmarks.driver_bugs.others import mutant

_GLUE, _TRANSPORT = (STORAGE, "scsiglue.c", "usb-storage"), (STORAGE, "transport.c", "usb-storage")
_UAS, _ERROR = (STORAGE, "uas.c", "uas"), (SCSI, "scsi_error.c", "scsi_mod")
_ONCE, _AGAIN = "a_command_is_not_answered and not again", "sent_again"
_RETRY = (
    "\tif (!scsi_noretry_cmd(scmd) &&\n\t    scsi_cmd_retry_allowed(scmd) &&\n\t    scsi_eh_should_retry_cmd(scmd)) {\n"
)
_RESET = "\tmutex_unlock(&us->dev_mutex);\n\tresult = usb_stor_port_reset(us);\n"

MUTANTS = (
    mutant(
        "abort_unended",
        "says that a command was aborted, and does nothing",
        _GLUE,
        "\treturn command_abort_matching(us, srb);\n",
        "\treturn us ? SUCCESS : command_abort_matching(us, srb);\n",
        ("recovered nothing_blocked answered", "did not reset|completed no|blocked|completed nothing"),
        _ONCE,
    ),
    mutant(
        "device_reset_locked",
        "keeps the lock of a disk when its reset is over",
        _GLUE,
        "\tresult = us->transport_reset(us);\n\tmutex_unlock(&us->dev_mutex);\n",
        "\tresult = us->transport_reset(us);\n",
        ("recovered nothing_blocked answered", "recovery|completed no|blocked|completed nothing"),
        _AGAIN,
    ),
    mutant(
        "reset_again_and_again",
        "resets the port of a disk six times when a command was aborted",
        _TRANSPORT,
        _RESET,
        "\tmutex_unlock(&us->dev_mutex);\n"
        "\tfor (result = 0; result < 5; result++)\n\t\tusb_stor_port_reset(us);\n\tresult = usb_stor_port_reset(us);\n",
        ("recovered", "times|worked only"),
        _ONCE,
    ),
    mutant(
        "abort_slow",
        "waits 4 s before it sends an aborted command again",
        _ERROR,
        _RETRY,
        "\tmsleep(4000);\n" + _RETRY,
        ("recovered answered", "worked only|completed nothing"),
        _ONCE,
    ),
    mutant(
        "aborted_not_sent_again",
        "reports a command that was aborted as failed, and does not send it again",
        _ERROR,
        _RETRY,
        "\tif (0) {\n",
        ("users_told no_errors undisturbed recovered", "error|errno"),
        _ONCE,
    ),
    mutant(
        "aborted_is_done",
        "reports a command that was aborted as done",
        _ERROR,
        _RETRY,
        "\tif (1) {\n\t\tscmd->result = 0;\n\t\tscsi_set_resid(scmd, 0);\n\t\tscsi_finish_command(scmd);\n\t} else "
        + _RETRY.lstrip("\t"),
        ("data_intact data_sound nothing_lost kept_while_powered", "wrong|bad|stale|lost|lacks|does not hold"),
        _ONCE,
        "volatile-caches",
    ),
    mutant(
        "never_given_up",
        "waits again for a command that timed out, for ever",
        _ERROR,
        "\tif (rtn == BLK_EH_DONE) {\n",
        "\tif (rtn == BLK_EH_DONE)\n\t\treturn BLK_EH_RESET_TIMER;\n\tif (rtn == BLK_EH_DONE) {\n",
        ("recovered", "did not reset"),
        _ONCE,
    ),
    mutant(
        "host_not_restarted",
        "leaves a host in recovery when its error handler is done",
        _ERROR,
        "\tif (scsi_host_set_state(shost, SHOST_RUNNING))\n\t\tif (scsi_host_set_state(shost, SHOST_CANCEL))\n",
        "\tif (shost->shost_state != SHOST_RECOVERY && scsi_host_set_state(shost, SHOST_RUNNING))\n"
        "\t\tif (scsi_host_set_state(shost, SHOST_CANCEL))\n",
        ("recovered answered nothing_blocked", "recovery|completed no|blocked"),
        _AGAIN,
    ),
    mutant(
        "offline_at_once",
        "takes a disk out of service when an abort was not enough, without a reset",
        _ERROR,
        "\tif (!scsi_eh_get_sense(&eh_work_q, &eh_done_q))\n\t\tscsi_eh_ready_devs(",
        "\tif (!scsi_eh_get_sense(&eh_work_q, &eh_done_q))\n\t\tscsi_eh_offline_sdevs(&eh_work_q, &eh_done_q);\n"
        "\tif (0)\n\t\tscsi_eh_ready_devs(",
        ("recovered undisturbed same_properties users_told", "offline|error|state"),
        _AGAIN,
    ),
    mutant(
        "another_command_dropped",
        "uas forgets another command as well when it aborts one",
        _UAS,
        "\tdevinfo->cmnd[cmdinfo->uas_tag - 1] = NULL;\n\tif (cmdinfo->state & DATA_IN_URB_INFLIGHT)\n\t\tdata_in",
        "\tdevinfo->cmnd[cmdinfo->uas_tag - 1] = NULL;\n\tdevinfo->cmnd[cmdinfo->uas_tag % devinfo->qdepth] = NULL;\n"
        "\tif (cmdinfo->state & DATA_IN_URB_INFLIGHT)\n\t\tdata_in",
        ("recovered answered nothing_blocked", "completed no|recovery|blocked|worked only"),
        _AGAIN,
        "uas",
    ),
    mutant(
        "reset_never_over",
        "uas takes no command any more when it has reset a disk",
        _UAS,
        "\tdevinfo->resetting = 0;\n\tspin_unlock_irqrestore(&devinfo->lock, flags);\n\n\tusb_unlock_device(udev);\n",
        "\tspin_unlock_irqrestore(&devinfo->lock, flags);\n\n\tusb_unlock_device(udev);\n",
        ("recovered answered nothing_blocked undisturbed", "completed no|recovery|blocked|worked only|offline"),
        _ONCE,
        "uas",
    ),
)
