"""The client as a distribution of its own, for programs that have other packages beside it."""
