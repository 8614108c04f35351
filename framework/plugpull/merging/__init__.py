"""Runs with several parts: benches side by side, and shards from several machines."""
