"""pytest's starting point. The plugin is an entry point of the installed package; shared fixtures are in fixtures/."""
