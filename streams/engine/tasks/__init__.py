"""Tasks: one partition of one agent each, from opening to closing."""
