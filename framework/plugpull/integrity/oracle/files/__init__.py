"""The ledger of a file writer, and the oracle that judges a filesystem after a cut."""
