"""Benchmarks: each compares our code with a peer in the same run and reports ratios."""
