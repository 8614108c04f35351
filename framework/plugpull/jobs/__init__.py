"""A run that is split: over several benches of this machine, or into shards for several machines."""
