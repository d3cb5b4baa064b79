"""A recorded stream again, through the pure learners, with other settings."""
