"""What becomes of arrays and their members."""
