"""Writing stamps on the DUT, and reading them back."""
