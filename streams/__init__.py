"""How it travels: settings, broker, topics, transport, tasks and state."""
