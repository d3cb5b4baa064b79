"""Prediction rules: fixed ones, and ones that learn online."""
