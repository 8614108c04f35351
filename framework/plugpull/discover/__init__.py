"""Drafting a rig file from what is attached to a machine."""
