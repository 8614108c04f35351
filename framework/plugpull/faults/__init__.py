"""Cuts, and what triggers them."""

from plugpull.faults.triggers import after, at_random, kernel_says

__all__ = ["after", "at_random", "kernel_says"]
