"""Where pytest starts. The plugin itself is an entry point of the installed package; shared fixtures come from
fixtures/."""
