"""Runs beside each other and over time."""
