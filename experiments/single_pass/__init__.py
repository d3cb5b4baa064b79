"""Streams as in practice: every patient comes once and is predicted before its label."""
