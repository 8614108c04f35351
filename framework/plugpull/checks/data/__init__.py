"""Whether stamped data is there that was promised to be kept."""
