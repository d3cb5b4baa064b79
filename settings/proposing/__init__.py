"""From a CSV file to settings: what its columns seem to be, and the numbers of its features."""
