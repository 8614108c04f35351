"""Registers all mutations."""

from benchmarks import (
    mutations_cuts,
    mutations_edges,
    mutations_kernel,
    mutations_others,
    mutations_pace,
    mutations_pairs,
    mutations_record,
    mutations_return,
    mutations_shape,
    mutations_stamps,
    mutations_state,
    mutations_untrue,
    mutations_watched,
)

__all__ = [
    "mutations_cuts",
    "mutations_edges",
    "mutations_kernel",
    "mutations_others",
    "mutations_pace",
    "mutations_pairs",
    "mutations_record",
    "mutations_return",
    "mutations_shape",
    "mutations_stamps",
    "mutations_state",
    "mutations_untrue",
    "mutations_watched",
]
