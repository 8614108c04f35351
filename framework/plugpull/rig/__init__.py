"""What stands on the bench: the rig file, its mistakes, the topology and who is using it."""
