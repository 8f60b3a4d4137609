"""The configuration as a file: a commented one of all settings, and one of what is in force."""
