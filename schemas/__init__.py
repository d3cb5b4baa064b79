"""What travels: one frozen record per topic, how it is read and written, why it is refused."""
