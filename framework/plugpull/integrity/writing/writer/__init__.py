"""The C source of the writer."""
