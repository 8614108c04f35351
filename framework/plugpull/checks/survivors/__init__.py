"""What becomes of everything that no cut takes: its pace, its errors, its presence."""
