"""What the kernel says: the catalogue of its messages and the classifier."""
