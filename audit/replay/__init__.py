"""Replaying a recorded stream through the pure learners, with other settings."""
