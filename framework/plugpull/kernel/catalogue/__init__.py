"""The meaning of one kernel message, from a table of all messages that matter to storage."""
