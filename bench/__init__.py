"""Benchmarks: each compares with a peer in the same run and reports ratios."""
