"""The sections of the settings file, one model each."""
