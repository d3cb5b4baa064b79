"""`hb bench faults`: exactly once, checked while workers and brokers are killed and paused."""
