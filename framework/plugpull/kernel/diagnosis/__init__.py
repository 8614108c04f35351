"""The meaning of a whole kernel log: which devices had which errors, and which of them a cut explains."""
