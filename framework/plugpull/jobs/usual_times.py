"""How long a scenario takes that nobody has timed here yet."""

USUAL = 18.0
"""Seconds. On rigs/external-disk-study.toml, two benches on two CPUs without KVM, 146 took 18 s on average, 40 of them
with an array 18 s, and 49 with a filesystem 15 s."""
