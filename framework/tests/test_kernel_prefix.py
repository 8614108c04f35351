"""Every decoration that programs, people and web pages put before a kernel message, and the lines that only look so."""

from __future__ import annotations

import json

import pytest

from plugpull.kernel.catalogue.classify import classify
from plugpull.kernel.catalogue.prefix import level_of, second_message, split_prefix, time_of

MESSAGE = "sd 2:0:0:0: [sdb] tag#1 FAILED Result: hostbyte=DID_OK"

MARKS = (
    "marks that no program writes",
    "a logger without a tag",
    "a time with slashes",
    "a level in words",
    "a file's name",
    "a number and arrows",
    "syslog without a tag",
    "a logger of a program's",
)
"""Prefixes behind which only a message that names a driver and a device is certainly the kernel's."""
PREFIXES = {
    "none": "",
    "dmesg": "[   12.345678] ",
    "dmesg, its time shortened by a person": "[12.3...] ",
    "the same, made unrecognisable": "[   12.xxxxxx] ",
    "dmesg, pasted without its first bracket": "  12.345678] ",
    "dmesg, its spaces encoded by a mail program": "[=C2=A0  12.345678] ",
    "the same, in Latin-1": "[=A0 12.345678] ",
    "dmesg -d": "[  +0.000123] ",
    "dmesg -d, comma": "[ +18,993611] ",
    "dmesg --reltime": "[Nov12 13:45] ",
    "dmesg --reltime, a day below ten": "[Nov 2 13:45] ",
    "dmesg -x": "kern  :err   : [   12.345678] ",
    "dmesg -x -T": "kern  :warn  : [Mon Nov 12 13:45:01 2024] ",
    "dmesg -x -t": "kern  :err   : ",
    "dmesg --time-format=iso": "2024-11-12T13:45:01,123456+01:00 ",
    "dmesg -x --time-format=iso": "kern  :info  : 2024-11-12T13:45:01,123456+01:00 ",
    "dmesg -T": "[Mon Nov 12 13:45:01 2024] ",
    "dmesg -T, German": "[Mo Nov 12 13:45:01 2024] ",
    "dmesg -T, French": "[mar. nov. 12 13:45:01 2024] ",
    "dmesg -T, Spanish": "[lun. 12 nov. 2024 13:45:01] ",
    "dmesg -T, Russian": "[Пн ноя 12 13:45:01 2024] ",
    "dmesg -T, Japanese": "[月 11月 12 13:45:01 2024] ",
    "level": "<3>",
    "level and time": "<3>[   12.345678] ",
    "/dev/kmsg": "3,1234,12345678,-;",
    "CONFIG_PRINTK_CALLER": "[   12.345678][  T123] ",
    "CONFIG_PRINTK_CALLER, CPU": "[   12.345678][    C0] ",
    "MediaTek": "[   12.345678] (1)[123:kworker/u8:0]",
    "MediaTek, level": "<3>[   12.345678]-(0)[1:swapper/0]",
    "Samsung": "[   12.345678]I[0: swapper/0:    1] ",
    "Qualcomm": "[   12.345678] c0 123 ",
    "Amlogic": "[   12.345678@0] ",
    "syslog": "Nov  2 13:45:01 host kernel: [   12.345678] ",
    "syslog, its host made unrecognisable": "Nov  2 13:45:01 *** kernel: ",
    "syslog, its host replaced": "Nov  2 13:45:01 <hostname> kernel: ",
    "a list of things to do": "    - [ ] ",
    "syslog without time stamps": "Nov 12 13:45:01 host kernel: ",
    "syslog with the colon of a time stamp that is switched off": "Nov 12 13:45:01 host kernel: : ",
    "syslog, its host removed": "Nov  2 13:45:01  kernel: ",
    "a report's columns": "        host      kernel: ",
    "syslog, German": "Okt 12 13:45:01 host kernel: ",
    "syslog, French": "déc. 12 13:45:01 host kernel: ",
    "syslog, Hungarian": "júl 06 13:45:01 host kernel: ",
    "syslog, Norwegian": "jan. 29 13:45:01 host kernel: ",
    "syslog, Japanese": "11月 12 13:45:01 host kernel: ",
    "dmesg --show-delta": "[   12.345678 <    0.000012>] ",
    "journalctl -o short-delta": "[   12.345678 <    0.000012 >] host kernel: ",
    "dmesg, with a tab": "[\t12.345678] ",
    "dmesg, with a colon": "[   12.345678]: ",
    "a container's log": "2024-11-12T13:45:01Z stdout F [   12.345678] ",
    "colours that lost their first character": "[0;33m[   12.345678] [0m",
    "mail, quoted many times": "> > > > > > > > > > [   12.345678] ",
    "marked by a person": "> !  ",
    "marked with an arrow": "=> [   12.345678] ",
    "dmesg, with a space too many": "[   12.345678 ] ",
    "BBCode": "[TD][FONT=Helvetica Neue][COLOR=#000000][FONT=&amp][   12.345678] ",
    "a comment of a script": "# [   12.345678] ",
    "a mail quoted with its writer's name": "> > Turner> ",
    "BusyBox syslogd": "Nov 12 13:45:01 host user.err kernel: [   12.345678] ",
    "OpenWrt logread": "Mon Nov 12 13:45:01 2024 kern.err kernel: [   12.345678] ",
    "rsyslog": "2024-11-12T13:45:01.123456+01:00 host kernel: [   12.345678] ",
    "RFC 5424": "<3>1 2024-11-12T13:45:01.123456+01:00 host kernel - - - ",
    "journalctl": "Nov 12 13:45:01 host kernel: ",
    "journalctl -o short-precise": "Nov 12 13:45:01.123456 host kernel: ",
    "journalctl -o short-iso": "2024-11-12T13:45:01+0100 host kernel: ",
    "journalctl -o short-full": "Mon 2024-11-12 13:45:01 CET host kernel: ",
    "journalctl -o short-monotonic": "[   12.345678] host kernel: ",
    "journalctl -o short-unix": "1472135.642000 host kernel: ",
    "journalctl -o verbose": "    MESSAGE=",
    "talosctl dmesg": "192.168.2.36: kern:    info: [2022-10-19T13:45:04.127208127Z]: ",
    "a console's logger": "[2024-11-12 13:45:01.123] [   12.345678] ",
    "a console's logger, UTC": "2024-11-12T13:45:01.123456Z [   12.345678] ",
    "a line of another program without an end": "Starting udev... [   12.345678] ",
    "a shell's prompt": "root@board:~# [   12.345678] ",
    "a shell's prompt, levels": "root@board:~# <3>",
    "a login prompt, levels": "board login: <3>[   12.345678] ",
    "a table": "\u2502 Nov 12 13:45:01 host kernel: ",
    "dmesg --reltime, German": "[12. Nov 13:45] ",
    "a login prompt": "board login: [   12.345678] ",
    "another guest's console": "[guest0/uart0] [   12.345678] ",
    "wall": " kernel:[   12.345678] ",
    "wall without a time stamp": " kernel:",
    "mail": "> ",
    "mail, twice quoted": "> > [   12.345678] ",
    "Markdown": "`[   12.345678] ",
    "a Markdown fence": "```[   12.345678] ",
    "a list": "- [   12.345678] ",
    "a list without time stamps": "* ",
    "a numbered list": "2. [   12.345678] ",
    "grep": "/var/log/kern.log.1:Nov 12 13:45:01 host kernel: ",
    "grep -n": "1234:Nov  2 13:45:01 host kernel: [   12.345678] ",
    "grep -A": "kern.log-Nov 12 13:45:01 host kernel: ",
    "a report's findings by file": "- reports/boot_12/usb_io.txt: Nov 12 13:45:01 host kernel: ",
    "escaped for a web page": "&gt; &lt;3&gt;[   12.345678] ",
    "metalog": "Nov 12 13:45:01 [kernel] ",
    "logcat -b kernel": "11-12 13:45:01.123     0     0 E ",
    "logcat of an old kernel": "11-12 13:45:01.123 W/KERNEL  (    0): ",
    "Samsung, colon in a name": "[   12.345678]  [3:crtc_commit:138:  530] ",
    "Amlogic, dash": "[   12.345678@2]- ",
    "marks that no program writes": "@@ ~ ",
    "the end of a first line's time": "345678] ",
    "the end of a first line's time, with its point": ".345678] ",
    "a logger without a tag": "12:01:33.123 host02 kern.err ",
    "a time with slashes": "2024/01/02 10:11:12 host kernel ",
    "a level in words": "[WARN] ",
    "a file's name": "console.log: ",
    "a number and arrows": "  #12 >> ",
    "syslog without a tag": "Jan 02 10:11:12 nas ",
    "kmsg": "kmsg: ",
    "a router's": "2019-01-01 00:00:12 User.Notice 192.168.1.1 kernel: ",
    "a logger of a program's": "10:11:12 INFO - kernel - ",
    "colours": "\x1b[32m[   12.345678] \x1b[0m\x1b[33m",
    "colours, their first character written out": "^[[32m[   12.345678] ^[[0m",
    "colours, as JSON has them": "\\u001b[32m[   12.345678] \\u001b[0m",
    "colours, as rsyslog has them": "#033[32m[   12.345678] ",
    "netconsole with the kernel's release": "6.4.0-rc1,3,1234,12345678,-;",
    "logcat with an empty tag": "01-05 10:00:01.123     0     0 W         : ",
    "logcat with a tag": "01-05 10:00:01.123  root     0     0 I kernel  : ",
    "HiSilicon": "[   12.345678s][pid:1234,cpu2,kworker/2:1]",
    "HTML, spaces of a web page": "<span class='t'>[&nbsp;&nbsp;12.345678]</span> ",
    "rsyslog, repeated": "Jan  5 10:00:01 host kernel: message repeated 3 times: [ [   12.345678] ",
    "syslog, its host in brackets": "Jan  5 10:00:01 [redacted] kernel: ",
    "syslog of a router without a name": "Jan  5 10:00:01 (none) kernel: ",
    "syslog, a person and a host": "Jan  5 10:00:01 me@host kernel: ",
    "journalctl without a number of a process": "Jan 05 10:00:01 host kernel[-]: ",
    "klogd": "Jan  5 10:00:01 host klogd: ",
    "a table of times": "2024-01-05 10:00:01\t",
    "the CPU, before a name with a dash": "[   12.345678] 001: ",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_a_prefix_is_split_off(prefix: str) -> None:
    for ending in ("", "\r"):
        head, body = split_prefix(prefix + MESSAGE + ending)
        assert body.strip() == MESSAGE
        assert time_of(head) == (12.345678 if "12.345678" in prefix or "12345678" in prefix else None)
    event = classify(prefix + MESSAGE)
    assert event is not None
    assert (event.kind, event.subject) == ("scsi.error", "sdb")


def test_colours_inside_a_message_are_removed() -> None:
    line = "\x1b[32m[   12.345678] \x1b[0m\x1b[33musb 2-1: \x1b[0mreset SuperSpeed USB device number 2 using xhci_hcd"
    event = classify(line)
    assert event is not None
    assert (event.kind, event.subject) == ("usb.reset", "2-1")


@pytest.mark.parametrize("name", PREFIXES)
def test_a_message_without_a_device_is_found_behind_all_known_prefixes(name: str) -> None:
    message = "EXT4-fs error (device sdb1): ext4_find_entry:1455: reading directory lblock 0"
    assert (classify(PREFIXES[name] + message) is None) == (name in MARKS)


def test_dmesg_as_json() -> None:
    assert split_prefix(f'         "msg": "{MESSAGE}"')[1] == MESSAGE
    other = f'{{"level": "error", "msg": "{MESSAGE}"}}'
    assert split_prefix(other)[1] == other


@pytest.mark.parametrize("transport", ["_TRANSPORT", "SYSLOG_IDENTIFIER"])
def test_the_journal_as_json(transport: str) -> None:
    record = {"PRIORITY": "3", transport: "kernel", "__MONOTONIC_TIMESTAMP": "12345678", "MESSAGE": MESSAGE}
    head, body = split_prefix(json.dumps(record))
    assert (body, time_of(head), level_of(head)) == (MESSAGE, 12.345678, 3)
    assert split_prefix(f'\t"MESSAGE" : "{MESSAGE}",')[1] == MESSAGE
    other = json.dumps(record | {transport: "myapp"})
    assert split_prefix(other)[1] == other


@pytest.mark.parametrize(
    ("prefix", "level"),
    [
        ("<3>", 3),
        ("<12>[    1.000000] ", 4),
        ("kern  :err   : [    1.000000] ", 3),
        ("kern  :warn  : ", 4),
        ("kern  :emerg : ", 0),
        ("Mon Nov 12 13:45:01 2024 kern.err kernel: ", 3),
        ("Nov 12 13:45:01 host user.info kernel: ", 6),
        ("4,1234,12345678,-;", 4),
        ("192.168.2.36: kern:    info: [2022-10-19T13:45:04.127208127Z]: ", 6),
        ("[    1.000000] ", None),
        ("Nov 12 13:45:01 host kernel: ", None),
    ],
)
def test_the_level_in_a_prefix(prefix: str, level: int | None) -> None:
    assert level_of(split_prefix(prefix + MESSAGE)[0]) == level


@pytest.mark.parametrize(
    "line",
    [
        "Nov 12 13:45:01 host fsck[123]: FAT-fs (sdb1): error, corrupted directory",
        "2024-11-12T13:45:01+0100 host test[99]: Kernel panic - not syncing: only text",
        "Nov 12 13:45:01 host python3[9]: [   12.345678] FAT-fs (sdb1): error, corrupted directory",
        "Nov 12 13:45:01 host app: kernel: FAT-fs (sdb1): error, corrupted directory",
        "app.log:Nov 12 13:45:01 host fsck[123]: FAT-fs (sdb1): error, corrupted directory",
        "Nov 12 13:45:01 *** fsck[123]: FAT-fs (sdb1): error, corrupted directory",
        "- [ ] fsck[123]: FAT-fs (sdb1): error, corrupted directory",
        "reports/x.txt: Nov 12 13:45:01 host fsck[123]: FAT-fs (sdb1): error, corrupted directory",
        "11-12 13:45:01.123   345   351 E vold    : FAT-fs (sdb1): error, corrupted directory",
        '    print("[   12.345678] FAT-fs (sdb1): error, corrupted directory")',
    ],
)
def test_a_message_that_another_process_logs_is_not_the_kernels(line: str) -> None:
    assert classify(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "I see device descriptor read/64, error -71 in my log",
        "Then you get USB disconnect, device number 5 and it is gone",
        "smartd[12]: Device: /dev/sdb, USB disconnect, device number 5",
        "Nov 12 13:45:01 host smartd[12]: sd 2:0:0:0: [sdb] tag#1 FAILED Result: hostbyte=DID_OK",
        "[   12.345678] udisksd[345]: device not accepting address 5, error -71",
        "Error text seen: my disk is rejecting I/O to offline device",
        "the log says ata1.00: failed command: READ DMA EXT",
        "logger: usb 1-2: USB discon",
        '#dmesg | egrep -iwE  "rejecting I/O to offline device|write_disk_sb failed" >> /tmp/errors',
        '        "rejecting I/O to offline device",',
        '@.str.15 = private constant [33 x i8] c"rejecting I/O to offline device\\0A", align 1',
        "The host path failed: Linux reported repeated `device descriptor read/all, error -75`, and fell back",
        "`Write(10)` on the volume with sense key *Hardware Error*: the data sector",
        "`Add. Sense: Data phase CRC error` is what the bridge says, not the medium",
        'say(RETURNED_AT - 0.01, "sd 3:0:0:0: [sda] Attached SCSI disk", 5),',
        "- Detects over-current conditions",
        "- Out of memory (``-ENOMEM``)",
        "Kernel stack overflows are often hard to debug and make the kernel",
        "hda_intel: azx_get_response timeout, switching to polling mode: last cmd=0x010a0000",
        "**reset high-speed USB device number 3 using xhci_hcd**",
        "            re: regexp.MustCompile(`^md: super_written gets error=`),",
        "    positive: ['kernel: I/O error, dev sdb, sector 120 op 0x0:(READ)', 'Buffer I/O error on dev sdb1'],",
        "    OCP,         /**< Over-Current condition detected. */",
        'We have seen this message twice now: "Rejecting I/O to Offline Device".',
    ],
)
def test_words_of_the_kernel_that_others_quote_are_not_its_own(line: str) -> None:
    assert classify(line) is None


@pytest.mark.parametrize(
    "message",
    [
        "parent transid verify failed on 108791845535744 wanted 731540 found 731528",
        "btrfs unable to find ref byte nr 1390979039232 parent 0 root 1  owner 1 offset 0",
    ],
)
def test_what_programs_print_too_is_the_kernels_behind_its_prefix_only(message: str) -> None:
    assert classify(message) is None
    assert classify(f"> > > {message}") is None, "a mail's marks are not the kernel's"
    event = classify(f"[   12.345678] {message}")
    assert event is not None
    assert event.kind == "fs.error"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("fatal.oops", "bug: kernel null pointer dereference, address: 0000000000000010"),
        ("fatal.oops", "unable to handle kernel paging request at virtual address dead000000000100"),
        ("fatal.lockup", "watchdog: bug: soft lockup - cpu#1 stuck for 26s! [kworker/1:2:123]"),
        ("fatal.panic", "kernel panic - not syncing: fatal exception"),
    ],
)
def test_small_letters_are_a_title_or_a_line_that_was_typed(kind: str, message: str) -> None:
    assert classify(message) is None
    event = classify(f"[   12.345678] {message}")
    assert event is not None
    assert event.kind == kind


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("scsi.error", "mptbase: ioc0: WARNING \u2013 Issuing HardReset from mpt_fault_reset_work!!"),
        ("usb.enumeration-error", "[ 5.1] usb 1-1: can\u2019t set config #1, error \u2212110"),
        ("md.failure", "md/raid:md127: not clean \u2013 starting background reconstruction"),
        ("block.error", "Buffer\xa0I/O\xa0error\xa0on device sdb, logical block 0"),
        ("hcd.error", "[ 5.1] xhci_hcd 0000:00:14.0: WARN Can&#39;t disable streams for endpoint"),
        ("fs.error", "ntfs3: sda5: volume is dirty and &quot;force&quot; flag is not set!"),
        ("usb.disconnect", "&lt;6&gt;[ 5.1] usb 1-1: USB disconnect, device number 2"),
    ],
)
def test_characters_that_editors_and_web_pages_replace(kind: str, line: str) -> None:
    event = classify(line)
    assert event is not None
    assert event.kind == kind
    assert event.text == line


def test_a_sentence_stays_one_with_other_quotation_marks() -> None:
    assert classify("It said \u201cBuffer I/O error on device sdb\u201d \u2013 what\u2019s that?") is None


def test_what_a_program_indents_otherwise_is_the_kernels_behind_its_own_spaces() -> None:
    message = "Additional sense: Unaligned write command"
    assert classify(message) is None
    assert classify(f" {message}") is None, "sg3_utils"
    for line in (f"    {message}", f"[   12.345678] {message}", f"sda: {message}"):
        event = classify(line)
        assert event is not None, line
        assert event.kind == "scsi.error"


@pytest.mark.parametrize("tab", ["^I", "#011", "#011#011", "\t"])
def test_a_tab_as_a_syslog_daemon_writes_it(tab: str) -> None:
    event = classify(f"Apr 12 13:45:01 host kernel: {tab}Sense class 7, sense error 0, extended sense 3")
    assert event is not None
    assert event.kind == "scsi.error"
    assert classify(f"Apr 12 13:45:01 host smartd[12]: {tab}Sense class 7, sense error 0, extended sense 3") is None


def test_the_name_of_a_file_may_be_in_any_script() -> None:
    message = "BTRFS warning (device sdb1): checksum error at logical 1234 on dev /dev/sdb1, links 1 (path: {})"
    name = "\u624b\u673a\u76f8\u518c"
    event = classify(message.format(name))
    assert event is not None
    assert event.kind == "fs.error"
    assert classify(f"{message.format('photo')} {name}") is None, "a comment"


def test_a_message_that_a_terminal_filled_with_spaces() -> None:
    spaces = " " * 79
    for text in (f"Overcurrent c{spaces}hange detected", f"Overcurrent{spaces}change detected"):
        event = classify(f"** 68 printk messages dropped ** [    1.357089] dwc2 ffb40000.usb: {text}")
        assert event is not None
        assert event.kind == "usb.overcurrent"


def test_two_messages_in_one_line() -> None:
    """Consoles lose ends of lines, and a driver may print the end of its line later."""
    glued = "[   12.000000] pgd = c0004000[   12.100000] usb 1-1: USB disconnect, device number 2"
    event = classify(glued)
    assert event is not None
    assert (event.kind, event.subject) == ("usb.disconnect", "1-1")
    spinning = "[   65.621967] sd 1:0:0:0: [sda] Spinning up disk...<6>usb 1-1: USB disconnect, device number 2"
    assert second_message(spinning, split_prefix(spinning)[1]) == "usb 1-1: USB disconnect, device number 2"
    first = classify("[   12.000000] usb 2-2: USB disconnect, device number 9[   12.1] usb 1-1: USB disconnect")
    assert first is not None
    assert first.subject == "2-2"
    alone = "usb 1-1: USB disconnect, device number 2"
    assert second_message(f"[    1.000000] {alone}", alone) == ""
