"""The one append-only, time-ordered record of a run: what can be in it, writing it, reading it."""
