"""The settings file: what one ensemble is, and where and how it runs.

`settings.loading` reads `ensemble.toml` into a frozen `settings.model.Settings`, which only
describes the ensemble and starts nothing.
"""
