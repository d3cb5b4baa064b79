"""From a CSV file to settings: what its columns hold, and the numbers of its features."""
