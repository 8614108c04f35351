"""Compares recorded runs with each other."""
