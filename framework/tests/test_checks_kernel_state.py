"""The check ``state_kept``: the kernel is at the end what it was at the beginning."""

from __future__ import annotations

import pytest
from stories import Bench
from watched import real, watched

from plugpull.checks import state_kept
from plugpull.checks.dut.kernel_state import taint_names
from plugpull.history import events as ev


def ended_with(**changes: object) -> Bench:
    bench = watched()
    bench.replace(ev.DutState, lambda state: state.moment == "end", **changes)
    return bench


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"taint": 1 << 9}, "the kernel was tainted during the scenario: W, the kernel warned"),
        ({"boot_id": "two"}, "the DUT restarted during the scenario"),
        ({"kernel": "6.13.0"}, "the DUT runs kernel 6.13.0 at the end, and ran 6.12.1 at the beginning"),
        ({"modules": {"usb_storage": 3, "uas": 0}}, "module usb_storage is held 2 times more than at the beginning"),
        (
            {"memory": {"SUnreclaim": 51 << 20, "KernelStack": 1 << 20}},
            "the kernel holds 40 MiB more than at the beginning (limit 16 MiB)",
        ),
    ],
)
def test_a_kernel_that_is_not_what_it_was(changes: dict[str, object], said: str) -> None:
    (finding,) = ended_with(**changes).judge(state_kept()).findings
    assert finding.summary == said


FILESYSTEMS = {"usb_storage": 1, "uas": 0, "ext4": 0, "jbd2": 1, "md_mod": 4}


@pytest.mark.parametrize(("module", "count"), [("ext4", 1), ("jbd2", 2), ("md_mod", 5), ("usb_storage", 2)])
def test_a_filesystem_or_an_array_that_was_not_torn_down_holds_its_module(module: str, count: int) -> None:
    bench = watched()
    bench.replace(ev.DutState, modules=FILESYSTEMS)
    assert bench.judge(state_kept()).findings == ()
    bench.replace(ev.DutState, lambda state: state.moment == "end", modules=FILESYSTEMS | {module: count})
    (finding,) = bench.judge(state_kept()).findings
    assert (finding.subject, finding.summary) == (module, f"module {module} is held 1 times more than at the beginning")


@pytest.mark.parametrize(("module", "many"), [("jbd2", 0), ("uas", 1)])
def test_a_module_that_was_loaded_meanwhile_holds_others(module: str, many: int) -> None:
    bench = watched()
    bench.replace(ev.DutState, modules=FILESYSTEMS)
    later = FILESYSTEMS | {module: FILESYSTEMS[module] + 1, "ocfs2": 0}
    bench.replace(ev.DutState, lambda state: state.moment == "end", modules=later)
    assert len(bench.judge(state_kept()).findings) == many


def with_caches(**end: int) -> Bench:
    bench = watched()
    begin = {"kmalloc-2k": 600_000, "request_queue": 16_000}
    for at, moment, slab in ((10.9, "begin", begin), (25.8, "end", begin | end)):
        bench.add(ev.Census(at=at, moment=moment, things={}, slab=slab))  # type: ignore[arg-type]
    return bench


@pytest.mark.parametrize(
    ("cache", "size", "said"),
    [
        (
            "kmalloc-2k",
            9_000_000,
            "the kernel's cache kmalloc-2k holds 8203 KiB more than at the beginning (limit 4096",
        ),
        ("request_queue", 900_000, "the kernel's cache request_queue holds 863 KiB more than at the beginning (limit"),
    ],
)
def test_a_cache_that_holds_much_more_at_the_last_census(cache: str, size: int, said: str) -> None:
    bench = with_caches(**{cache: size})
    (finding,) = bench.judge(state_kept()).findings
    assert finding.summary.startswith(said)
    real(bench)
    assert bench.judge(state_kept()).findings == ()


@pytest.mark.parametrize(("grown", "found"), [(6 << 20, 1), (1 << 20, 0)])
def test_per_cpu_memory_grows_by_little(grown: int, found: int) -> None:
    bench = watched()
    memory = {"SUnreclaim": 11 << 20, "Percpu": 2 << 20}
    bench.replace(ev.DutState, memory=memory)
    bench.replace(ev.DutState, lambda state: state.moment == "end", memory=memory | {"Percpu": (2 << 20) + grown})
    assert len(bench.judge(state_kept()).findings) == found


def test_a_cache_that_fills_is_no_leak() -> None:
    bench = with_caches(**{"kmalloc-2k": 1_200_000, "request_queue": 48_000, "kmalloc-cg-1k": 524_288})
    assert bench.judge(state_kept()).findings == ()


def test_a_driver_that_is_not_loaded_any_more_is_a_doubt() -> None:
    bench = watched()
    bench.replace(ev.DutState, modules={"usb_storage": 1, "xhci_pci": 0})
    assert bench.judge(state_kept()).unknowns == ()
    bench.replace(ev.DutState, lambda state: state.moment == "end", modules={"usb_storage": 1})
    expected = ("the module xhci_pci was loaded at the beginning, and is not at the end",)
    assert bench.judge(state_kept()).unknowns == expected


@pytest.mark.parametrize("module", ["usb_storage", "raid1"])
def test_a_module_that_is_held_less_often_is_a_doubt(module: str) -> None:
    bench = watched()
    bench.replace(ev.DutState, modules={module: 1})
    assert bench.judge(state_kept()).unknowns == ()
    bench.replace(ev.DutState, lambda state: state.moment == "begin", modules={module: 3})
    expected = f"the record contradicts itself: module {module} was held 3 times, and 1 times at the end"
    assert bench.judge(state_kept()).unknowns == (expected,)


def test_on_a_real_dut_others_may_load_modules_and_take_memory() -> None:
    bench = ended_with(
        taint=(1 << 12) + (1 << 13), modules={"usb_storage": 3}, memory={"SUnreclaim": 500 << 20, "KernelStack": 0}
    )
    real(bench)
    assert bench.judge(state_kept()).findings == ()


def test_an_old_taint_is_not_a_new_one() -> None:
    bench = watched()
    bench.replace(ev.DutState, taint=(1 << 9) + 1)
    assert bench.judge(state_kept()).findings == ()


def test_a_missing_state_is_unknown() -> None:
    bench = watched()
    bench.drop(ev.DutState, lambda state: state.moment == "begin")
    assert bench.judge(state_kept()).unknowns == ("the state of the kernel at the end is not on record",)


def test_taint_is_spelled_out() -> None:
    assert taint_names((1 << 7) | (1 << 14) | (1 << 40)) == (
        "D, the kernel died (oops or BUG)",
        "L, a soft lockup",
        "bit 40",
    )
