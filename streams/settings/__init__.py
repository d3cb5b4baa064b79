"""The settings file: what one ensemble is, and where and how it runs."""
