"""Faults and what triggers them, as data. Scenarios import the helpers from here."""

from plugpull.faults.bouncing import bounce
from plugpull.faults.compose import cut, held, in_sequence, pause, repeated, together
from plugpull.faults.expected import judged_by
from plugpull.faults.moving import move, swap
from plugpull.faults.triggers import after, at_random, kernel_says

__all__ = [
    "after",
    "at_random",
    "bounce",
    "cut",
    "held",
    "in_sequence",
    "judged_by",
    "kernel_says",
    "move",
    "pause",
    "repeated",
    "swap",
    "together",
]
