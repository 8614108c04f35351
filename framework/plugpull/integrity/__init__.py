"""Stamped writes, their ledger, and the oracle that decides what may be on a disk after a cut."""
