"""What is proven: bounds, intervals that hold at all times, and regret."""
