"""What the topics hold, read back as columns."""
