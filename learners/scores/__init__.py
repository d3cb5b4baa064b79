"""How often predictions are wrong: over all time, and recently."""
