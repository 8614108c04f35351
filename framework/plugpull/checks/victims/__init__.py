"""What becomes of the disks that are cut: they go, their users are given errors, they come back as themselves."""
