"""The hb command."""
