"""The local learner: its features, its partition of them, and IUP to choose among its rules."""
