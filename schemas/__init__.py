"""What travels: one frozen record per topic, its codec and its checks."""
