"""Stamped writes, their ledger, and the oracle that says what may be on a disk after a cut."""
