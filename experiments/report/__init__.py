"""The results of experiments, and how they are stored and shown."""
