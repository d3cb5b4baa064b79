"""Prediction rules: fixed ones, and ones that learn online.

`registry.make_rule` makes them from the settings, `base` says what they have in common.
"""
