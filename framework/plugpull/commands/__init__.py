"""The subcommands of ``plugpull``, one per module. Each module has an ``add`` that takes the list of commands."""
