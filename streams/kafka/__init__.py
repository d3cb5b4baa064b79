"""The broker as a client sees it: connection, security, topics and their administration."""
