"""Mistakes that depend on the kind of the DUT: what a virtual bench cannot do, and what a real rig needs.

``rig_texts.py`` explains the ``^`` in these texts.
"""

from __future__ import annotations

from rig_texts import BENCH, REAL, edited, mistakes

from plugpull.rig.lint_virtual import FIRMWARE
from plugpull.rig.load import parse_rig


def test_what_a_virtual_bench_cannot_do() -> None:
    ehci = ('model = "qemu-xhci"\nports = 4', 'model = "ich9-usb-ehci1"')
    assert mistakes(
        edited(BENCH, ("ports = 4\n[[hub", "ports = 4\n[[hub"), ('at = "usb.1"', 'at = "usb.1"\nports = ^9'))
    ) == ["an emulated hub has 8 ports at most"]
    assert mistakes(edited(BENCH, ehci, ('"usb.1"', '^"usb.1"'))) == [
        (
            'an emulated hub is a full-speed device, which the ich9-usb-ehci1 "usb" does not take: '
            "plug it into an xHCI controller"
        )
    ]
    assert mistakes(edited(BENCH, ('"S2"', '"S2"\nprotocol = ^"uas"'))) == [
        (
            'a uas disk cannot be behind the hub "hub1", because an emulated hub is full speed only: '
            "plug it into a controller or make it usb-storage"
        )
    ]
    flat = edited(
        BENCH, ehci, ('"usb.1"', '"usb2.1"'), ("[[hub]]", '[[controller]]\nname = "usb2"\nmodel = "qemu-xhci"\n[[hub]]')
    )
    parse_rig(flat)
    assert mistakes(edited(flat, ('"usb.2"', '^"usb.7"'))) == ['there is no port 7 at "usb": it has ports 1 to 6']
    assert mistakes(edited(flat, ('ich9-usb-ehci1"', 'ich9-usb-ehci1"\nports = ^7'))) == [
        "the emulated ich9-usb-ehci1 has 6 ports at most"
    ]


def test_a_uas_disk_at_a_controller_and_behind_a_real_hub_is_fine() -> None:
    parse_rig(edited(BENCH, ('"S1"', '"S1"\nprotocol = "uas"')))
    parse_rig(edited(REAL, ('"S2"', '"S2"\nprotocol = "uas"'), ('"usb.1"', '"usb.1"\nports = 10')))


SHELF = edited(
    BENCH,
    ("[[hub]]", '[[controller]]\nname = "shelf"\nmodel = "virtio-scsi-pci"\n[[hub]]'),
    ('"hub1.1"', '"shelf.3"'),
    ('"S2"', '"S2"\nprotocol = "scsi"'),
)


def test_a_scsi_disk_is_on_a_scsi_controller_and_nothing_else_is() -> None:
    parse_rig(SHELF)
    assert mistakes(edited(SHELF, ('"scsi"', '^"uas"'))) == [
        '[[disk]] "disk2" is plugged into "shelf", which is a virtio-scsi-pci: give it protocol = "scsi"'
    ]
    assert mistakes(edited(SHELF, ('"shelf.3"', '"hub1.1"'), ('"scsi"', '^"scsi"'))) == [
        (
            'a disk with protocol = "scsi" cannot be plugged into "hub1": '
            'plug it into a controller whose model is "virtio-scsi-pci"'
        )
    ]
    assert mistakes(edited(SHELF, ('"usb.1"', '^"shelf.1"'))) == [
        'a USB hub cannot be plugged into "shelf", which is a virtio-scsi-pci: plug it into an xHCI controller'
    ]
    assert mistakes(edited(SHELF, ('"scsi"', '"scsi"\n^cdrom = true'))) == [
        'an emulated SCSI target has one unit, so "cdrom" has no effect'
    ]
    assert mistakes(edited(SHELF, ('pci"\n', 'pci"\nports = ^33\n'))) == [
        "an emulated virtio-scsi-pci has 32 ports at most"
    ]


def test_what_a_virtual_rig_needs() -> None:
    assert mistakes(edited(BENCH, ("[[controller]]", "^[[controller]]"), ('model = "qemu-xhci"\n', ""))) == [
        '[[controller]] "usb" has no "model": which controller QEMU is to emulate, such as "qemu-xhci"'
    ]
    assert mistakes(edited(BENCH, ('driver = "virtual"', 'driver = ^"ykush"'))) == [
        'the driver "ykush" cannot cut anything on a virtual bench: use "virtual"'
    ]
    assert mistakes(edited(BENCH, ('driver = "virtual"', 'driver = ^"virtaul"'))) == [
        'there is no driver "virtaul"; did you mean "virtual"?'
    ]


def test_what_a_real_rig_needs() -> None:
    assert mistakes(edited(REAL, ("[[controller]]", "^[[controller]]"), ('path = "0000:00:14.0"\n', ""))) == [
        '[[controller]] "usb" has no "path": its PCI address, such as "0000:00:14.0"'
    ]
    assert mistakes(edited(REAL, ('driver = "human"', 'driver = ^"virtual"'))) == [
        'the driver "virtual" only works when the DUT is virtual, and this one is local'
    ]
    assert mistakes(REAL + '^[[defect]]\nkind = "kernel-panic"\n') == [
        "only a virtual bench can have defects on purpose, and this DUT is local"
    ]
    assert mistakes(edited(REAL, ("[[disk]]\n", '[[disk]]\n^cache = "1 MiB"\n'))) == [
        '"cache" is how an emulated disk behaves, and this DUT is local'
    ]


def test_defects() -> None:
    parse_rig(BENCH + '[[defect]]\nkind = "slows"\ndisk = "disk1"\n[[defect]]\nkind = "kernel-panic"\n')
    assert mistakes(BENCH + '[[defect]]\nkind = "slows"\ndisk = ^"disk3"\n') == [
        'there is no disk named "disk3"; did you mean "disk2"?'
    ]
    for kind in ("slows", "stalls", "bit-flip", "never-returns", "needs-power-cycle", "unit-changes", "serial-changes"):
        assert mistakes(BENCH + f'^[[defect]]\nkind = "{kind}"\n') == [
            f'the defect "{kind}" needs a "disk" that has it'
        ]
    assert mistakes(BENCH + '[[defect]]\nkind = "kernel-panic"\nfactor = ^nan\n')


def test_a_disk_with_a_cache() -> None:
    cache = (
        '"S1"\ncache = "8 MiB"\neviction = "random"\nwrite_back = 2.0\nlatency = 0.01\nfua = true\nlogical_block = 4096'
    )
    rig = parse_rig(edited(BENCH, ('"S1"', cache), ('at = "usb.1"', 'at = "usb.1"\nrate = "2 MiB/s"')))
    assert (rig.disk[0].cache, rig.disk[0].logical_block, rig.hub[0].rate) == (8 << 20, 4096, 2 << 20)
    for line, what in (
        ('eviction = ^"fifo"', '"eviction" cannot be "fifo": it is one of "oldest", "random", "newest"'),
        ("logical_block = ^1024", '"logical_block" cannot be 1024: it is 512 or 4096'),
        ('logical_block = ^"4096"', '"logical_block" cannot be text in quotes: it is 512 or 4096'),
        ("write_back = ^0.0", '"write_back" must be more than 0'),
        ('cache = ^"8 Mib"', 'the size "8 Mib" has the unknown unit "Mib"; did you mean "8 MiB"?'),
        ("cache = ^1000", "a cache holds whole logical blocks, of 512 bytes on this disk"),
        (
            "^write_back = 1.0",
            '"write_back" says what leaves the volatile cache, but [[disk]] "disk1" has none: give it a "cache"',
        ),
    ):
        assert mistakes(edited(BENCH, ('"S1"', '"S1"\n' + line))) == [what]
    both = edited(BENCH, ('"S1"', '"S1"\ncache = "8 MiB"\n^write_through = true'))
    assert mistakes(both) == [
        '[[disk]] "disk1" cannot have a volatile "cache" and write through: leave one out, or use "cache-lied"'
    ]
    odd = edited(BENCH, ('"S1"\nsize = "64 MiB"', '"S1"\nlogical_block = 4096\nsize = ^67109376'))
    assert mistakes(odd) == ["a disk with logical blocks of 4096 bytes has a whole number of them"]


def test_defects_of_the_firmware() -> None:
    def defect(kind: str, *lines: str, disk: str = 'disk = "disk1"') -> str:
        return edited(BENCH, ('"S1"', '"S1"\ncache = 4096')) + "\n".join(
            ["[[defect]]", f'kind = "{kind}"', disk, *lines, ""]
        )

    for kind, keys in FIRMWARE.items():
        values = {"sector": "sector = 8", "seconds": "seconds = 0.5", "rate": 'rate = "1 MiB/s"'}
        parse_rig(defect(kind, *(values.get(key, f"{key} = 7") for key in sorted(keys))))
        assert mistakes(defect(kind, *(["sector = 8"] if "sector" in keys else []), "^factor = 0.1")) == [
            f'the defect "{kind}" has no "factor": it is for "slows"'
        ]
    parse_rig(defect("crowded", disk=""))
    assert mistakes(defect("slow-through", disk="").replace("[[defect]]", "^[[defect]]")) == [
        'the defect "slow-through" needs a "disk" that has it'
    ]
    assert mistakes(defect("kernel-panic", "^sector = 8")) == [
        'the defect "kernel-panic" has no "sector": it is for "wraps", "errors-at"'
    ]
    assert mistakes(defect("flush-lost", disk='disk = ^"disk2"')) == [
        'the defect "flush-lost" needs a disk with a "cache"'
    ]
    assert mistakes(defect("errors-at").replace("[[defect]]", "^[[defect]]")) == [
        'the defect "errors-at" needs a "sector": the first that is bad'
    ]
    assert mistakes(defect("errors-at", "sector = ^131072")) == [
        '[[disk]] "disk1" has no sector 131072: its last one is 131071'
    ]
    assert mistakes(defect("wraps", "sector = ^0")) == ["addresses wrap where a logical block begins, and not at 0"]
    assert mistakes(defect("misdirected", "every = ^0")) == ['"every" must be at least 1']
