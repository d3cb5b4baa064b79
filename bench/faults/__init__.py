"""`hb bench faults`: checks exactly-once while workers and brokers are killed and paused."""
