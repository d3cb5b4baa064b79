"""Tries an ensemble on a file without a broker: each patient once, before its label is learned."""
