"""Streams as a user meets them: every patient once, predicted before its label."""
