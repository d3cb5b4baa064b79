"""What is learned: pure, vectorised code with no I/O, clock, logging or global randomness."""
