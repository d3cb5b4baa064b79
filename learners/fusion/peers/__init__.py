"""Fusion rules the paper compares with, from their own definitions, behind the same interface."""
