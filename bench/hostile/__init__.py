"""Malformed and unusual records on every topic, from several clients, among good patients."""
