"""Rig files: reading them, checking them, and the topology that they describe."""
