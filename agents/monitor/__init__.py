"""Monitoring: the state of the whole system, its metrics and its console."""
