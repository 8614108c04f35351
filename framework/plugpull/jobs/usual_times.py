"""How long a scenario takes that nobody has timed here yet."""

USUAL = 15.0
"""Seconds. On rigs/external-disk-study.toml, two benches on two CPUs without KVM, 141 took 15 s on average, 39 of them
with an array 13 s, and 50 with a filesystem 12 s."""
