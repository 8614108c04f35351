"""The state of all rigs of a lab. See README.md."""
