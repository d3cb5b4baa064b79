"""State on the broker: written with each commit, restored, and followed by other workers."""
