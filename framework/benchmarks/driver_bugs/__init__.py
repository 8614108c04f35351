"""Bugs put into the kernel's drivers and md: see ``driver_mutants.py``."""
