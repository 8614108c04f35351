"""Loads of fio."""

from plugpull.load.array_designs import (
    ArrayCell,
    array_baseline,
    array_cells,
    array_design,
    array_tasks,
    member_size,
    rebuild_design,
)
from plugpull.load.designs import (
    all_at_once,
    all_for_long,
    each_alone,
    leave_one_out,
    more_and_more,
    part_by_part,
    power_design,
    scaling_design,
    side_by_side,
)
from plugpull.load.patterns import Pattern, fio_write, idle, sequential_read, sequential_write
from plugpull.load.task_designs import (
    caching_design,
    filesystem_counts,
    filesystem_design,
    filesystem_tasks,
    latency_design,
    sweep_design,
)
from plugpull.load.tasks import FioTask

__all__ = [
    "ArrayCell",
    "FioTask",
    "Pattern",
    "all_at_once",
    "all_for_long",
    "array_baseline",
    "array_cells",
    "array_design",
    "array_tasks",
    "caching_design",
    "each_alone",
    "filesystem_counts",
    "filesystem_design",
    "filesystem_tasks",
    "fio_write",
    "idle",
    "latency_design",
    "leave_one_out",
    "member_size",
    "more_and_more",
    "part_by_part",
    "power_design",
    "rebuild_design",
    "scaling_design",
    "sequential_read",
    "sequential_write",
    "side_by_side",
    "sweep_design",
]
