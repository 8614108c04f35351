"""Loads of fio."""

from plugpull.load.patterns import Pattern, fio_write, idle, sequential_read, sequential_write

__all__ = ["Pattern", "fio_write", "idle", "sequential_read", "sequential_write"]
