"""fio loads."""

from plugpull.load.patterns import Pattern, idle, sequential_read, sequential_write

__all__ = ["Pattern", "idle", "sequential_read", "sequential_write"]
