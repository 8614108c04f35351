"""Loads of fio."""

from plugpull.load.designs import (
    all_at_once,
    all_for_long,
    each_alone,
    leave_one_out,
    more_and_more,
    scaling_design,
    side_by_side,
)
from plugpull.load.patterns import Pattern, fio_write, idle, sequential_read, sequential_write

__all__ = [
    "Pattern",
    "all_at_once",
    "all_for_long",
    "each_alone",
    "fio_write",
    "idle",
    "leave_one_out",
    "more_and_more",
    "scaling_design",
    "sequential_read",
    "sequential_write",
    "side_by_side",
]
