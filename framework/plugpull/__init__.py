"""Pull-the-plug testing for storage on Linux."""

__version__ = "0.1.0"
