"""Pull-the-plug testing for storage on Linux.

PYTEST_DONT_REWRITE: ``plugpull run`` imports this package before pytest starts. pytest rewrites the assertions of
installed plugins, and would warn that it is too late for this one. No assertion here needs that.
"""

__version__ = "0.1.0"
