"""The meaning of what the Linux kernel logs: single messages, and whole logs."""
