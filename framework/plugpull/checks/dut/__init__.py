"""What becomes of the DUT: its kernel, its tasks, its CPUs, and what is left over."""
