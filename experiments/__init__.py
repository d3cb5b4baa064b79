"""What it achieves: benchmarks, the paper's tables and figures, replay."""
