"""The subcommands of ``plugpull``, one a module, each with an ``add`` that takes the parser's list of commands."""
