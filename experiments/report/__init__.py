"""What experiments hand back, and how it is stored and shown."""
