"""Odd records on every topic, by several clients, while good patients flow."""
