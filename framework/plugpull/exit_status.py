"""The exit statuses of the command line. Modules below it raise an error or return a verdict instead."""

EXIT_PASS = 0
EXIT_FAIL = 1
EXIT_USAGE = 2
EXIT_UNKNOWN = 3
