"""``plugpull log --story``, and its hints on real logs where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from device_logs import CORPUS, aborts, accused, disk, failed

from plugpull.cli import main

# --- the command ------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kern.log"
    log.write_text("\n".join(disk("b", 2, "2-1", driver="uas") + aborts("b", 2, 8, 8)) + "\n")
    well = tmp_path / "well.log"
    well.write_text("\n".join(disk("b", 2, "2-1")) + "\n")
    assert main(["log", "--story", str(log)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("sdb (usb 2-1, 152d:0578, uas)\n")
    assert "\npossibly: bridge firmware (152d:0578)\n" in out
    assert out.endswith("    to try: usb-storage.quirks=152d:0578:u\n")
    assert main(["log", "--story", str(log), str(well)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{log}:\n")
    assert out.endswith(f"\n{well}:\nno errors, neither of a device nor of the kernel itself\n")


def test_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, well = tmp_path / "kern.log", tmp_path / "well.log"
    banner = "[    0.000000] Linux version 6.1.0-18-amd64 (debian@host) (gcc-12)"
    log.write_text(
        "\n".join([banner, *disk("b", 2, "2-1", driver="uas"), *aborts("b", 2, 8, 8), *failed("b", 8)]) + "\n"
    )
    well.write_text("\n".join(disk("b", 2, "2-1")) + "\n")
    assert main(["log", "--summary", str(log)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 76
    assert "\n\n" not in out
    assert " ".join(out.split()) == (
        "Kernel 6.1.0-18-amd64. sdb (USB port 2-1, 152d:0578, driver uas), from 1.0 s after boot: it was detected "
        '("usb 2-1: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 1.00"), then UAS commands were '
        "aborted 2 times, then SCSI commands failed 2 times, then I/O failed. Possibly to blame: the bridge firmware "
        "(152d:0578), because 2 aborts and resets with uas, the first: sd 2:0:0:0: [sdb] tag#0 uas_eh_abort_handler 0 "
        "uas-tag 1 inflight: CMD OUT. To try, on the kernel's command line: usb-storage.quirks=152d:0578:u."
    )
    assert main(["log", "--summary", str(well), str(log)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{well}:\nNo errors, neither of a device nor of the kernel itself.\n\n{log}:\nKernel 6.1")


LEAVING = """\
[   50.000000] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd
[   50.100000] usb 2-1: New USB device found, idVendor=152d, idProduct=0583, bcdDevice= 2.09
[   50.200000] scsi host2: uas
[   50.400000] sd 2:0:0:0: [sdb] Attached SCSI disk
[  150.000000] usb 2-1: USB disconnect, device number 2
[  {0}.900000] usb 2-1: new SuperSpeed USB device number 3 using xhci_hcd
[  {0}.950000] usb 2-1: New USB device found, idVendor=152d, idProduct=0583, bcdDevice= 2.09
[  {0}.990000] sd 2:0:0:0: [sdb] Attached SCSI disk
"""


def test_a_disk_that_leaves_and_returns_in_a_log_without_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "kern.log"
    log.write_text(LEAVING.format(150))
    assert main(["log", "--summary", str(log)]) == 0
    assert " ".join(capsys.readouterr().out.split()) == (
        "No errors, neither of a device nor of the kernel itself. But look at the cable, port or bridge (sdb): it "
        "disconnected and came back once by itself, within 0.9 s."
    )
    assert main(["log", "--story", str(log)]) == 0
    assert "possibly: cable, port or bridge (sdb)\n" in capsys.readouterr().out
    # A person may have replugged it.
    log.write_text(LEAVING.format(190))
    assert main(["log", "--summary", str(log)]) == 0
    assert capsys.readouterr().out == "No errors, neither of a device nor of the kernel itself.\n"
    assert main(["log", "--story", str(log)]) == 0
    assert capsys.readouterr().out == "no errors, neither of a device nor of the kernel itself\n"


def test_a_device_is_detected_once_by_two_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kern.log"
    lines = LEAVING.format(150).splitlines()
    log.write_text("\n".join([*lines[:4], *failed("b", 151)]) + "\n")
    assert main(["log", "--summary", str(log)]) == 0
    assert "it was detected (" in " ".join(capsys.readouterr().out.split())
    log.write_text("\n".join([*lines[:2], *lines[:2], *lines[2:4], *failed("b", 151)]) + "\n")
    assert main(["log", "--summary", str(log)]) == 0
    assert "it was detected 2 times (" in " ".join(capsys.readouterr().out.split())
    log.write_text("\n".join([lines[1], lines[1], *lines[2:4], *failed("b", 151)]) + "\n")
    assert main(["log", "--summary", str(log)]) == 0
    assert "it was detected 2 times (" in " ".join(capsys.readouterr().out.split())


def test_unknown_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kern.log"
    log.write_text(
        "kern  :info  : [    1.000000] frobnicator: all is well\n"
        "kern  :warn  : [    2.000000] frobnicator: ring 1 overflows\n"
        "kern  :err   : [    3.000000] frobnicator: ring 2 overflows\n"
        "kern  :err   : [    4.000000] I/O error, dev sdb, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2\n"
        "kern  :warn  : [    5.000000]  usb_hcd_giveback_urb+0x10/0x20\n"
        "user  :warn  : [    6.000000] myapp: not the kernel\n"
        "<12>[    7.000000] systemd[1]: not the kernel either\n"
    )
    assert main(["log", "--unknown", str(log)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split(maxsplit=3) == ["2", "2x", "err", "frobnicator: ring 1 overflows"]
    plain = tmp_path / "plain.log"
    plain.write_text(
        "[    1.000000] frobnicator: failed\n"
        "[    2.000000] usb 1-1: the frobnicator failed with error -5\n"
        "[    3.000000] usb 1-1: Product: Stick\n"
        "[    4.000000] sd 1:0:0:0: [sdb] Write Protect is off\n"
    )
    assert main(["log", "--unknown", str(plain)]) == 0
    assert capsys.readouterr().out.split(maxsplit=3)[:3] == ["2", "1x", "-"]
    assert main(["log", "--unknown", str(plain), str(log)]) == 0
    assert capsys.readouterr().out.startswith(f"{plain}:2 ")
    well = tmp_path / "well.log"
    well.write_text("\n".join(disk("b", 2, "2-1")) + "\n")
    assert main(["log", "--unknown", str(well)]) == 0
    assert capsys.readouterr().out == "nothing unknown\n"


def test_json_is_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "kern.log"
    log.write_text("\n".join(failed("b", 8)) + "\n")
    with pytest.raises(SystemExit):
        main(["log", "--story", "--json", str(log)])
    capsys.readouterr()
    assert main(["log", "--json", str(log)]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["kind"] == "block.error"


# --- real logs --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not CORPUS.is_file(), reason="the logs are not at hand")
def test_real_logs_accuse_whom_their_owners_found_guilty() -> None:
    found: dict[str, set[str]] = {}
    for row in CORPUS.read_text().splitlines():
        log = json.loads(row)
        found[log["id"]] = set(accused([line["text"] for line in log["lines"]]))
    expected = {
        "silverstone-ts16-uas-offline": "bridge firmware",
        "samsung-t5-asm1142-aborts": "bridge firmware",
        "asm1051-write-aborts": "bridge firmware",
        "h3c-xhci-dies-on-unplug": "controller",
        "odroid-hc2-hc-died": "controller",
        "uf-czgirb-medium-error-split": "medium",
        "md7-emi-kicked": "cable or port",
        "uf-mpman-cannot-enable": "cable or port",
        "uf-hub-dies-device-offlined": "hub",
        "usbstor-pagefault-write": "kernel",
        "xps-mkfs-xhci-ring-oops": "kernel",
    }
    assert {name: culprit for name, culprit in expected.items() if culprit not in found[name]} == {}
    assert {name: culprits for name, culprits in found.items() if name.startswith("healthy") and culprits} == {}
