"""What becomes of filesystems and the files on them."""
