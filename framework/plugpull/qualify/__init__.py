"""Finding out whether a switch port does what it claims."""
