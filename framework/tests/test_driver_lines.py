"""Which parts of a driver ran, by what its noting build logs and by its disassembly."""

from __future__ import annotations

from benchmarks.driver_lines import DRIVERS, Block, blocks, seen

LOGGED = (
    "usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd",
    "plugpull_lines: storage_probe+0x32/0x460 [usb_storage] __usb_stor_x.cold+0x5/0x9d [usb_storage]",
    "plugpull_lines: sd_open+0x15/0x210 [sd_mod]",
    "usb-storage: plugpull_lines: storage_probe+0x99/0x460 [usb_storage]",
)
# The layout is objdump's (GNU Binutils 2.40).
DISASSEMBLED = """
usb-storage.debug:     file format elf64-x86-64


Disassembly of section .text:

0000000000000000 <storage_probe>:
       0:\tcall   5 <storage_probe+0x5>
\t\t\t1: R_X86_64_PLT32\t__fentry__-0x4
       5:\tpush   %rbp
       6:\tcall   b <storage_probe+0xb>
\t\t\t7: R_X86_64_PLT32\t__sanitizer_cov_trace_pc-0x4
       b:\ttest   %rax,%rax
       e:\tje     20 <sd_open>
      10:\tcall   15 <storage_probe+0x15>
\t\t\t11: R_X86_64_PLT32\t__sanitizer_cov_trace_pc-0x4
      15:\tret

0000000000000020 <sd_open>:
      20:\tcall   25 <sd_open+0x5>
\t\t\t21: R_X86_64_PLT32\t__sanitizer_cov_trace_pc-0x4
      25:\tret

Disassembly of section .init.text:

0000000000000000 <init_module>:
       0:\tcall   5 <init_module+0x5>
\t\t\t1: R_X86_64_PLT32\t__sanitizer_cov_trace_pc-0x4
       5:\tret
"""


def test_places_are_taken_from_the_kernel_log() -> None:
    assert seen(LOGGED) == {
        "usb_storage": {("storage_probe", 0x32), ("__usb_stor_x.cold", 0x5)},
        "sd_mod": {("sd_open", 0x15)},
    }


def test_a_block_begins_after_each_call_of_the_noting() -> None:
    assert list(blocks(DISASSEMBLED.splitlines())) == [
        Block(".text", ("storage_probe", 0xB), 0xB),
        Block(".text", ("storage_probe", 0x15), 0x15),
        Block(".text", ("sd_open", 0x5), 0x25),
        Block(".init.text", ("init_module", 0x5), 0x5),
    ]


def test_each_module_is_there_once() -> None:
    assert len({one.module for one in DRIVERS}) == len(DRIVERS)
